"""The loop of the digit trie, on arrays."""

import numpy as np

from db_dedup.flow._compiled import inner, kernel
from db_dedup.flow._new_arrays import empty

DIGITS = 42
"""Six limbs of seven decimal digits; the square of a 64-bit number has at most 39."""

_LIMB = np.uint64(10_000_000)
_LIMB_DIGITS = 7


@kernel
def insert(values, begin, children, keys, sizes, was_there):
    """Insert values[begin:] into the trie until they end or the arrays are full; return the first one left.

    Args:
        values: uint64[n].
        begin: index of the first value to insert.
        children: int32[nodes, 10]. 0: no child; a number above 0: an inner node; below 0: the leaf of key
            -number - 1.
        keys: uint64[k], the value of each leaf.
        sizes: int64[2], how many inner nodes and how many keys there are; changed in place.
        was_there: bool[n], set for each inserted value that the trie held already.
    """
    digits, other = empty(DIGITS, np.uint8), empty(DIGITS, np.uint8)
    for i in range(begin, values.size):
        if sizes[0] + DIGITS > children.shape[0] or sizes[1] == keys.size:
            return i
        write_square(values[i], digits)
        node, depth = 0, 0
        while children[node, digits[depth]] > 0:
            node = children[node, digits[depth]]
            depth += 1
        leaf = children[node, digits[depth]]
        if leaf < 0 and keys[-leaf - 1] == values[i]:
            was_there[i] = True
            continue
        keys[sizes[1]] = values[i]
        sizes[1] += 1
        if leaf < 0:
            # Two values share the digits so far: one inner node for each further digit that they share.
            write_square(keys[-leaf - 1], other)
            while True:
                children[node, digits[depth]] = sizes[0]
                node = sizes[0]
                sizes[0] += 1
                depth += 1
                if digits[depth] != other[depth]:
                    break
            children[node, other[depth]] = leaf
        children[node, digits[depth]] = -sizes[1]
    return values.size


@inner
def write_square(value, digits):
    """Write the decimal digits of the square of a 64-bit number to uint8[42], the first ones zero.

    The number is squared as three limbs of seven digits, so that no product exceeds 64 bits.
    """
    low, rest = value % _LIMB, value // _LIMB
    middle, high = rest % _LIMB, rest // _LIMB
    two = np.uint64(2)
    carry = np.uint64(0)
    place = DIGITS - 1
    for limb in range(DIGITS // _LIMB_DIGITS):
        total = carry
        if limb == 0:
            total += low * low
        elif limb == 1:
            total += two * low * middle
        elif limb == 2:
            total += two * low * high + middle * middle
        elif limb == 3:
            total += two * middle * high
        elif limb == 4:
            total += high * high
        carry, part = total // _LIMB, total % _LIMB
        for _ in range(_LIMB_DIGITS):
            digits[place] = part % np.uint64(10)
            part = part // np.uint64(10)
            place -= 1
