"""How many of all similar pairs a scan at the default preset finds, counted against every pair that there is.

Similar are the pairs of distinct texts that the rule of the default preset confirms, with the frames that the
scan left out: exact duplicates are found by their digests, and would only raise the share. So this measures
the candidate generators alone.
"""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import select

from benchmarks.datasets import read_articles, read_replies
from benchmarks.exact_pairs import SimilarPairs, rows_of, similar_pairs
from benchmarks.scanning import fill, watch
from db_dedup import Deduplicator
from db_dedup.app import Database
from db_dedup.config import WatchedTable
from db_dedup.flow.compare.kernels import similarities
from db_dedup.flow.compare.rows import ComparedRows
from db_dedup.flow.compare.rule import Rule
from db_dedup.flow.features.details import CHARACTERS, SECTIONS
from db_dedup.flow.pipeline import Fingerprinter, joined_rows
from db_dedup.flow.rows.digest import NO_FEATURES_DIGEST
from db_dedup.flow.text.normalise import normalise_batch
from db_dedup.records.frames import NO_FRAMES, FrameList
from db_dedup.schema.tables import our_tables

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
        f"all pairs of distinct texts that the default preset confirms ({rule.similarity} >= "
        f"{rule.threshold}), and the share of them that a scan finds; wanted: {TARGET}"
    )
    report("articles of law", [str(row["text"]) for row in read_articles(data)[: sizes.rows]])
    report("replies of cofacts", read_replies(data)[: sizes.rows])


@dataclass(frozen=True)
class Distinct:
    """Texts without their copies.

    Attributes:
        class_of: int64[n], of each given text the number of its distinct one; -1 where it says nothing.
        places: int64[m], of each distinct text the first given text that is equal.
        rows: the n given texts as they are compared.
        lengths: int64[m], in characters, normalised.
    """

    class_of: NDArray[np.int64]
    places: NDArray[np.int64]
    rows: ComparedRows
    lengths: NDArray[np.int64]

    @property
    def has_fingerprint(self) -> NDArray[np.bool_]:
        """bool[m]."""
        return self.rows.has_fingerprint[self.places]


def report(name: str, texts: Sequence[str]) -> None:
    """Print what is found of one kind of texts."""
    keys, frames = scan(texts)
    distinct = distinct_texts(texts, WATCHED, frames)
    pairs = confirmed_pairs(distinct, WATCHED)
    found = of_distinct(keys, distinct.class_of)
    is_found = np.isin(_packed(pairs.left, pairs.right), found)
    unconfirmed = found.size - np.count_nonzero(is_found)
    print(
        f"\n{name}: {len(texts):,} texts, {distinct.lengths.size:,} distinct; {pairs.left.size:,} similar "
        f"pairs, {np.count_nonzero(is_found):,} found: recall {_share(is_found)}"
    )
    if unconfirmed:
        print(f"{unconfirmed:,} pairs were found that are not similar: the scan or this benchmark is wrong")
    shorter = np.minimum(distinct.lengths[pairs.left], distinct.lengths[pairs.right])
    _print_bands("characters of the shorter text", shorter, _LENGTHS, is_found)
    _print_bands("Jaccard similarity", pairs.jaccards, _JACCARDS, is_found)
    _print_missed(distinct, pairs, is_found)


def distinct_texts(texts: Sequence[str], watched: WatchedTable, frames: FrameList = NO_FRAMES) -> Distinct:
    """Steps 2 to 4 of all texts; copies are those with equal digests."""
    fingerprinter = Fingerprinter(replace(watched.recipe, frames=frames))
    done = joined_rows(
        [
            fingerprinter.fingerprint([(text,) for text in texts[i : i + _PAGE_ROWS]])
            for i in range(0, len(texts), _PAGE_ROWS)
        ]
    )
    numbers: dict[bytes, int] = {}
    firsts: list[int] = []
    class_of = np.full(len(texts), -1, np.int64)
    for row, digest in enumerate(done.digests):
        if digest == NO_FEATURES_DIGEST:
            continue
        if digest not in numbers:
            numbers[digest] = len(firsts)
            firsts.append(row)
        class_of[row] = numbers[digest]
    return Distinct(
        class_of,
        np.array(firsts, np.int64),
        done.compared([None] * len(texts)),
        np.array([len(text) for text in normalise_batch([texts[row] for row in firsts])], np.int64),
    )


def confirmed_pairs(distinct: Distinct, watched: WatchedTable) -> SimilarPairs:
    """All pairs of distinct texts that the rule confirms, by comparing all that can be similar."""
    rule = Rule(watched.setting)
    features = rows_of(distinct.rows.features, distinct.places)
    by_measure = similar_pairs(features, watched.rule.similarity, watched.rule.threshold)
    parts = [(by_measure.left, by_measure.right), *_short_pairs(distinct)]
    kept = []
    for left, right in parts:
        places = (distinct.places[side].astype(np.int32) for side in (left, right))
        is_duplicate, _, _ = rule.confirm(distinct.rows, *places)
        kept.append(_packed(left[is_duplicate], right[is_duplicate]))
    packed = np.unique(np.concatenate(kept))
    left, right = (packed >> 32).astype(np.int32), (packed & 0xFFFFFFFF).astype(np.int32)
    arrays = (features.starts, features.hashes, features.weights, left, right)
    of_rule, jaccards = (similarities(name, *arrays) for name in (watched.rule.similarity, "word_jaccard"))
    return SimilarPairs(left, right, of_rule, jaccards)


def _short_pairs(distinct: Distinct) -> Iterator[tuple[NDArray[np.int32], NDArray[np.int32]]]:
    """Yield every two short texts, those of one text at a time: similar ones may share no 3-gram."""
    sizes = distinct.rows.details.counts[CHARACTERS::SECTIONS][distinct.places]
    short = np.flatnonzero(sizes).astype(np.int32)
    for i in range(short.size - 1):
        yield np.full(short.size - i - 1, short[i], np.int32), short[i + 1 :]


def scan(texts: Sequence[str]) -> tuple[NDArray[np.int64], FrameList]:
    """Return (int64[p, 2] the pairs that a scan of a SQLite file finds, the frames that it left out)."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "texts.db"
        fill(file, [{"text": text} for text in texts])
        with closing(Database(f"sqlite:///{file}")) as database:
            dedup = Deduplicator(database, WATCHED)
            dedup.upgrade()
            dedup.scan()
            keys = [(int(pair.key_a), int(pair.key_b)) for pair in dedup.pairs()]
            with database.engine.connect() as connection:
                grams = connection.scalar(select(our_tables(database.namespace).frame_list.c.grams))
    return np.array(keys, np.int64).reshape(-1, 2), FrameList.from_text(grams) if grams else NO_FRAMES


def of_distinct(keys: NDArray[np.int64], class_of: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return int64[k]: the pairs of distinct texts among the pairs of keys, ascending, packed."""
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
