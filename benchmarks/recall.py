"""How many of all similar pairs a scan at the default preset finds, counted against every pair that there is.

What counts is the preset's own measure at its own threshold, between distinct texts: copies are found by
their digests, and would only swell the share. So this measures the proposers alone, SimHash and bands.
"""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.datasets import read_articles, read_replies
from benchmarks.exact_pairs import SimilarPairs, rows_of, similar_pairs
from benchmarks.scanning import fill, scan_copy, watch
from db_dedup.config import WatchedTable
from db_dedup.engines.embedded.table_scan import MEASURE_OF
from db_dedup.engines.fingerprinter import Fingerprinter
from db_dedup.engines.row_texts import NOTHING_TO_SAY
from db_dedup.flow.features import Features, concatenate_features
from db_dedup.flow.normalise import normalise_batch

TARGET = 0.97
# Every pair is wanted, also of groups past the usual limit.
WATCHED = watch({"text": 1}, abridge_above=1_000_000_000)
_PAGE_ROWS = 5000
_LENGTHS = (0, 20, 50, 100, 200, 400)
_JACCARDS = (0.0, 0.3, 0.4, 0.5, 0.6, 0.8)


@dataclass(frozen=True)
class Sizes:
    """At most so many texts of each kind."""

    rows: int = 1_000_000


SMALL = Sizes(rows=2_000)


def run(data: Path | None, sizes: Sizes = Sizes()) -> None:
    """Print the recall, and what is missed by length, by similarity and by reason."""
    assert data is not None
    rule = WATCHED.rule
    print(
        f"all pairs of distinct texts with {rule.similarity} >= {rule.threshold}, and the share of them that "
        f"a scan finds at the default preset; wanted: {TARGET}"
    )
    report("articles of law", [str(row["text"]) for row in read_articles(data)[: sizes.rows]])
    report("replies of cofacts", read_replies(data)[: sizes.rows])


@dataclass(frozen=True)
class Distinct:
    """Texts without their copies.

    Attributes:
        class_of: int64[n], of each given text the number of its distinct one; -1 where it says nothing.
        features: of the m distinct texts.
        lengths: int64[m], in characters, normalised.
        has_fingerprint: bool[m].
    """

    class_of: NDArray[np.int64]
    features: Features
    lengths: NDArray[np.int64]
    has_fingerprint: NDArray[np.bool_]


def report(name: str, texts: Sequence[str]) -> None:
    """Print what is found of one kind of texts."""
    distinct = distinct_texts(texts, WATCHED)
    pairs = similar_pairs(
        distinct.features, MEASURE_OF[WATCHED.rule.similarity] or "", WATCHED.rule.threshold
    )
    found = scan(texts, distinct.class_of)
    is_found = np.isin(_packed(pairs.left, pairs.right), found)
    strangers = found.size - np.count_nonzero(is_found)
    print(
        f"\n{name}: {len(texts):,} texts, {distinct.lengths.size:,} distinct; {pairs.left.size:,} similar "
        f"pairs, {np.count_nonzero(is_found):,} found: recall {_share(is_found)}"
    )
    if strangers:
        print(f"{strangers:,} pairs were found that are not similar: one of the two is wrong")
    shorter = np.minimum(distinct.lengths[pairs.left], distinct.lengths[pairs.right])
    _print_bands("characters of the shorter text", shorter, _LENGTHS, is_found)
    _print_bands("Jaccard similarity", pairs.jaccards, _JACCARDS, is_found)
    _print_missed(distinct, pairs, is_found)


def distinct_texts(texts: Sequence[str], watched: WatchedTable) -> Distinct:
    """Steps 2 to 4 of all texts; copies are those with equal digests."""
    fingerprinter = Fingerprinter(watched)
    parts = [
        fingerprinter.fingerprint([(text,) for text in texts[i : i + _PAGE_ROWS]])
        for i in range(0, len(texts), _PAGE_ROWS)
    ]
    numbers: dict[bytes, int] = {}
    firsts: list[int] = []
    class_of = np.full(len(texts), -1, np.int64)
    for row, digest in enumerate(digest for part in parts for digest in part.digests):
        if digest == NOTHING_TO_SAY:
            continue
        if digest not in numbers:
            numbers[digest] = len(firsts)
            firsts.append(row)
        class_of[row] = numbers[digest]
    rows = np.array(firsts, np.int64)
    return Distinct(
        class_of,
        rows_of(concatenate_features([part.features for part in parts]), rows),
        np.array([len(text) for text in normalise_batch([texts[row] for row in firsts])], np.int64),
        np.concatenate([part.has_fingerprint for part in parts])[rows],
    )


def scan(texts: Sequence[str], class_of: NDArray[np.int64]) -> NDArray[np.int64]:
    """int64[k]: the pairs of distinct texts that a scan of a SQLite file finds, ascending, packed."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "source.db"
        fill(source, [{"text": text} for text in texts])
        keys = np.array(list(scan_copy(source, WATCHED, expand=False)), np.int64).reshape(-1, 2)
    classes = class_of[keys]
    classes = classes[classes[:, 0] != classes[:, 1]]
    return np.unique(_packed(classes.min(axis=1), classes.max(axis=1)))


def _packed(left: NDArray[np.signedinteger], right: NDArray[np.signedinteger]) -> NDArray[np.int64]:
    """Two row numbers in one."""
    return (left.astype(np.int64) << 32) | right.astype(np.int64)


def _print_bands(
    name: str,
    values: NDArray[np.floating] | NDArray[np.integer],
    starts: Sequence[float],
    is_found: NDArray[np.bool_],
) -> None:
    print(f"{name:<34} {'pairs':>9} {'missed':>9} {'recall':>7}")
    bands = np.digitize(values, starts) - 1
    for band, start in enumerate(starts):
        chosen = is_found[bands == band]
        print(f"from {start:<29} {chosen.size:>9,} {np.count_nonzero(~chosen):>9,} {_share(chosen):>7}")


def _print_missed(distinct: Distinct, pairs: SimilarPairs, is_found: NDArray[np.bool_]) -> None:
    """Each missed pair under the first reason that holds."""
    has = distinct.has_fingerprint
    is_short = ~(has[pairs.left] & has[pairs.right])
    is_contained = ~is_short & (pairs.jaccards < _JACCARDS[1])
    reasons = {
        "too few words for a fingerprint": is_short,
        "a short text inside a longer one": is_contained,
        "no band in common by chance": ~is_short & ~is_contained,
    }
    print(f"{'missed because':<34} {'pairs':>9} {'missed':>9}")
    for reason, holds in reasons.items():
        print(f"{reason:<34} {np.count_nonzero(holds):>9,} {np.count_nonzero(holds & ~is_found):>9,}")


def _share(is_found: NDArray[np.bool_]) -> str:
    return f"{np.mean(is_found):.4f}" if is_found.size else "-"
