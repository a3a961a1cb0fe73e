"""A length at which whatever takes its square does not end within the time of a test."""

from typing import Final

import pytest

LONG: Final = 2_000_000
"""Characters, or parts. A linear way takes seconds, and one that takes the square at least ten minutes."""

NOT_THE_SQUARE: Final = pytest.mark.timeout(150)
