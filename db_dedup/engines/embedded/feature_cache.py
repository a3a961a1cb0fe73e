"""The features of rows that were read, kept in memory by digest within a budget.

The digest is that of the normalised text, and the recipe is fixed for one cache: equal digests have equal
features. So an entry never becomes wrong. When a row changes, its stored digest changes, and the entry of the
old digest is not asked for any more.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import numpy as np
from numpy.typing import NDArray

from db_dedup.config import WatchedTable
from db_dedup.flow._arrays import slices_of
from db_dedup.flow.candidates.sketches import Sketches
from db_dedup.flow.compare.rows import NO_PLACE, ComparedRows, compared_texts
from db_dedup.flow.compare.rule import Rule
from db_dedup.flow.features.counting import Features
from db_dedup.flow.features.details import SECTIONS, Details, sections_of
from db_dedup.flow.matching.ragged import Ragged, with_room
from db_dedup.flow.pipeline import FingerprintedRows
from db_dedup.flow.rows.digest import NO_FEATURES_DIGEST
from db_dedup.store.segment_lookup import IndexMemory

CACHE_BYTES: Final = 256 * 2**20

_SETS_SHARE: Final = 0.75
"""At most this share of the budget is for the sets of features that the index stores. With the default, the
sets of some two million rows of 110 features fit, or of a million petitions."""
_PIECES_SHARE: Final = 0.625
"""Besides, the worker keeps so much of the index: with the default 160 MB, which is all of a million
petitions."""
_ROW_BYTES: Final = 200
"""What a row takes besides its values: digest, positions, and the entries of Python's containers."""


class FeatureCache:
    """Features, details, sketches and `within` texts of rows, by digest.

    Each row has a position, which stays the same until `trim` is called.

    Attributes:
        budget: bytes that the rows may take after `trim`, together with the sets of features.
        index: what look-ups have read of the index: sets of features, and besides its pieces and a byte for
            each row of the table.
    """

    def __init__(self, watched: WatchedTable, budget: int = CACHE_BYTES, threads: int = 1) -> None:
        """Make an empty cache.

        Args:
            watched: the settings; they tell whether the weights of features are needed.
            budget: bytes that the rows after `trim` and the sets of features may take together.
            threads: in which look-ups in the index compute.
        """
        self.index = IndexMemory(int(budget * _SETS_SHARE), int(budget * _PIECES_SHARE), threads)
        self.budget = budget
        self._keeps_weights = Rule(watched.setting).uses_weights
        self._clear()

    def _clear(self) -> None:
        self._place_of: dict[bytes, int] = {}
        self._digests: list[bytes] = []
        self._within_numbers: dict[str | None, int] = {}
        self._within: NDArray[np.int32] = np.empty(1024, np.int32)
        self._used_at: NDArray[np.int64] = np.empty(1024, np.int64)
        self._tick = 0
        self._features = Ragged(np.uint64, np.int64) if self._keeps_weights else Ragged(np.uint64)
        self._details = Ragged(np.uint64)
        self._sketches = Ragged(np.uint64)

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self._digests)

    def __contains__(self, digest: bytes) -> bool:
        """Return whether the features of this digest are here."""
        return digest in self._place_of

    @property
    def bytes_used(self) -> int:
        """The memory that the rows take."""
        parts = (self._features, self._details, self._sketches)
        values = sum(int(part.starts[-1]) for part in parts) + self._keeps_weights * int(
            self._features.starts[-1]
        )
        # The arrays double when they are full, so up to twice the room is reserved.
        return 16 * values + _ROW_BYTES * len(self)

    def add(self, within: Sequence[str | None], done: FingerprintedRows) -> None:
        """Keep the rows whose features are not here yet; `done.is_known` rows have none and are left out."""
        with self._empty_after_error():
            self._add_new(within, done)

    @contextmanager
    def _empty_after_error(self) -> Iterator[None]:
        """Delete all rows if the block fails, as where memory runs out: some arrays have more rows then."""
        try:
            yield
        except BaseException:
            self._clear()
            raise

    def _add_new(self, within: Sequence[str | None], done: FingerprintedRows) -> None:
        first = len(self)
        chosen: list[int] = []
        for i, (digest, is_known) in enumerate(zip(done.digests, done.is_known.tolist(), strict=True)):
            if not is_known and digest not in self._place_of and digest != NO_FEATURES_DIGEST:
                self._place_of[digest] = first + len(chosen)
                chosen.append(i)
        if not chosen:
            return
        rows = np.array(chosen, np.int64)
        self._digests += [done.digests[i] for i in chosen]
        count = len(self)
        self._within, self._used_at = with_room(self._within, count), with_room(self._used_at, count)
        numbers = self._within_numbers
        self._within[first:count] = [numbers.setdefault(within[i], len(numbers)) for i in chosen]
        self._used_at[first:count] = self._tick
        features, details, sketches = done.features, done.details, done.sketches
        arrays = [features.hashes, features.weights][: 1 + self._keeps_weights]
        _add(self._features, features.starts, arrays, rows)
        _add(self._details, details.starts, [details.values], sections_of(rows))
        _add(self._sketches, sketches.starts, [sketches.values], rows)

    def place(self, digest: bytes) -> int | None:
        """Return the position of a digest's features; None if they are not here."""
        return self._place_of.get(digest)

    def places(self, digests: Iterable[bytes]) -> NDArray[np.int32]:
        """Return int32[n]: the positions of these digests' features, -1 where they are not here."""
        found = np.array([self._place_of.get(digest, NO_PLACE) for digest in digests], np.int32)
        self._used_at[found[found != NO_PLACE]] = self._tick
        return found

    def within(self, place: int) -> int:
        """Return a number that is equal for rows that agree in the `within` columns."""
        return int(self._within[place])

    def features(self) -> Features:
        """Return the features of all rows; without weights if the measure needs none."""
        weights = self._features.values(1) if self._keeps_weights else np.empty(0, np.int64)
        return Features(self._features.starts, self._features.values(0), weights)

    def details(self) -> Details:
        """Return the details of all rows."""
        return Details(self._details.starts, self._details.values(0))

    def sketches(self) -> Sketches:
        """Return the sketches of all rows."""
        return Sketches(self._sketches.starts, self._sketches.values(0))

    def compared(self) -> ComparedRows:
        """Return all rows as the rule compares them, by their positions."""
        return compared_texts(self._within[: len(self)], self.features(), self.details())

    def trim(self, kept: Collection[bytes] = ()) -> None:
        """Delete the rows that were used longest ago, until half of the budget is free again.

        Nothing happens while the rows are within the budget. Positions change.

        Args:
            kept: digests of rows that stay whatever their size.
        """
        self._tick += 1
        budget = self.budget - self.index.sets.bytes_used
        if self.bytes_used <= budget:
            return
        self._used_at[self.places(kept)] = self._tick
        count = len(self)
        sizes = self._row_bytes()
        order = np.argsort(-self._used_at[:count], kind="stable")
        is_kept = np.zeros(count, np.bool_)
        is_kept[order[np.cumsum(sizes[order]) <= budget // 2]] = True
        is_kept[self._used_at[:count] == self._tick] = True
        with self._empty_after_error():
            self._keep(np.flatnonzero(is_kept))

    def _row_bytes(self) -> NDArray[np.int64]:
        counts = np.diff(self._features.starts) * (1 + self._keeps_weights) + np.diff(self._sketches.starts)
        counts += np.diff(self._details.starts).reshape(-1, SECTIONS).sum(axis=1)
        return 16 * counts + _ROW_BYTES

    def _keep(self, rows: NDArray[np.int64]) -> None:
        """Keep these rows, which are ascending, and delete all others."""
        features, details, sketches = self._features, self._details, self._sketches
        digests, within, used_at, tick = self._digests, self._within, self._used_at, self._tick
        names = {number: text for text, number in self._within_numbers.items()}
        self._clear()
        self._tick = tick
        self._digests = [digests[i] for i in rows.tolist()]
        self._place_of = {digest: place for place, digest in enumerate(self._digests)}
        numbers = self._within_numbers
        texts = [names[number] for number in within[rows].tolist()]
        self._within = np.array([numbers.setdefault(text, len(numbers)) for text in texts], np.int32)
        self._used_at = used_at[rows]
        arrays = [features.values(i) for i in range(1 + self._keeps_weights)]
        _add(self._features, features.starts, arrays, rows)
        _add(self._details, details.starts, [details.values(0)], sections_of(rows))
        _add(self._sketches, sketches.starts, [sketches.values(0)], rows)


def _add(
    to: Ragged, starts: NDArray[np.int64], arrays: Sequence[NDArray[np.generic]], rows: NDArray[np.int64]
) -> None:
    """Add some rows of others, given as the slices of all of them."""
    counts = starts[rows + 1] - starts[rows]
    if rows.size == starts.size - 1 and counts.sum() == starts[-1]:
        to.add(counts, [array[: starts[-1]] for array in arrays])
        return
    _, taken = slices_of(starts, rows)
    to.add(counts, [array[taken] for array in arrays])
