"""What the registries of methods hold: a name, where the method comes from, and what it needs to run."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from db_dedup.errors import DedupError, UnknownNameError
from db_dedup.flow.features.counting import Features
from db_dedup.methods.corpus import CutTexts, HashTokens, MakeFeatures
from db_dedup.translation import Phrase

_Loaded_co = TypeVar("_Loaded_co", covariant=True)

Rows = NDArray[np.intp] | NDArray[np.int32] | NDArray[np.int64]
"""Row numbers, int[p]."""

Compare = Callable[[Rows, Rows], NDArray[np.float64]]
"""(left int[p], right int[p]) -> float64[p]: the similarity or distance of row left[i] and row right[i]."""

Prepare = Callable[[Features], Compare]
"""The features of n rows -> what compares pairs of these rows. The work of each row is done here, once."""


def _nothing() -> None:
    """Need nothing beyond what the package itself installs."""


@dataclass(frozen=True)
class Entry(Generic[_Loaded_co]):
    """A method that can be listed before it is loaded.

    Attributes:
        name: unique in its registry.
        summary: one line for a table.
        papers: those of the five that use it, such as "P1"; the page `docs/reference/methods.md` names them.
        load: returns the method; what it loads may take seconds.
        check: raises a `DedupError` at once where `load` would fail for something that is not installed.
    """

    name: str
    summary: str
    papers: tuple[str, ...]
    load: Callable[[], _Loaded_co]
    check: Callable[[], None] = _nothing

    @property
    def missing(self) -> str | None:
        """What must be installed before the method can run, in one line; None if it can run."""
        try:
            self.check()
        except DedupError as error:
            return str(error)
        return None


@dataclass(frozen=True)
class SegmenterEntry(Entry[CutTexts]):
    """A segmenter: texts -> the tokens of each text."""


@dataclass(frozen=True)
class HashEntry(Entry[HashTokens]):
    """A hash function: tokens -> uint64, one for each token."""


@dataclass(frozen=True)
class FeatureEntry(Entry[MakeFeatures]):
    """A kind of features.

    Attributes:
        uses_tokens: False if the features are made of the text itself, so that the segmenter changes nothing.
        is_words: True if they are the distinct words of the text, so that they differ from others of this
            kind in their weights alone.
    """

    uses_tokens: bool = True
    is_words: bool = False


@dataclass(frozen=True)
class MethodEntry(Entry[Prepare]):
    """A comparison of two rows by their features.

    Attributes:
        higher_is_alike: True for a similarity, 0 to 1; False for a distance.
        thresholds: values worth a trial, those of the papers among them, the strictest first.
        uses_weights: False if only the set of features counts, so that their weights change nothing.
    """

    higher_is_alike: bool = True
    thresholds: tuple[float, ...] = ()
    uses_weights: bool = False

    def are_alike(self, values: NDArray[np.float64], threshold: float) -> NDArray[np.bool_]:
        """Return bool[p]: which pairs of these similarities or distances are duplicates at this threshold."""
        result: NDArray[np.bool_] = values >= threshold if self.higher_is_alike else values <= threshold
        return result


_Entry = TypeVar("_Entry", bound=Entry[object])


def by_name(entries: Sequence[_Entry]) -> Mapping[str, _Entry]:
    """Return a registry: name -> entry, in the given order."""
    return {entry.name: entry for entry in entries}


def find_entry(registry: Mapping[str, _Entry], name: str) -> _Entry:
    """Return the entry of this name.

    Raises:
        UnknownNameError: there is none; the message names those that are like it.
    """
    if name not in registry:
        raise UnknownNameError(Phrase("method"), name, registry)
    return registry[name]
