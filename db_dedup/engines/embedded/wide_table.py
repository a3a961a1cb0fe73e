"""A whole table with all that any rule could ask of its pairs: every measure, sketches and distance.

A scan keeps what its own rule asks for. To say what another rule would find, or which pairs a rule only just
finds, takes more: two sets of features a row. Nothing of it is stored.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from db_dedup.config import WatchedTable
from db_dedup.engines.embedded._wide import are_meeting, meeting_pairs
from db_dedup.engines.embedded.matching import NO_ROW, find_copies
from db_dedup.engines.embedded.rejections import pack, unpack
from db_dedup.engines.embedded.spool import FeatureSpool
from db_dedup.engines.embedded.table_scan import MEASURE_OF
from db_dedup.engines.fingerprinter import FingerprintedRows, Fingerprinter
from db_dedup.flow.candidates import candidate_pairs
from db_dedup.flow.features import Features
from db_dedup.flow.similarity import similarities
from db_dedup.flow.sketches import Sketches, entries, runs_of_equal
from db_dedup.records import SourceRow

FAR: Final = 99
"""The distance of two rows one of which has no fingerprint; beyond every radius."""

LENGTH_EDGES: Final = (50, 100, 200, 400)
"""Characters of the shorter text of a pair: where one length band ends and the next begins."""

MEASURES: Final = tuple(name for name, measure in MEASURE_OF.items() if measure is not None)


@dataclass(frozen=True)
class WideRows:
    """n rows in the order they were read.

    Attributes:
        row_keys: n row keys.
        digests: uint64[n, 2]; equal for copies.
        head_of: int32[n], the first row with the same digest.
        fingerprints: uint64[n].
        has_fingerprint: bool[n].
        within: int32[n], equal where rows agree in the `within` columns.
        lengths: int64[n], characters in the weighted columns.
        sketches: of the n rows.
        words: what the rule's segmenter makes of the rows.
        grams: their runs of three characters.
    """

    row_keys: list[str]
    digests: NDArray[np.uint64]
    head_of: NDArray[np.int32]
    fingerprints: NDArray[np.uint64]
    has_fingerprint: NDArray[np.bool_]
    within: NDArray[np.int32]
    lengths: NDArray[np.int64]
    sketches: Sketches
    words: Features
    grams: Features

    def digest(self, row: int) -> bytes:
        """The digest of a row's text."""
        return bytes(self.digests[row].tobytes())


@dataclass(frozen=True)
class WidePairs:
    """p pairs of rows with all that a rule could ask of them.

    Attributes:
        left: int32[p].
        right: int32[p].
        distances: int16[p], bits; `FAR` where a row has no fingerprint or the rows do not agree in `within`.
        shares_band: bool[p]; False where the distance is `FAR`.
        scores: every measure by its name, float64[p].
    """

    left: NDArray[np.int32]
    right: NDArray[np.int32]
    distances: NDArray[np.int16]
    shares_band: NDArray[np.bool_]
    scores: dict[str, NDArray[np.float64]]


class WideTable:
    """Takes all rows of a table, page by page. A context manager: the features are in temporary files."""

    def __init__(self, watched: WatchedTable) -> None:
        """Prepare the segmenter, which takes a moment."""
        self._fingerprinter = Fingerprinter(
            watched.model_copy(update={"similarity": "cosine", "bands": True})
        )
        # Runs of characters need no segmenter; this is the cheapest.
        by_grams = {"similarity": "char_overlap", "segmenter": "words", "bands": False}
        self._by_grams = Fingerprinter(watched.model_copy(update=by_grams))
        self._keys: list[str] = []
        self._lengths: list[int] = []
        self._within: list[int] = []
        self._within_numbers: dict[str | None, int] = {}
        self._done: list[tuple[NDArray[np.uint64], NDArray[np.bool_], bytes]] = []
        self._resources = ExitStack()

    def __enter__(self) -> Self:
        """Open the temporary files."""
        self._words = self._resources.enter_context(FeatureSpool(keep_weights=True))
        self._grams = self._resources.enter_context(FeatureSpool(keep_weights=True))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Remove them."""
        self._resources.close()

    def add_page(self, page: Sequence[SourceRow]) -> None:
        """Take some rows."""
        values, within = [row.values for row in page], [row.within for row in page]
        done: FingerprintedRows = self._fingerprinter.fingerprint(values, within)
        self._words.add(done.features)
        self._words.add_sketches(done.sketches)
        self._grams.add(self._by_grams.fingerprint(values, within).features)
        self._keys += [row.row_key for row in page]
        self._lengths += [sum(map(len, row.values)) for row in page]
        numbers = self._within_numbers
        self._within += [numbers.setdefault(row.within, len(numbers)) for row in page]
        self._done.append((done.fingerprints, done.has_fingerprint, b"".join(done.digests)))

    def rows(self) -> WideRows:
        """All rows that were taken; valid while the files are open."""
        digests = np.frombuffer(b"".join(part[2] for part in self._done), np.uint64).reshape(-1, 2)
        copy_of = find_copies(digests)
        return WideRows(
            self._keys,
            digests,
            np.where(copy_of == NO_ROW, np.arange(copy_of.size), copy_of).astype(np.int32),
            np.concatenate([np.empty(0, np.uint64), *(part[0] for part in self._done)]),
            np.concatenate([np.empty(0, np.bool_), *(part[1] for part in self._done)]),
            np.array(self._within, np.int32),
            np.array(self._lengths, np.int64),
            self._words.all_sketches(),
            self._words.all_features(),
            self._grams.all_features(),
        )


def length_bands(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """int64[n]: the number of the band that each length falls into."""
    return np.searchsorted(np.array(LENGTH_EDGES), lengths, side="right").astype(np.int64)


def find_wide(rows: WideRows, radius: int, at_most: int) -> tuple[WidePairs, bool]:
    """The pairs that some proposer proposes within this radius, none of whose rows is a copy.

    Args:
        rows: of the table.
        radius: bits.
        at_most: so many pairs; a table of near-equal rows has about their square.

    Returns:
        (the pairs, whether they are all).
    """
    is_head = (rows.head_of == np.arange(rows.head_of.size)) & rows.has_fingerprint
    heads = np.flatnonzero(is_head).astype(np.int32)
    found = np.empty(0, np.int64)
    is_all = True
    for left, right in _proposals(rows, heads, radius, at_most):
        agrees = rows.within[heads[left]] == rows.within[heads[right]]
        pairs = np.stack([heads[left[agrees]], heads[right[agrees]]], axis=1).astype(np.int64)
        found = np.union1d(found, pack(pairs))
        if found.size > at_most:
            is_all = False
            break
    both = unpack(found[:at_most]).astype(np.int32)
    return score_pairs(rows, both[:, 0], both[:, 1]), is_all


def score_pairs(rows: WideRows, left: NDArray[np.int32], right: NDArray[np.int32]) -> WidePairs:
    """All that a rule could ask of these pairs; copies are at distance 0 and similar in everything."""
    a, b = rows.head_of[left], rows.head_of[right]
    distances = np.bitwise_count(rows.fingerprints[a] ^ rows.fingerprints[b]).astype(np.int16)
    meets = are_meeting(rows.sketches.starts, rows.sketches.values, a, b)
    cannot = ~(rows.has_fingerprint[a] & rows.has_fingerprint[b]) | (rows.within[a] != rows.within[b])
    are_copies = a == b
    distances[cannot] = FAR
    distances[are_copies] = 0
    scores = {}
    for name in MEASURES:
        features = rows.grams if name.startswith("char_") else rows.words
        measure = MEASURE_OF[name]
        assert measure is not None  # noqa: S101 - as MEASURES is made
        score = similarities(measure, features.starts, features.hashes, features.weights, a, b)
        scores[name] = np.where(are_copies, 1.0, score)
    return WidePairs(left, right, distances, meets & ~cannot, scores)


def _proposals(
    rows: WideRows, heads: NDArray[np.int32], radius: int, at_most: int
) -> Iterator[tuple[NDArray[np.int32], NDArray[np.int32]]]:
    """Positions among the heads of the pairs that each proposer proposes."""
    places = heads.astype(np.int64)
    sketches = (rows.sketches.starts, rows.sketches.values, places)
    for values, positions in entries(rows.sketches, places):
        yield meeting_pairs(*runs_of_equal(values, positions), sketches, at_most + 1)
    near: Iterable[tuple[NDArray[np.int32], NDArray[np.int32]]] = candidate_pairs(
        rows.fingerprints[heads], radius
    )
    yield from near
