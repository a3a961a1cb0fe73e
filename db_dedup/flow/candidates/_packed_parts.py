"""The kernels of `segments` that pack entries bit by bit, and read them again."""

from typing import Final

import numpy as np

from db_dedup.flow._arrays import place_in, resized
from db_dedup.flow._compiled import inner, kernel
from db_dedup.flow._new_arrays import empty, zeros
from db_dedup.flow.candidates._bits import get_bits, get_rice, get_unary, put_bits, put_unary

MOST_ENTRIES_A_PART: Final = 4096
"""A piece that has more is divided into several parts."""
_MOST_BYTES_AN_ENTRY: Final = 24
_HEADER_BYTES: Final = 17

# Widths as numba's integers, not as literals: for each literal it would compile another function.
_8, _16, _32, _64 = np.int64(8), np.int64(16), np.int64(32), np.int64(64)


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
def pack_parts(hashes, ids, bounds):
    """Return (uint8[m] all parts, int64[p] where each ends)."""
    parts = bounds.size - 1
    packed = zeros(hashes.size * _MOST_BYTES_AN_ENTRY + (parts + 1) * (_HEADER_BYTES + 16), np.uint8)
    ends = empty(parts, np.int64)
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
def unpack_parts(packed, begins, ends):
    """Return (uint32[e] hashes, int64[e] ids) of all entries of some parts.

    Args:
        packed: uint8[m], the parts, and the bytes after them that `get_bits` asks for.
        begins: int64[p], where each part begins.
        ends: int64[p], where it ends.
    """
    used = np.int64(0)
    hashes, ids = empty(MOST_ENTRIES_A_PART, np.uint32), empty(MOST_ENTRIES_A_PART, np.int64)
    for part in range(begins.size):
        if used + MOST_ENTRIES_A_PART > ids.size:
            hashes, ids = resized(hashes, 2 * ids.size), resized(ids, 2 * ids.size)
        used = _unpack_part(packed, begins[part] * 8, ends[part] * 8, hashes, ids, used)
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
def find_in_parts(packed, begins, ends, wanted, first_id, last_id, most):
    """Return (uint64[l] hashes, int64[l] where the ids of each end, int64[e] ids) of the wanted entries.

    Args:
        packed: as for `unpack_parts`.
        begins: as for `unpack_parts`.
        ends: as for `unpack_parts`.
        wanted: uint32[n] hashes, ascending and distinct.
        first_id: of the rows that are wanted.
        last_id: of these.
        most: entries.
    """
    used, lists, most_lists = np.int64(0), np.int64(0), wanted.size + begins.size + 1
    hashes, list_ends = empty(most_lists, np.uint64), empty(most_lists, np.int64)
    ids = empty(MOST_ENTRIES_A_PART, np.int64)
    for part in range(begins.size):
        if used + MOST_ENTRIES_A_PART > ids.size:
            ids = resized(ids, 2 * ids.size)
        used, lists = _find_in_part(
            packed, begins[part] * 8, ends[part] * 8, wanted, first_id, last_id, most,
            hashes, list_ends, ids, used, lists,
        )  # fmt: skip
    return hashes[:lists].copy(), list_ends[:lists].copy(), ids[:used].copy()


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
            if lists == hashes.size:
                raise ValueError("a piece of the index has too many rows")
            hashes[lists], ends[lists] = hashed, used
            lists += 1
    return used, lists
