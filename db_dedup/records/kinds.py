"""The kinds of duplicate pairs, and how a kind and the flag of other places are packed into one number.

The number of a pair is 0 if its kind is not known. Otherwise its lowest three bits are the kind's position in
`KINDS` plus one; the bits above them are flags.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

Kind = Literal["copy", "edited", "contained", "partial"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
"""The names of the kinds; the position of a kind is its number in the database."""

ExcludedKind = Literal["edited", "contained", "partial", "other_place"]
"""What a setting can leave out: pairs of these kinds, or with the flag of other places. Copies are not among
them: exact duplicates are always linked, so a text with one more comma is, too."""

UNKNOWN: Final = 0
COPY: Final = 1
EDITED: Final = 2
CONTAINED: Final = 3
PARTIAL: Final = 4
KIND_BITS: Final = 7
"""The bits of the kind itself."""
SECOND_IS_PART: Final = 8
"""The flag of a contained pair whose second row is the part; without it the first row is the part."""
OTHER_PLACE: Final = 16
"""The flag of two texts that each name a place which the other does not."""
_FLAG_SHIFT: Final = OTHER_PLACE.bit_length() - 1


@dataclass(frozen=True)
class PairKind:
    """What kind of pair two rows are.

    Attributes:
        kind: None if it is not known.
        part: of a contained pair the row that is part of the other: 0 the first, 1 the second; else None.
        other_place: whether each names a place or organisation that the other does not; None if the kind is
            not known.
    """

    kind: Kind | None
    part: int | None
    other_place: bool | None

    @classmethod
    def of(cls, number: int) -> "PairKind":
        """Return what a packed number means."""
        if number == UNKNOWN:
            return NO_KIND
        place = (number & KIND_BITS) - 1
        part = int(bool(number & SECOND_IS_PART)) if KINDS[place] == "contained" else None
        return cls(KINDS[place], part, bool(number & OTHER_PLACE))

    def part_of(self, first: str | None, second: str | None) -> str | None:
        """Return the key of the row that is part of the other, given the keys of both."""
        return None if self.part is None else (first, second)[self.part]


NO_KIND: Final = PairKind(None, None, None)
EXACT_DUPLICATES: Final = PairKind("copy", None, False)


def excluded_mask(kinds: Collection[ExcludedKind]) -> int:
    """Return a number whose bit n is 1 if the kind with the packed number n is among these.

    Bit `OTHER_PLACE` is 1 if the flag is among them.
    """
    mask = sum(1 << (number + 1) for number, kind in enumerate(KINDS) if kind in kinds)
    return mask | (1 << OTHER_PLACE if "other_place" in kinds else 0)


def excluded_by(mask: Any, packed: Any) -> Any:
    """Return 1 if a mask excludes a pair, else 0.

    numba compiles it, and it also takes arrays: arithmetic only.

    Args:
        mask: the result of `excluded_mask`.
        packed: the packed number of the pair, int64.
    """
    flagged = (mask >> OTHER_PLACE) & (packed >> _FLAG_SHIFT)
    return ((mask >> (packed & KIND_BITS)) | flagged) & 1


@dataclass(frozen=True)
class PairFilter:
    """Which pairs are wanted.

    Attributes:
        kinds: pairs of these kinds; None: of all kinds, also of none.
        other_place: pairs with, or without, the flag; None: both.
    """

    kinds: tuple[Kind, ...] | None = None
    other_place: bool | None = None

    def wants(self, kind: Kind | None, other_place: bool | None) -> bool:
        """Return whether a pair of this kind and flag is wanted."""
        is_of_kind = self.kinds is None or kind in self.kinds
        return is_of_kind and self.other_place in (None, other_place)


ALL_PAIRS: Final = PairFilter()
