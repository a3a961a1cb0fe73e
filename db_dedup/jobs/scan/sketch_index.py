"""Write the index of sketches after a scan: what differs, or all of it in new segments."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from db_dedup.engines.base import RowBatch
from db_dedup.flow.candidates.segments import Entries, count_pieces, pack, sorted_entries
from db_dedup.flow.candidates.set_pieces import ids_of_pieces, pack_sets, set_pieces_of
from db_dedup.flow.candidates.sketch_sizes import pack_sizes, size_pieces_of
from db_dedup.flow.candidates.sketches import Sketches, entries
from db_dedup.flow.matching.match import NO_ROW
from db_dedup.jobs.scan.short_transactions import ShortTransactions, Writing
from db_dedup.store import segments, single_entries, sketches
from db_dedup.store.fingerprints import FingerprintStore
from db_dedup.store.reader import Reader
from db_dedup.store.segments import Generation, new_generation

ROWS_WITH_SKETCHES: Final = 1_000
"""At a time: each has dozens of entries all over the index, and more would show no progress for long."""

_ONE_IN: Final = 10
_LEAST_FOLDED: Final = 20_000
_PIECES_AT_A_TIME: Final = 500
_SET_PIECES_AT_A_TIME: Final = 64


def is_worth_folding(single_count: int, entry_count: int) -> bool:
    """Return whether the single entries are so many that they should be moved into segments.

    One changed row has entries in forty pieces, so that pieces are never rewritten for a single change.

    Args:
        single_count: how many single entries there are.
        entry_count: how many entries there are in all.
    """
    return single_count >= _LEAST_FOLDED and single_count * _ONE_IN > entry_count


@dataclass(frozen=True)
class _Rows:
    """Rows, and where their sketches are.

    Attributes:
        ids: int64[n], of the rows.
        places: int64[n], of their sketches among those of the scan.
    """

    ids: NDArray[np.int64]
    places: NDArray[np.int64]

    def only(self, chosen: NDArray[np.bool_]) -> "_Rows":
        return _Rows(self.ids[chosen], self.places[chosen])


@dataclass(frozen=True)
class SketchDifference:
    """What is to be written of the rows' sketches and of their index.

    Attributes:
        has_single: some rows have single entries.
        writes_segments: all entries are written into new segments. Otherwise those of the rows that differ
            become single entries.
        lost: ids of rows that lose their sketch, or get another one.
        gained: rows that get a sketch: those whose stored state differs.
        wanted: all rows that are to have a sketch.
        sketches: those of the scan.
    """

    has_single: bool
    writes_segments: bool
    lost: list[int]
    gained: _Rows
    wanted: _Rows
    sketches: Sketches

    @classmethod
    def of(
        cls,
        reader: Reader,
        store: FingerprintStore,
        ids: NDArray[np.int64],
        table: RowBatch,
        copy_of: NDArray[np.int32],
        changed: Collection[str],
        *,
        serves: bool,
    ) -> "SketchDifference":
        """Compare sketches: if the rule asks for them, rows that take part in pairs have one, and no others.

        Args:
            reader: of our tables.
            store: the table and the recipe.
            ids: int64[n], of the rows of the scan, in its order.
            table: these rows.
            copy_of: int32[n], the canonical row of each exact duplicate, -1 for other rows.
            changed: row keys of the rows whose text is another one than that of their stored sketches.
            serves: the recipe serves already. Otherwise its index is not written yet.
        """
        is_wanted = wanted_sketches(table, copy_of)
        rows, stored = (
            _Rows(ids, table.sketch_places),
            sketches.read_sketched_rows(reader, store).aligned(ids),
        )
        has_sketch, sizes = stored.sizes >= 0, np.zeros(ids.size, np.int64)
        sizes[is_wanted] = table.sketches.counts[table.sketch_places[is_wanted]]
        is_changed = np.zeros(ids.size, np.bool_)
        if changed:
            is_changed[:] = [row_key in changed for row_key in table.row_keys]
        is_lost, is_gained = has_sketch & (is_changed | ~is_wanted), is_wanted & (is_changed | ~has_sketch)
        # After a rebuild, which has dropped all sketches, there must be segments again, however small the
        # table: a look-up that read the single entries just before would find neither those nor a generation.
        is_new = not serves or bool(np.any(is_wanted) and not np.any(has_sketch))
        writes_segments = is_new or is_worth_folding(int(sizes[is_gained].sum()), int(sizes.sum()))
        if writes_segments:
            is_lost = has_sketch & ~is_wanted
            is_gained = is_wanted & (stored.is_single | (stored.sizes != sizes))
        return cls(
            bool(np.any(stored.is_single)),
            writes_segments,
            ids[is_lost].tolist(),
            rows.only(is_gained),
            rows.only(is_wanted),
            table.sketches,
        )

    @property
    def count(self) -> int:
        """How many rows are written; of pieces of segments about as many."""
        entered = self.wanted if self.writes_segments else self.gained
        entry_count = int(self.sketches.counts[entered.places].sum())
        written = entry_count
        if self.writes_segments:
            beside = (np.unique(pieces_of(entered.ids)).size for pieces_of in (size_pieces_of, set_pieces_of))
            written = count_pieces(entry_count) + sum(beside)
        return len(self.lost) + self.gained.ids.size + written

    def write(self, writing: Writing, store: FingerprintStore) -> None:
        """Write sketches and index."""
        if self.writes_segments:
            self._write_segments(writing, store)
        else:
            self._write_single_entries(writing, store)

    def _write_single_entries(self, writing: Writing, store: FingerprintStore) -> None:
        for connection, ids in writing.parts(self.lost, ROWS_WITH_SKETCHES):
            sketches.drop_sketches(connection, store, ids)
        gained = zip(self.gained.ids.tolist(), self.gained.places.tolist(), strict=True)
        for connection, rows in writing.parts(gained):
            sketched = [(row_id, self.sketches.bytes_of(place)) for row_id, place in rows]
            sketches.write_sketches(connection, store, sketched)
        for values, rows_of in entries(self.sketches, self.gained.places):
            for connection, part in writing.slices(values.size):
                owners = self.gained.ids[rows_of[part]]
                single_entries.put_entries(connection, store, values[part].view(np.int64), owners)

    def _write_segments(self, writing: Writing, store: FingerprintStore) -> None:
        """Write a new generation and make it active. Until then the former one is read."""
        if self.has_single:
            single_entries.drop_all_entries(writing.connection(), store)
        for connection, ids in writing.parts(self.lost):
            sketches.write_sizes(connection, store, dict.fromkeys(ids).items())
        sizes = self.sketches.counts[self.gained.places].tolist()
        for connection, sized in writing.parts(zip(self.gained.ids.tolist(), sizes, strict=True)):
            sketches.write_sizes(connection, store, sized)
        generation = new_generation(int(self.sketches.counts[self.wanted.places].sum()))
        writing.pause()  # to sort a part of the entries takes a while, and no lock is needed for it
        rows = self.wanted
        for some in sorted_entries(self.sketches, rows.places, rows.ids, generation.piece_count):
            put_entries(writing, store, generation, some)
        put_sizes(writing, store, generation, rows.ids, self.sketches.counts[rows.places])
        put_sets(writing, store, generation, rows.ids)
        segments.switch_generation(writing.connection(), store, generation)
        drop_other_segments(writing, store, generation.number)


def put_entries(writing: Writing, store: FingerprintStore, generation: Generation, some: Entries) -> None:
    """Write some entries of a generation, with all others of their pieces, by ascending hash."""
    if not some.ids.size:
        return
    for connection, parts in writing.parts(pack(some, generation.piece_count)):
        segments.put_parts(connection, store, generation, parts)
    writing.pause()


def put_sizes(
    writing: Writing,
    store: FingerprintStore,
    generation: Generation,
    ids: NDArray[np.int64],
    sizes: NDArray[np.int64],
) -> None:
    """Write beside a generation how many hashes each of its rows has."""
    for connection, parts in writing.parts(pack_sizes(ids, sizes)):
        segments.put_parts(connection, store, generation, parts)


def put_sets(
    writing: Writing, store: FingerprintStore, generation: Generation, ids: NDArray[np.int64]
) -> None:
    """Write beside a generation the sets of its rows' features, as they are stored beside the rows."""
    pieces = np.unique(set_pieces_of(ids))[::-1]
    for first in range(0, pieces.size, _SET_PIECES_AT_A_TIME):
        some = pieces[first : first + _SET_PIECES_AT_A_TIME]
        with writing.reader.open() as connection:
            stored = sketches.read_feature_sets(connection, store, ids_of_pieces(some.tolist()))
        is_own = np.isin(stored.ids, ids)
        sets = [each for each, own in zip(stored.sets, is_own.tolist(), strict=True) if own]
        for connection, parts in writing.parts(pack_sets(stored.ids[is_own], sets)):
            segments.put_parts(connection, store, generation, parts)


def drop_other_segments(writing: Writing, store: FingerprintStore, kept: int | None) -> None:
    """Delete the segments of all generations but one."""
    while segments.drop_segments(writing.connection(), store, kept, _PIECES_AT_A_TIME):
        pass


def drop_single_entries(writing: ShortTransactions, store: FingerprintStore, ids: tuple[int, int]) -> None:
    """Delete the single entries of all rows in the order of the index.

    The entries of one row are all over the index: to delete row by row would write each of its pages many
    times.

    Args:
        writing: to write in.
        store: the table and recipe.
        ids: the least and the greatest id of the rows.
    """
    begin: single_entries.Entry | None = single_entries.FIRST_ENTRY
    done, total = 0, ids[1] - ids[0] + 1
    while begin is not None:
        connection = writing.connection()
        end = single_entries.entry_after(connection, store, begin, writing.rows)
        single_entries.drop_entries_between(connection, store, begin, end, ids)
        now_done = total if end is None else int(total * end.share)
        writing.advance(now_done - done)
        begin, done = end, now_done


def wanted_sketches(table: RowBatch, copy_of: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Return bool[n]: which of n rows are to have a sketch.

    Args:
        table: the rows.
        copy_of: int32[n], the canonical row of each exact duplicate, -1 for other rows.
    """
    takes_part = (copy_of == NO_ROW) & table.has_fingerprint
    is_wanted: NDArray[np.bool_] = takes_part & (table.sketch_places != NO_ROW)
    return is_wanted
