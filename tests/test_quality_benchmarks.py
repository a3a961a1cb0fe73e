"""The benchmarks of quality: what they count against is right, and they run."""

from __future__ import annotations

import random
import re
from pathlib import Path

import numpy as np
import pytest

from benchmarks import languages, peers
from benchmarks.exact_pairs import rows_of, similar_pairs
from benchmarks.materials import edited, planted_edits
from benchmarks.peer_packages import PEERS
from benchmarks.recall import WATCHED, confirmed_pairs, distinct_texts, of_distinct, scan
from benchmarks.scores import score
from db_dedup.config import watched_table
from db_dedup.flow.compare.kernels import similarities
from db_dedup.flow.pipeline import Fingerprinter
from db_dedup.sample import generate_petitions


def contents(count: int) -> list[str]:
    return [petition.content for petition in generate_petitions(count).petitions]


@pytest.mark.parametrize(("measure", "threshold"), [("word_jaccard", 0.2), ("char_overlap", 0.57)])
def test_every_similar_pair_is_counted(measure: str, threshold: float) -> None:
    features = Fingerprinter(WATCHED.recipe).fingerprint([(text,) for text in contents(300)]).features
    left, right = (side.astype(np.int32) for side in np.triu_indices(300, 1))
    every = similarities(measure, features.starts, features.hashes, features.weights, left, right)
    wanted = set(zip(left[every >= threshold].tolist(), right[every >= threshold].tolist(), strict=True))
    pairs = similar_pairs(features, measure, threshold)
    assert len(wanted) > 20
    assert set(zip(pairs.left.tolist(), pairs.right.tolist(), strict=True)) == wanted
    assert len(wanted) == pairs.similarities.size == pairs.jaccards.size


def test_some_rows_keep_their_features() -> None:
    features = Fingerprinter(WATCHED.recipe).fingerprint([(text,) for text in contents(20)]).features
    some = rows_of(features, np.array([3, 7, 19]))
    for place, row in enumerate((3, 7, 19)):
        kept = some.hashes[some.starts[place] : some.starts[place + 1]]
        assert kept.tolist() == features.hashes[features.starts[row] : features.starts[row + 1]].tolist()


def test_a_scan_is_held_against_distinct_texts() -> None:
    texts = [*contents(200), "路灯不亮三个月了", "路灯不亮三个月", "三月以来路灯不亮"]
    keys, frames = scan(texts)
    distinct = distinct_texts(texts, WATCHED, frames)
    assert distinct.lengths.size == distinct.has_fingerprint.size == distinct.class_of.max() + 1
    assert distinct.lengths.size < len(texts)
    pairs = confirmed_pairs(distinct, WATCHED)
    wanted = set(zip(pairs.left.tolist(), pairs.right.tolist(), strict=True))
    assert tuple(distinct.class_of[[200, 201]].tolist()) in wanted, "few edits"
    found = {(pair >> 32, pair & 0xFFFFFFFF) for pair in of_distinct(keys, distinct.class_of).tolist()}
    assert len(found) > 10
    assert found <= wanted


def test_edits_are_at_most_as_many_as_asked_for() -> None:
    rng = random.Random(3)
    for count in range(1, 6):
        text = edited("甲" * 40, count, "乙", rng)
        assert text.count("甲") >= 40 - count
        assert abs(len(text) - 40) <= count
        assert text != "甲" * 40


def test_planted_pairs_are_unlike_all_others() -> None:
    material = planted_edits(None, 200, 50)
    assert len(material.edits) == 50
    assert material.edits.keys() <= material.wanted
    assert sorted(set(material.edits.values())) == [1, 2, 3, 4, 5]
    texts = [row["text"] for row in material.rows]
    features = Fingerprinter(WATCHED.recipe).fingerprint([(text,) for text in texts]).features
    alike = similar_pairs(features, "overlap", 0.6)
    assert set(zip(alike.left.tolist(), alike.right.tolist(), strict=True)) <= material.wanted


def test_pairs_are_scored() -> None:
    result = score({(1, 2), (3, 4), (5, 6)}, {(1, 2), (3, 4), (7, 8), (9, 10)})
    assert (result.precision, result.recall) == (2 / 3, 0.5)
    assert result.f1 == pytest.approx(4 / 7)


def test_candidates_of_large_sets_are_not_measured(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The prefixes of short texts propose millions of pairs: to measure them all takes many minutes."""
    monkeypatch.setattr(languages, "_MOST_COUNTED", 100)
    watched = watched_table("texts", {"columns": {"text": 1}})
    for count in (100, 101):
        languages._report(f"rows-{count}", "all", contents(count), watched)
    few, many = (line.split() for line in capsys.readouterr().out.splitlines())
    assert int(few[3].replace(",", "")) > 0
    assert many[2:4] == ["101", "-"]


def test_presets_are_measured_and_missing_packages_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    missing = [peer for peer in PEERS if peer.missing()]
    monkeypatch.setattr(peers, "PEERS", missing)
    peers.run(None, peers.SMALL)
    printed = capsys.readouterr().out
    assert printed.count("NOT MEASURED") == len(missing)
    found = re.search(r"^db-dedup +preset balanced +(\d+) +([\d.]+) +([\d.]+)", printed, re.MULTILINE)
    assert found is not None
    assert float(found[3]) > 0.9
