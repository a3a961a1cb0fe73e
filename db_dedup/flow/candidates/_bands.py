"""The number of MinHash bands in a sketch; its other values are passage hashes."""

from typing import Final

BANDS: Final = 24
