"""Rows whose hashes are mixed with a key: they are compared as before, and contain no text.

What the rule compares of two rows is whether numbers are equal: hashes of 3-grams, symbols of short texts,
parts of place names. So each is replaced by its hash with a key, and two rows with the same key are as
alike as before. Only the numbers in short texts (`compare.numbers`) have a value that matters: they are
listed with keyed hashes, too, and compared by `have_other_numbers` here instead of in the kernel.
"""

import io
from dataclasses import replace
from hashlib import blake2b
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from db_dedup.flow._mix import mix
from db_dedup.flow.candidates.sketches import Sketches
from db_dedup.flow.compare.numbers import list_numbers
from db_dedup.flow.features.characters import with_sets
from db_dedup.flow.features.counting import Features
from db_dedup.flow.features.details import CHARACTERS, LONG_GRAMS, PLACES, Details, join_sections
from db_dedup.flow.features.places import keyed_names
from db_dedup.flow.pipeline import FingerprintedRows

KEY_BYTES: Final = 16
_VALUE: Final = np.uint64(1 << 63)
_ONE: Final = np.uint64(1)

_mix = mix.py_func  # the uncompiled function, which takes whole arrays

_Numbers = NDArray[np.uint64]
"""uint64[k, 3]: for each number of a short text, keyed, the symbol before it, the one after it, its value."""


class KeyedRow(NamedTuple):
    """One row.

    Attributes:
        done: what was computed of it, mixed with the key.
        within: the keyed hash of what it must share with a duplicate; None if there is nothing.
        numbers: of a short text.
    """

    done: FingerprintedRows
    within: str | None
    numbers: _Numbers


def keyed_row(done: FingerprintedRows, row: int, within: str | None, key: bytes) -> KeyedRow:
    """Return one of n rows, mixed with a key.

    Args:
        done: what was computed of the n rows.
        row: its number.
        within: the text that it must share with a duplicate.
        key: 16 bytes.
    """
    mixer = _Mixer(key)
    one = _only(done, row)
    symbols = one.details.of(0, CHARACTERS)[1:]
    numbers = list_numbers(symbols)
    keyed = replace(
        one,
        features=mixer.features(one.features),
        details=mixer.details(one.details),
        sketches=mixer.sketches(one.sketches),
    )
    hashed = None if within is None else blake2b(within.encode(), key=key, digest_size=16).hexdigest()
    return KeyedRow(keyed, hashed, mixer.mixed(numbers.ravel()).reshape(-1, 3))


def have_other_numbers(one: _Numbers, other: _Numbers) -> bool:
    """Return whether each of two short texts has a number where the other has only different numbers."""
    return _has_other(one, other) and _has_other(other, one)


def pack(row: KeyedRow, key: bytes) -> bytes:
    """Return a row and its key as bytes."""
    done, packed = row.done, io.BytesIO()
    np.savez(
        packed,
        key=np.frombuffer(key, np.uint8),
        fingerprint=done.fingerprints,
        has_fingerprint=done.has_fingerprint,
        digest=np.frombuffer(done.digests[0], np.uint8),
        hashes=done.features.hashes,
        weights=done.features.weights,
        detail_starts=done.details.starts,
        details=done.details.values,
        sketch=done.sketches.values,
        form=done.forms,
        compares_grams=np.array([done.compares_grams]),
        within=np.frombuffer((row.within or "").encode(), np.uint8),
        numbers=row.numbers,
    )
    return packed.getvalue()


def unpack(packed: bytes) -> tuple[KeyedRow, bytes]:
    """Return (the row, its key)."""
    with np.load(io.BytesIO(packed), allow_pickle=False) as found:
        part = dict(found)
    done = FingerprintedRows(
        part["fingerprint"],
        part["has_fingerprint"],
        [part["digest"].tobytes()],
        Features(_one_slice(part["hashes"]), part["hashes"], part["weights"]),
        Details(part["detail_starts"], part["details"]),
        Sketches(_one_slice(part["sketch"]), part["sketch"]),
        np.zeros(1, np.bool_),
        np.zeros(1, np.bool_),
        part["form"],
        bool(part["compares_grams"][0]),
    )
    row = KeyedRow(done, part["within"].tobytes().decode() or None, part["numbers"])
    return row, part["key"].tobytes()


class _Mixer:
    """Replaces numbers by their keyed hashes."""

    def __init__(self, key: bytes) -> None:
        self._before, self._after = np.frombuffer(key, np.uint64)

    def mixed(self, values: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Return uint64[m], a bijective hash of each value."""
        mixed: NDArray[np.uint64] = _mix(_mix(values ^ self._before) ^ self._after)
        return mixed

    def features(self, features: Features) -> Features:
        hashes = self.mixed(features.hashes)
        order = np.argsort(hashes)
        return Features(features.starts, hashes[order], features.weights[order])

    def sketches(self, sketches: Sketches) -> Sketches:
        """Keep the lowest bit, which tells two kinds of hashes apart."""
        values = (self.mixed(sketches.values >> _ONE) & ~_ONE) | (sketches.values & _ONE)
        distinct = np.unique(values)
        return Sketches(_one_slice(distinct), distinct)

    def details(self, details: Details) -> Details:
        symbols = details.of(0, CHARACTERS)[1:]
        counts = np.array([symbols.size], np.int64)
        sections = {
            CHARACTERS: with_sets(counts, self.mixed(symbols) | _VALUE),
            LONG_GRAMS: _section(np.sort(self.mixed(details.of(0, LONG_GRAMS)))),
            PLACES: _section(np.unique(keyed_names(details.of(0, PLACES), self.mixed))),
        }
        return join_sections(1, sections)


def _only(done: FingerprintedRows, row: int) -> FingerprintedRows:
    first, end = done.features.starts[row : row + 2]
    hashes, weights = done.features.hashes[first:end], done.features.weights[first:end]
    details = {each: _section(done.details.of(row, each)) for each in (CHARACTERS, LONG_GRAMS, PLACES)}
    sketch = done.sketches.of(row)
    return FingerprintedRows(
        done.fingerprints[row : row + 1],
        done.has_fingerprint[row : row + 1],
        [done.digests[row]],
        Features(_one_slice(hashes), hashes, weights),
        join_sections(1, details),
        Sketches(_one_slice(sketch), sketch),
        np.zeros(1, np.bool_),
        np.zeros(1, np.bool_),
        done.forms[row : row + 1],
        done.compares_grams,
    )


def _has_other(one: _Numbers, other: _Numbers) -> bool:
    for before, after, value in one.tolist():
        at_place = [each[2] for each in other.tolist() if (each[0], each[1]) == (before, after)]
        if at_place and value not in at_place:
            return True
    return False


def _one_slice(values: NDArray[np.uint64]) -> NDArray[np.int64]:
    return np.array([0, values.size], np.int64)


def _section(values: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    return _one_slice(values), values
