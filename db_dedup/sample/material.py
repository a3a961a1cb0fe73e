"""The sentence material: one TOML file per subject, and what fits them all."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from random import Random
from typing import Any


def pick[T](rng: Random, items: tuple[T, ...]) -> T: ...
