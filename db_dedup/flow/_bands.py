"""How many of a sketch's values are MinHash bands; all others are passages."""

from typing import Final

BANDS: Final = 24
