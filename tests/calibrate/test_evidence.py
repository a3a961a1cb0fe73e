"""What is gathered from rows: every pair that some setting finds, each pair of rows once."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from random import Random

import numpy as np
import pytest

from benchmarks.petitions import find_pairs
from db_dedup.config import watched_table
from db_dedup.flow.matching import measured_table
from db_dedup.flow.matching.measured_table import MeasuredRows, MeasuredTable, find_measured
from db_dedup.jobs.review.calibration.counting import is_found
from db_dedup.jobs.review.calibration.evidence import gather
from db_dedup.records import PairSetting, SourceRow
from db_dedup.sample import generate_petitions

COLUMNS = {"title": 1, "content": 1}
SAMPLE = generate_petitions(300, seed=11, duplicate_share=0.5)
BOTH_WAYS = pytest.mark.parametrize("longest", [2, 200])
"""Every two rows that share a hash are compared, or the hashes that they share are counted."""


def rows_of(wide: MeasuredTable) -> MeasuredRows:
    rows = [SourceRow(str(p.id), None, (p.title, p.content), None) for p in SAMPLE.petitions]
    wide.add_page(rows[:100])
    wide.add_page(rows[100:])
    return wide.rows()


@pytest.mark.parametrize(
    "settings",
    [
        {"preset": "strict"},
        {"preset": "balanced"},
        {"radius": 11, "similarity": "word_jaccard", "threshold": 0.5, "sketches": False},
        {"radius": 7, "similarity": "cosine", "threshold": 0.8, "sketches": True},
        {"preset": "balanced", "exclude_kinds": ["edited"]},
        {"preset": "balanced", "user_words": ["烂尾楼", "反映 9 v"]},
        {"radius": 11, "similarity": "word_jaccard", "threshold": 0.3, "exclude_kinds": ["other_place"]},
    ],
)
def test_it_holds_what_a_scan_finds(settings: dict[str, object]) -> None:
    watched = watched_table("petitions", {"columns": COLUMNS, **settings})
    given = [{"id": p.id, "title": p.title, "content": p.content} for p in SAMPLE.petitions]
    expected = find_pairs(given, watched)
    labelled = dict.fromkeys(list(combinations(range(30), 2))[::7], False)
    with MeasuredTable(watched.recipe, watched.setting if watched.exclude_kinds else None) as wide:
        evidence = gather(rows_of(wide), labelled, 100_000)
    setting = watched.setting
    assert evidence.is_complete
    assert int(evidence.weights[is_found(evidence, setting)].sum()) == len(expected) > 40


@pytest.mark.parametrize(
    ("present", "judged"),
    [
        ({}, {"similarity": "char_jaccard", "threshold": 0.2}),
        ({}, {"similarity": "overlap", "threshold": 0.2}),
        ({"similarity": "char_jaccard", "threshold": 0.4}, {"threshold": 0.3}),
    ],
)
def test_it_holds_what_a_scan_by_another_measure_finds(
    present: dict[str, object], judged: dict[str, object]
) -> None:
    """The measure of the presets has sketches of its own: of short texts it keeps prefixes."""
    chance = Random(5)
    texts = [p.content[: chance.randrange(20, 140)] for p in SAMPLE.petitions]
    texts += [
        "".join(chance.choice("的一是了") if chance.random() < 0.2 else c for c in text) for text in texts
    ]
    columns = {"columns": {"content": 1}, "frames": False}
    now, then = (watched_table("petitions", {**columns, **given}) for given in (present, judged))
    expected = find_pairs([{"id": i, "content": text} for i, text in enumerate(texts)], then)
    with MeasuredTable(now.recipe, None, now.rule.short_threshold) as wide:
        wide.add_page([SourceRow(str(i), None, (text,), None) for i, text in enumerate(texts)])
        evidence = gather(wide.rows(), {(0, 1): False}, 1_000_000)
    setting = replace(then.setting, long_grams=False)
    assert evidence.is_complete
    assert int(evidence.weights[is_found(evidence, setting)].sum()) == len(expected) > 40


def test_copies_are_counted_by_rows_and_labels_taken_out() -> None:
    text = "小区的电梯已经停运三天，老人下楼买菜十分困难，物业说没有维修资金，请尽快督促修好"
    texts = [text, text, text, text + "谢谢", text + "谢谢", "完全不同的另一件事情，与上面没有任何关系"]
    watched = watched_table("petitions", {"columns": {"content": 1}})
    with MeasuredTable(watched.recipe) as wide:
        wide.add_page([SourceRow(str(i), None, (t,), None) for i, t in enumerate(texts)])
        rows = wide.rows()
        evidence = gather(rows, {(0, 1): True, (1, 4): True}, 1000)
    found = is_found(evidence, PairSetting(11, sketches=True, similarity="none", threshold=0.0))
    # 3 + 1 pairs of copies and 3 * 2 between the two texts, two of the ten labelled.
    assert int(evidence.weights[found & (evidence.labels < 0)].sum()) == 8
    assert evidence.labels[:2].tolist() == [1, 1]
    assert np.unique(evidence.groups).size == 1, "all rows hang together by copies and labels"


@BOTH_WAYS
def test_too_many_pairs_are_not_taken_for_all(longest: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measured_table, "_LONGEST_COMPARED", longest)
    with MeasuredTable(watched_table("petitions", {"columns": COLUMNS}).recipe) as wide:
        rows = rows_of(wide)
        _, is_complete = find_measured(rows, 11, 10)
        assert not is_complete
        assert not gather(rows, {(0, 1): True}, 10).is_complete


@BOTH_WAYS
def test_pairs_that_share_many_hashes_count_once(longest: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """So a limit that is not reached leaves none out."""
    monkeypatch.setattr(measured_table, "_LONGEST_COMPARED", longest)
    rows = []
    starts = "小区的电梯已经停运三天，老人下楼买菜十分困难", "建设路与和平路交叉口的路面塌陷已有两周"
    for start in starts:
        text = f"{start}，物业说没有维修资金，已经多次反映没有结果，请有关部门尽快督促修好并给予答复，谢谢"
        rows += [f"{text}第{n}次反映" for n in range(10)]
    with MeasuredTable(watched_table("petitions", {"columns": {"content": 1}}).recipe) as wide:
        wide.add_page([SourceRow(str(i), None, (text,), None) for i, text in enumerate(rows)])
        measured = wide.rows()
        pairs, is_all = find_measured(measured, 0, 10_000)
        count = pairs.left.size
        assert is_all
        assert count >= 90
        same, is_all = find_measured(measured, 0, count)
        assert (same.left.size, is_all) == (count, True)
        fewer, is_all = find_measured(measured, 0, count - 1)
        assert (fewer.left.size, is_all) == (count - 1, False)


@BOTH_WAYS
def test_candidates_that_were_cut_off_are_not_taken_for_all(
    longest: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that are left do not agree in `within`, so that no pair is found."""
    monkeypatch.setattr(measured_table, "_LONGEST_COMPARED", longest)
    text = "小区的电梯已经停运三天，老人下楼买菜十分困难，物业说没有维修资金，请有关部门尽快督促修好"
    recipe = watched_table("petitions", {"columns": {"content": 1}, "frames": False}).recipe
    with MeasuredTable(recipe) as wide:
        wide.add_page([SourceRow(str(i), None, (f"{text}第{i}次反映",), None) for i in range(12)])
        rows = wide.rows()
        for at_most, expected in ((1_000, True), (5, False)):
            _, is_all = find_measured(replace(rows, within=np.arange(12, dtype=np.int32)), 0, at_most)
            assert is_all is expected
