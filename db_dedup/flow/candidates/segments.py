"""Segments: the hashes of many sketches, sorted and packed, as the database stores them after a scan.

An entry is a hash of 32 bits and the id of a row whose sketch has it. All entries are sorted by hash, then by
row, and cut into pieces: equal ranges of hashes, so that the number of a piece follows from the hash alone.
Hashes are spread evenly, so pieces are of about one size; one that has a frequent hash is divided into parts.

A part is packed bit by bit (as inverted indexes are: Zobel and Moffat 2006): for each different hash the
difference from the one before in a Rice code, the number of its rows in an Elias gamma code, and its rows: a
single one as a number of fixed width, several as differences in a Rice code. A row is listed twice under a
hash if two hashes of its sketch are equal in 32 bits.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from db_dedup.flow._arrays import sort_part
from db_dedup.flow._compiled import inner, kernel
from db_dedup.flow._mix import mix
from db_dedup.flow._new_arrays import empty
from db_dedup.flow.candidates._packed_parts import (
    MOST_ENTRIES_A_PART,
    find_in_parts,
    pack_parts,
    unpack_parts,
)
from db_dedup.flow.candidates.postings import Postings
from db_dedup.flow.candidates.sketches import Sketches

ENTRIES_A_PIECE: Final = 256
"""On average: about a kilobyte. Four fit into a page of SQLite, and a look-up unpacks little in vain."""

SLACK_BYTES: Final = 16
"""How many bytes there must be behind the last part of an array, for the kernels that read it."""
_ENTRIES_A_SORT: Final = 1 << 20, 1 << 22  # the least, and the most, which take some 150 MB
_HASH_BITS: Final = 32
_LOW_BITS: Final = np.uint64((1 << _HASH_BITS) - 1)


class Entries(NamedTuple):
    """e entries: uint32[e] hashes, int64[e] ids of their rows."""

    hashes: NDArray[np.uint32]
    ids: NDArray[np.int64]

    def only(self, is_kept: NDArray[np.bool_]) -> "Entries":
        """Return the kept entries (bool[e])."""
        return Entries(self.hashes[is_kept], self.ids[is_kept])

    def of_rows(self, first: int, last: int) -> "Entries":
        """Return the entries of the rows from the first to the last id."""
        return self.only((self.ids >= first) & (self.ids <= last))


class Part(NamedTuple):
    """A part of a piece: the number of the piece, the number of the part in it, and its packed entries."""

    piece: int
    part: int
    packed: bytes


class PackedParts(NamedTuple):
    """p parts in one array of bytes.

    Attributes:
        packed: uint8[m], with `SLACK_BYTES` behind the last part.
        begins: int64[p], where each part begins.
        ends: int64[p], where it ends.
    """

    packed: NDArray[np.uint8]
    begins: NDArray[np.int64]
    ends: NDArray[np.int64]

    @classmethod
    def of(cls, parts: Sequence[bytes]) -> "PackedParts":
        """Join some parts."""
        starts = np.cumsum([0, *map(len, parts)]).astype(np.int64)
        # An array that can be written to, like all others: numba compiles a kernel once more for one that
        # cannot.
        packed = np.frombuffer(bytearray().join([*parts, bytes(SLACK_BYTES)]), np.uint8)
        return cls(packed, starts[:-1], starts[1:])


def count_pieces(entry_count: int) -> int:
    """Return into how many pieces so many entries are cut."""
    return max(1, entry_count // ENTRIES_A_PIECE)


def pieces_of(hashes: NDArray[np.uint32], piece_count: int) -> NDArray[np.int64]:
    """Return int64[n]: the numbers of the pieces that have the entries of these hashes."""
    pieces: NDArray[np.int64] = (hashes.astype(np.int64) * piece_count) >> _HASH_BITS
    return pieces


def first_hash_of(piece: int, piece_count: int) -> int:
    """Return the least hash of a piece; 2**32 past the last piece."""
    return -((-piece << _HASH_BITS) // piece_count)


@inner
def _hash_of(value):
    """Return 32 bits of a hash of 64 bits, the lowest bit as it is: it names the kind of generator."""
    mixed = mix(value >> np.uint64(1)) >> np.uint64(32)
    return np.uint32((mixed & ~np.uint64(1)) | (value & np.uint64(1)))


@kernel
def hashes_of(values):
    """Return uint32[n]: the hashes of 32 bits of some values of sketches (uint64[n])."""
    hashes = empty(values.size, np.uint32)
    for i in range(values.size):
        hashes[i] = _hash_of(values[i])
    return hashes


def narrowed(sketches: Sketches) -> Sketches:
    """Return the sketches with their hashes of 32 bits, ascending in each row, in place of their values."""
    return Sketches(sketches.starts, _narrowed(sketches.starts, sketches.values))


def sums_of_sketches(sketches: Sketches, places: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Return uint64[n]: for some sketches a checksum of their hashes, whatever their order."""
    hashes = narrowed(sketches.take(places))
    rows = np.repeat(np.arange(places.size), hashes.counts)
    sums = np.zeros(places.size, np.uint64)
    add_to_sums(sums, rows, hashes.values.astype(np.uint32))
    return sums


@kernel
def add_to_sums(sums, rows, hashes):
    """Add entries to the checksums of their rows."""
    for i in range(rows.size):
        sums[rows[i]] += mix(np.uint64(hashes[i]) + np.uint64(1))


def sort_entries(entries: Entries) -> Entries:
    """Return the same entries by ascending hash, then by ascending row; fast where they are in some runs."""
    if entries.ids.size and entries.ids.min() >= 0 and int(entries.ids.max()) >> _HASH_BITS == 0:
        keys = (entries.hashes.astype(np.uint64) << np.uint64(_HASH_BITS)) | entries.ids.astype(np.uint64)
        keys.sort(kind="stable")  # it merges what is in order already
        return Entries((keys >> np.uint64(_HASH_BITS)).astype(np.uint32), (keys & _LOW_BITS).astype(np.int64))
    order = np.lexsort((entries.ids, entries.hashes))
    return Entries(entries.hashes[order], entries.ids[order])


def merged_entries(many: Entries, few: Entries) -> Entries:
    """Merge two lists of entries, each by ascending hash."""
    places = np.searchsorted(many.hashes, few.hashes)
    return Entries(np.insert(many.hashes, places, few.hashes), np.insert(many.ids, places, few.ids))


def sorted_entries(
    sketches: Sketches, places: NDArray[np.int64], ids: NDArray[np.int64], piece_count: int
) -> Iterator[Entries]:
    """Yield the entries of some rows by ascending hash, some millions at a time; no piece is divided.

    Args:
        sketches: of all rows.
        places: int64[n], the position of each row's sketch.
        ids: int64[n], the rows' ids.
        piece_count: into how many pieces all entries are cut.
    """
    order = np.argsort(ids, kind="stable")
    places, ids = places[order], ids[order]
    total = int(sketches.counts[places].sum())
    # Each sort reads all sketches, so there are few.
    entries_a_sort = min(max(total // 16, _ENTRIES_A_SORT[0]), _ENTRIES_A_SORT[1])
    steps = max(1, min(piece_count, -(-total // entries_a_sort)))
    bounds = np.arange(steps + 1, dtype=np.int64) * piece_count // steps
    for first, last in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        # The hash, then the position of the row: numbers are sorted several times as fast as their positions.
        keys = np.sort(_keys_of_pieces(sketches.starts, sketches.values, places, piece_count, first, last))
        yield Entries((keys >> np.uint64(32)).astype(np.uint32), ids[keys & _LOW_BITS])


def pack(entries: Entries, piece_count: int) -> Iterator[Part]:
    """Yield the parts of all pieces that have some of these entries.

    Args:
        entries: by ascending hash, then row; all entries of each of their pieces.
        piece_count: into how many pieces all entries of the index are cut.
    """
    bounds = _part_bounds(entries.hashes, piece_count)
    packed, ends = pack_parts(entries.hashes, entries.ids, bounds)
    firsts = pieces_of(entries.hashes[bounds[:-1]], piece_count).tolist()
    content = packed.tobytes()
    before, part, begin = -1, 0, 0
    for piece, end in zip(firsts, ends.tolist(), strict=True):
        part = part + 1 if piece == before else 0
        yield Part(piece, part, content[begin:end])
        before, begin = piece, end


def unpack(parts: Sequence[bytes]) -> Entries:
    """Return the entries of some parts, in their order; raises ValueError if a part is damaged."""
    return Entries(*unpack_parts(*PackedParts.of(parts)))


def find_postings(
    parts: PackedParts, hashes: NDArray[np.uint32], first_id: int, last_id: int, most: int
) -> Postings:
    """Return the ids of the rows that have some hashes, from some parts.

    Args:
        parts: of the index.
        hashes: uint32[n], ascending and distinct.
        first_id: of the rows that are wanted.
        last_id: of these.
        most: stop after so many entries; so many are returned where there may be more.

    Raises:
        ValueError: a part is damaged.
    """
    return Postings(*find_in_parts(*parts, hashes, first_id, last_id, most))


def _part_bounds(hashes: NDArray[np.uint32], piece_count: int) -> NDArray[np.int64]:
    """Return where each part of some ascending hashes begins, and the end of the last one."""
    if not hashes.size:
        return np.zeros(1, np.int64)
    first, last = pieces_of(hashes[[0, -1]], piece_count).tolist()
    # By `first_hash_of`.
    least = -((-np.arange(first + 1, last + 1) << _HASH_BITS) // piece_count)
    places = np.searchsorted(hashes, least.astype(np.uint32))
    firsts = np.unique(np.concatenate([[0], places, [hashes.size]]))
    divided = [
        np.arange(begin, end, MOST_ENTRIES_A_PART)
        for begin, end in pairwise(firsts.tolist())
        if end - begin > MOST_ENTRIES_A_PART
    ]
    return np.unique(np.concatenate([firsts, *divided])).astype(np.int64)


@kernel
def _narrowed(starts, values):
    hashes = empty(values.size, np.uint64)
    for row in range(starts.size - 1):
        for i in range(starts[row], starts[row + 1]):
            hashes[i] = np.uint64(_hash_of(values[i]))
        sort_part(hashes, starts[row], starts[row + 1])
    return hashes


@kernel
def _keys_of_pieces(starts, values, places, piece_count, first, last):
    """Return (hash << 32 | position of the row) of the entries of the pieces first to last - 1."""
    count = 0
    for row in range(places.size):
        for i in range(starts[places[row]], starts[places[row] + 1]):
            piece = (np.int64(_hash_of(values[i])) * piece_count) >> 32
            count += first <= piece < last
    keys = empty(count, np.uint64)
    used = 0
    for row in range(places.size):
        for i in range(starts[places[row]], starts[places[row] + 1]):
            hashed = _hash_of(values[i])
            if first <= (np.int64(hashed) * piece_count) >> 32 < last:
                keys[used] = (np.uint64(hashed) << np.uint64(32)) | np.uint64(row)
                used += 1
    return keys
