"""What only a thorough run needs."""

from collections.abc import Iterable
from typing import Any

import pytest

MYSQL = pytest.param("mysql", marks=pytest.mark.thorough)
"""A database among the parameters of a test. It is MariaDB's twin, so that only a thorough run starts it."""


def quick_first(cases: Iterable[Any]) -> list[Any]:
    """The cases of a parametrised test: the first for every run, the others for thorough ones."""
    first, *others = cases
    return [first, *(pytest.param(case, marks=pytest.mark.thorough) for case in others)]
