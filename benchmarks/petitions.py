"""Precision and recall on petitions with gold labels: the presets, and what was tried to choose them."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any, cast

import numpy as np

from benchmarks.datasets import read_gold_pairs, read_petitions
from db_dedup.config import WatchedTable, watched_table
from db_dedup.flow.compare.rule import Rule
from db_dedup.flow.matching.match import Matches, match_table
from db_dedup.flow.matching.measured_table import MeasuredTable
from db_dedup.flow.pipeline import Fingerprinter
from db_dedup.jobs.review.calibration.choosing import cross_validate
from db_dedup.jobs.review.calibration.counting import bootstrap, counts_by_group, is_found, score_by_length
from db_dedup.jobs.review.calibration.evidence import gather, numbered
from db_dedup.progress import NullProgress
from db_dedup.records import SourceRow
from db_dedup.records.frames import NO_FRAMES, FrameList

_BY_WORDS: dict[str, Any] = {"radius": 11, "sketches": False, "similarity": "word_jaccard", "threshold": 0.5}
_TRIED: list[dict[str, Any]] = [
    {"preset": "strict"},
    {"preset": "strict", "radius": 7},
    {"preset": "strict", "radius": 11},
    {"preset": "balanced"},
    *({"radius": radius} for radius in (7, 11)),
    *({"threshold": t} for t in (0.55, 0.6)),
    *(
        {**_BY_WORDS, **cast("dict[str, Any]", changed)}
        for changed in (
            *(
                {"term_frequency": f, "threshold": t}
                for f in ("set", "capped", "log", "raw")
                for t in (0.45, 0.5)
            ),
            *({"stop_words": "drop", "threshold": t} for t in (0.45, 0.5)),
            *({"radius": radius} for radius in (7, 9)),
            *({"threshold": t} for t in (0.4, 0.55, 0.6)),
            *({"similarity": "char_jaccard", "threshold": t} for t in (0.3, 0.36)),
            *({"similarity": "overlap", "threshold": t} for t in (0.65, 0.7)),
            *({"similarity": "cosine", "threshold": t} for t in (0.75, 0.8)),
            *({"segmenter": name} for name in ("jieba-search", "chars:2")),
        )
    ),
]


def run(data: Path | None) -> None:
    """Print a table of settings with what they find."""
    assert data is not None
    rows = read_petitions(data)
    gold = read_gold_pairs(data)
    wanted = {pair for pair, label in gold.items() if label == "V"}
    print(f"{len(rows):,} petitions, {len(wanted)} near-verbatim pairs (V); title and content as text")
    print(f"{'settings':<58} {'found':>6} {'precision':>9} {'recall':>7} {'F1':>6}")
    for settings in _TRIED:
        found = find_pairs(
            rows, watched_table("petitions", {"columns": {"title": 1, "content": 1}, **settings})
        )
        right = len(found & wanted)
        precision, recall = right / max(1, len(found)), right / len(wanted)
        f1 = 2 * precision * recall / (precision + recall) if right else 0.0
        name = ", ".join(f"{key} {value}" for key, value in settings.items())
        print(f"{name:<58} {len(found):>6} {precision:>9.3f} {recall:>7.3f} {f1:>6.3f}")
    _print_calibration(rows, gold)


def _print_calibration(rows: list[dict[str, object]], gold: Mapping[frozenset[str], str]) -> None:
    """One setting for all texts: how well it does when it is chosen without the petitions it is judged by."""
    watched = watched_table("petitions", {"columns": {"title": 1, "content": 1}})
    now = watched.setting
    with MeasuredTable(watched.recipe, None, watched.rule.short_threshold) as wide:
        wide.add_page(
            [SourceRow(str(r["id"]), None, (str(r["title"]), str(r["content"])), None) for r in rows]
        )
        wide_rows = wide.rows()
        numbers = {key: number for number, key in enumerate(wide_rows.row_keys)}
        by_label = {_by_number(pair, numbers): label for pair, label in gold.items()}
        labelled = {pair: label == "V" for pair, label in by_label.items()}
        evidence = numbered(gather(wide_rows, labelled, at_most=1_000_000).with_unlabelled_wrong())
    groups = int(evidence.groups.max()) + 1
    counts = counts_by_group(evidence, is_found(evidence, now), groups)
    (balanced, chosen), gain = bootstrap([counts, cross_validate(evidence, groups, now)])
    print("\nF1 on V with its 95 % interval, a bootstrap over groups of labelled pairs")
    for name, share in (
        ("preset balanced", balanced),
        ("chosen in five folds over groups", chosen),
        ("gain", gain),
    ):
        print(f"{name:<58} {share.value:.3f} ({share.low:.3f} to {share.high:.3f})")
    others = np.array([label == "S" for label in by_label.values()])
    found = is_found(evidence, now)[: others.size]
    print(f"balanced finds {np.count_nonzero(found & others)} of {np.count_nonzero(others)} pairs labelled S")
    print(f"{'characters of the shorter text':<58} {'V':>6} {'precision':>9} {'recall':>7} {'F1':>6}")
    for each in score_by_length(evidence, now):
        duplicates = each.score.right + each.score.missed
        shares = f"{each.score.precision.value:>9.3f} {each.score.recall.value:>7.3f} {each.score.f1:>6.3f}"
        print(f"from {each.start:<53} {duplicates:>6} {shares}")


def _by_number(pair: frozenset[str], numbers: Mapping[str, int]) -> tuple[int, int]:
    a, b = sorted(numbers[key] for key in pair)
    return a, b


def find_pairs(
    rows: list[dict[str, object]], watched: WatchedTable, frames: FrameList = NO_FRAMES
) -> set[frozenset[str]]:
    """All pairs of ids that the settings call duplicates."""
    done = Fingerprinter(replace(watched.recipe, frames=frames)).fingerprint(
        [[str(row[name]) for name in watched.columns] for row in rows]
    )
    table = done.compared([None] * len(rows))
    matches = match_table(table, Rule(watched.setting), watched.abridge_above, NullProgress())
    return _expanded(matches, [str(row["id"]) for row in rows])


def _expanded(matches: Matches, ids: list[str]) -> set[frozenset[str]]:
    classes: dict[int, list[str]] = {}
    for row, copy_of in enumerate(matches.copy_of.tolist()):
        classes.setdefault(row if copy_of < 0 else copy_of, []).append(ids[row])
    found = {frozenset(pair) for members in classes.values() for pair in combinations(members, 2)}
    for left, right in zip(matches.pairs.left.tolist(), matches.pairs.right.tolist(), strict=True):
        found |= {frozenset((a, b)) for a in classes[left] for b in classes[right]}
    return found
