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
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from db_dedup.flow._arrays import place_in, resized, sort_part
from db_dedup.flow._compiled import inner, kernel
from db_dedup.flow._mix import mix
from db_dedup.flow.candidates._bits import get_bits, get_rice, get_unary, put_bits, put_unary
from db_dedup.flow.candidates.postings import Postings
from db_dedup.flow.candidates.sketches import Sketches

ENTRIES_A_PIECE: Final = 256
"""On average: about a kilobyte. Four fit into a page of SQLite, and a look-up unpacks little in vain."""

MOST_ENTRIES_A_PART: Final = 4096
_MOST_BYTES_AN_ENTRY: Final = 24
_HEADER_BYTES: Final = 17
_SLACK_BYTES: Final = 16
_ENTRIES_A_SORT: Final = 1 << 20, 1 << 22  # the least, and the most, which take some 150 MB
_HASH_BITS: Final = 32
_LOW_BITS: Final = np.uint64((1 << _HASH_BITS) - 1)

# Widths as numba's integers, not as literals: for each literal it would compile another function.
_8, _16, _32, _64 = np.int64(8), np.int64(16), np.int64(32), np.int64(64)


class Entries(NamedTuple):
    """e entries: uint32[e] hashes, int64[e] ids of their rows."""

    hashes: NDArray[np.uint32]
    ids: NDArray[np.int64]

    def of_rows(self, first: int, last: int) -> "Entries":
        """Return the entries of the rows from the first to the last id."""
        chosen = (self.ids >= first) & (self.ids <= last)
        return Entries(self.hashes[chosen], self.ids[chosen])


class Part(NamedTuple):
    """A part of a piece: the number of the piece, the number of the part in it, and its packed entries."""

    piece: int
    part: int
    packed: bytes


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
    hashes = np.empty(values.size, np.uint32)
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
    bounds = _part_bounds(pieces_of(entries.hashes, piece_count))
    packed, ends = _pack(entries.hashes, entries.ids, bounds)
    firsts = pieces_of(entries.hashes[bounds[:-1]], piece_count).tolist()
    content = packed.tobytes()
    before, part, begin = -1, 0, 0
    for piece, end in zip(firsts, ends.tolist(), strict=True):
        part = part + 1 if piece == before else 0
        yield Part(piece, part, content[begin:end])
        before, begin = piece, end


def unpack(parts: Sequence[bytes]) -> Entries:
    """Return the entries of some parts, in their order; raises ValueError if a part is damaged."""
    return Entries(*_unpack(*_joined(parts)))


def find_postings(
    parts: Sequence[bytes], hashes: NDArray[np.uint32], first_id: int, last_id: int, most: int
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
    return Postings(*_find(*_joined(parts), hashes, first_id, last_id, most))


def _joined(parts: Sequence[bytes]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return all parts as one array, with some bytes after it, and where each begins and ends."""
    starts = np.cumsum([0, *map(len, parts)]).astype(np.int64)
    return np.frombuffer(bytearray().join([*parts, bytes(_SLACK_BYTES)]), np.uint8), starts


def _part_bounds(pieces: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return where each part begins, and the end of the last one."""
    firsts = np.append(np.flatnonzero(np.diff(pieces, prepend=-1)), pieces.size)
    divided = [
        np.arange(begin, end, MOST_ENTRIES_A_PART)
        for begin, end in zip(firsts[:-1].tolist(), firsts[1:].tolist(), strict=True)
        if end - begin > MOST_ENTRIES_A_PART
    ]
    return np.unique(np.concatenate([firsts, *divided])).astype(np.int64)


@kernel
def _narrowed(starts, values):
    hashes = np.empty(values.size, np.uint64)
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
    keys = np.empty(count, np.uint64)
    used = 0
    for row in range(places.size):
        for i in range(starts[places[row]], starts[places[row] + 1]):
            hashed = _hash_of(values[i])
            if first <= (np.int64(hashed) * piece_count) >> 32 < last:
                keys[used] = (np.uint64(hashed) << np.uint64(32)) | np.uint64(row)
                used += 1
    return keys


@inner
def _width(value):
    """Return how many bits a number has."""
    width = 0
    while value > 0:
        value >>= 1
        width += 1
    return width


@inner
def _put_rice(packed, place, value, shift):
    place = put_unary(packed, place, value >> shift)
    return put_bits(packed, place, np.uint64(value), shift)


@kernel
def _pack(hashes, ids, bounds):
    """Return (uint8[m] all parts, int64[p] where each ends)."""
    parts = bounds.size - 1
    packed = np.zeros(hashes.size * _MOST_BYTES_AN_ENTRY + (parts + 1) * (_HEADER_BYTES + 16), np.uint8)
    ends = np.empty(parts, np.int64)
    used = np.int64(0)
    for part in range(parts):
        first, last = bounds[part], bounds[part + 1]
        used = _pack_part(hashes[first:last], ids[first:last], packed, used)
        ends[part] = used
    return packed[:used].copy(), ends


@inner
def _pack_part(hashes, ids, packed, used):
    groups = 1
    for i in range(1, hashes.size):
        groups += hashes[i] != hashes[i - 1]
    base, highest = ids[0], ids[0]
    for i in range(1, ids.size):
        base, highest = min(base, ids[i]), max(highest, ids[i])
    id_bits = _width(highest - base)
    shift = max(0, _width((np.int64(hashes[-1]) - np.int64(hashes[0])) // groups) - 1)
    place = used * 8
    place = put_bits(packed, place, np.uint64(groups), _16)
    place = put_bits(packed, place, np.uint64(hashes[0]), _32)
    place = put_bits(packed, place, np.uint64(base), _64)
    place = put_bits(packed, place, np.uint64(id_bits), _8)
    place = put_bits(packed, place, np.uint64(shift), _8)
    place = put_bits(packed, place, np.uint64(0), _8)
    before, i = np.int64(hashes[0]) - 1, 0
    while i < hashes.size:
        length = 1
        while i + length < hashes.size and hashes[i + length] == hashes[i]:
            length += 1
        place = _put_rice(packed, place, np.int64(hashes[i]) - before - 1, shift)
        before = np.int64(hashes[i])
        length_bits = _width(length)
        place = put_unary(packed, place, length_bits - 1)
        place = put_bits(packed, place, np.uint64(length), length_bits - 1)
        if length == 1:
            place = put_bits(packed, place, np.uint64(ids[i] - base), id_bits)
        else:
            last, id_shift = base, max(0, id_bits - length_bits)
            for j in range(i, i + length):
                place = _put_rice(packed, place, ids[j] - last, id_shift)
                last = ids[j]
        i += length
    return (place + 7) // 8


@inner
def _header(packed, place, end):
    """Return (number of hashes, first hash, first id, width of ids, shift of hashes)."""
    if end - place < _HEADER_BYTES * 8:
        raise ValueError("a piece of the index is too short")
    groups = np.int64(get_bits(packed, place, end, _16))
    first = np.int64(get_bits(packed, place + 16, end, _32))
    base = np.int64(get_bits(packed, place + 48, end, _64))
    id_bits = np.int64(get_bits(packed, place + 112, end, _8))
    shift = np.int64(get_bits(packed, place + 120, end, _8))
    if id_bits > 63 or shift > 32:
        raise ValueError("a piece of the index has an impossible header")
    return groups, first, base, id_bits, shift


@inner
def _group(packed, place, end, before, shift):
    """Return (hash, number of its rows, place after them)."""
    gap, place = get_rice(packed, place, end, shift)
    length_bits, place = get_unary(packed, place, end)
    if length_bits > 12:
        raise ValueError("a piece of the index has too many rows")
    length = (np.int64(1) << length_bits) | np.int64(get_bits(packed, place, end, length_bits))
    return before + gap + 1, length, place + length_bits


@kernel
def _unpack(packed, starts):
    used = np.int64(0)
    hashes, ids = np.empty(MOST_ENTRIES_A_PART, np.uint32), np.empty(MOST_ENTRIES_A_PART, np.int64)
    for part in range(starts.size - 1):
        if used + MOST_ENTRIES_A_PART > ids.size:
            hashes, ids = resized(hashes, 2 * ids.size), resized(ids, 2 * ids.size)
        used = _unpack_part(packed, starts[part] * 8, starts[part + 1] * 8, hashes, ids, used)
    return hashes[:used].copy(), ids[:used].copy()


@inner
def _unpack_part(packed, place, end, hashes, ids, used):
    """Write the entries of a part; return how many there are then."""
    groups, first, base, id_bits, shift = _header(packed, place, end)
    place += _HEADER_BYTES * 8
    most, hashed = used + MOST_ENTRIES_A_PART, first - 1
    for _ in range(groups):
        hashed, length, place = _group(packed, place, end, hashed, shift)
        if used + length > most:
            raise ValueError("a piece of the index has too many rows")
        id_shift, row = _id_shift(id_bits, length), base
        for _ in range(length):
            delta, place = _id_delta(packed, place, end, id_bits, id_shift, length)
            row += delta
            hashes[used], ids[used] = hashed, row
            used += 1
    return used


@inner
def _id_shift(id_bits, length):
    return max(np.int64(0), id_bits - _width(length))


@inner
def _id_delta(packed, place, end, id_bits, id_shift, length):
    if length == 1:
        return np.int64(get_bits(packed, place, end, id_bits)), place + id_bits
    return get_rice(packed, place, end, id_shift)


@kernel
def _find(packed, starts, wanted, first_id, last_id, most):
    used, lists, most_lists = np.int64(0), np.int64(0), wanted.size + starts.size
    hashes, ends = np.empty(most_lists, np.uint64), np.empty(most_lists, np.int64)
    ids = np.empty(MOST_ENTRIES_A_PART, np.int64)
    for part in range(starts.size - 1):
        if used + MOST_ENTRIES_A_PART > ids.size:
            ids = resized(ids, 2 * ids.size)
        used, lists = _find_in_part(
            packed, starts[part] * 8, starts[part + 1] * 8, wanted, first_id, last_id, most,
            hashes, ends, ids, used, lists,
        )  # fmt: skip
    return hashes[:lists].copy(), ends[:lists].copy(), ids[:used].copy()


@inner
def _find_in_part(
    packed, place, end, wanted, first_id, last_id, most, hashes, ends, ids, used, lists
):  # fmt: skip
    """Write the wanted entries of a part, in lists; return how many entries and lists there are then."""
    groups, first, base, id_bits, shift = _header(packed, place, end)
    # The parts of a frequent hash have its rows one range of ids after another. Each begins another list.
    has_none = base > last_id or (id_bits < 62 and first_id - base >= np.int64(1) << id_bits)
    place += _HEADER_BYTES * 8
    hashed, left = first - 1, np.int64(MOST_ENTRIES_A_PART)
    position = place_in(wanted, np.uint32(first))
    for _ in range(np.int64(0) if has_none else groups):
        if position == wanted.size or used == most:
            break
        hashed, length, place = _group(packed, place, end, hashed, shift)
        while position < wanted.size and np.int64(wanted[position]) < hashed:
            position += 1
        is_wanted = position < wanted.size and np.int64(wanted[position]) == hashed
        if length == 1 and not is_wanted:
            place += id_bits
            continue
        left -= length
        if left < 0:
            raise ValueError("a piece of the index has too many rows")
        row, begin, id_shift = base, used, _id_shift(id_bits, length)
        for _ in range(length):
            delta, place = _id_delta(packed, place, end, id_bits, id_shift, length)
            row += delta
            if is_wanted and first_id <= row <= last_id and used < most:
                ids[used] = row
                used += 1
        if used > begin:
            hashes[lists], ends[lists] = hashed, used
            lists += 1
    return used, lists
