"""The experiments of the papers: what they count is right, and they run, small."""

from __future__ import annotations

import csv
import gzip
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from benchmarks.__main__ import WITH_DATA, WITHOUT_DATA, main
from benchmarks.papers import (
    p1_clusters,
    p1_hashes,
    p1_quality,
    p1_stores,
    p3_short_texts,
    p4_news,
    p5_codes,
)
from benchmarks.papers.articles import read_labelled_texts
from benchmarks.papers.bucket_documents import (
    VARIABLE,
    BucketDocuments,
    NoServerError,
    block_names,
    open_documents,
)
from benchmarks.papers.petition_records import PLANTED, SUBJECTS, mix, with_weighted_columns
from benchmarks.papers.report import pieces_of_all_pairs, values_of_all_pairs, wanted_among_all
from db_dedup.methods import METHODS, Corpus, frequency, single_pass
from db_dedup.sample import generate_petitions

SQLITE = ("SQLite",)
FINDING = re.compile(
    r"^paper: .+\nours:  .+\n +(confirmed|not confirmed|cannot be compared): .+$", re.MULTILINE
)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A folder with petitions-gold, made up: rows 0 and 1 are near-verbatim, 2 and 3 different."""
    folder = tmp_path / "petitions-gold"
    folder.mkdir()
    petitions = generate_petitions(200, duplicate_share=0).petitions
    contents = [petition.content for petition in petitions]
    contents[1] = contents[0] + "谢谢"
    with gzip.open(folder / "petitions.csv.gz", "wt", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "user_id", "title", "created_at", "content"])
        for number, content in enumerate(contents):
            writer.writerow([1000 + number, "u", "t", "2020/1/1 10:00:00", content])
    (folder / "pairs.csv").write_text(
        "id_a,id_b,label,unsure\n1000,1001,V,0\n1002,1003,D,0\n1000,9999,V,0\n", encoding="utf-8"
    )
    return tmp_path


def findings(printed: str) -> list[str]:
    """The verdicts that were printed; each finding must have all its parts."""
    verdicts = FINDING.findall(printed)
    assert len(verdicts) == printed.count("paper: ")
    return verdicts


def texts_of(plot: Path) -> set[str | None]:
    """What is written in a plot."""
    return {element.text for element in ET.parse(plot).iter()}  # noqa: S314 - our own


def test_all_pairs_come_once_and_in_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.papers.report._PAIRS_A_PIECE", 7)
    for rows in (0, 1, 2, 9):
        pieces = list(pieces_of_all_pairs(rows))
        assert len(pieces) > 1 or rows < 9
        pairs = [pair for left, right in pieces for pair in zip(left.tolist(), right.tolist(), strict=True)]
        left, right = np.triu_indices(rows, 1)
        assert pairs == list(zip(left.tolist(), right.tolist(), strict=True))
    values = values_of_all_pairs(lambda left, right: (left * 10 + right).astype(np.float64), 9)
    is_wanted = wanted_among_all({(0, 1), (3, 5), (7, 8)}, 9)
    assert values[is_wanted].tolist() == [1.0, 35.0, 78.0]


def test_columns_weigh_two_and_null_nothing() -> None:
    petition = next(p for p in generate_petitions(50).petitions if p.phone is None and p.region is not None)
    corpus = with_weighted_columns([petition], Corpus([""], [["噪音", "噪音", "噪音", "扰民"]]))
    assert sorted(frequency(corpus).weights.tolist()) == sorted(
        [3, 1] + [2] * sum(
            getattr(petition, name) is not None for name in ("title", "region", "channel", "petitioner")
        )
    )  # fmt: skip


@pytest.mark.parametrize("keeps_columns", [True, False])
def test_a_mixture_names_the_copies_that_were_planted(keeps_columns: bool) -> None:
    mixture = mix(SUBJECTS["education"], 30, 16, keeps_columns=keeps_columns)
    assert list(mixture.kinds) == [(number, 30 + number) for number in range(16)]
    assert set(mixture.kinds.values()) == set(PLANTED)
    records = mixture.records
    assert {record.subject.name for record in records} <= set(SUBJECTS["education"])
    same = [records[a].channel == records[b].channel for a, b in mixture.kinds]
    assert all(same) == keeps_columns
    assert all(
        records[a].content == records[b].content for (a, b), kind in mixture.kinds.items() if kind == "exact"
    )
    assert all(
        records[a].content != records[b].content for (a, b), kind in mixture.kinds.items() if kind == "typo"
    )


def test_comparisons_of_the_index_are_those_within_buckets() -> None:
    # Rows 0 and 1 share three blocks, 0 and 2 the last one, 1 and 2 none.
    values = np.array([0x1111_2222_3333_4444, 0x1111_2222_3333_5555, 0x9999_8888_7777_4444], np.uint64)
    assert p1_clusters.bucket_comparisons(values) == 4


@pytest.mark.parametrize("seed", range(20))
def test_comparisons_of_single_pass_clustering_are_counted_without_doing_them(seed: int) -> None:
    rng = np.random.default_rng(seed)
    # Twelve centres with up to four bits changed: some rows are near to others, but to no first one.
    centres = rng.integers(0, 2**64, 12, dtype=np.uint64)
    values = rng.choice(centres, 300)
    for _ in range(4):
        values ^= np.uint64(1) << rng.integers(0, 64, values.size, dtype=np.uint64)
    counted = p1_clusters.single_pass_comparisons(values)
    assert counted == single_pass(values, p1_clusters.RADIUS).comparisons
    assert p1_clusters.single_pass_comparisons(values[:1]) == 0


def test_single_pass_clustering_of_many_rows_is_estimated(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(p1_clusters, "MEASURED", 500)
    plot = tmp_path / "plot.svg"
    p1_clusters.run(None, p1_clusters.SMALL, plot)
    printed = capsys.readouterr().out
    assert re.findall(r"^ +([\d,]+) +~\d", printed, re.MULTILINE) == ["1,000", "3,000"]
    assert re.findall(r"^ +([\d,]+) +\d+\.\d", printed, re.MULTILINE) == ["30", "100", "300", "30", "300"]
    assert "3,000 random fingerprints (estimated)" in printed
    assert "single-pass, estimated" in plot.read_text(encoding="utf-8")


def test_clusters_are_counted_and_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plot = tmp_path / "plot.svg"
    p1_clusters.run(None, p1_clusters.SMALL, plot)
    printed = capsys.readouterr().out
    assert len(findings(printed)) == 2
    lines = re.findall(r"^ +([\d,]+) +[\d.]+ +([\d,]+) +[\d.]+ +([\d,]+) ", printed, re.MULTILINE)
    counts = [[int(cell.replace(",", "")) for cell in line] for line in lines]
    assert [rows for rows, _, _ in counts] == [30, 100, 300, 300, 1_000, 3_000]
    assert all(index < single <= rows * (rows - 1) // 2 for rows, single, index in counts)
    assert {"single-pass", "index of blocks"} < texts_of(plot)


def test_hashes_are_timed_alone_and_in_simhash(capsys: pytest.CaptureFixture[str]) -> None:
    p1_hashes.run(None, p1_hashes.SMALL)
    printed = capsys.readouterr().out
    assert len(findings(printed)) == 1
    lines = re.findall(
        r"^ +([\d,]+) +[\d,]+  (hash|SimHash).+ \d+\.\d{3} +\d+\.\d{3} +\d+\.\d{3}$", printed, re.MULTILINE
    )
    assert lines == [(str(count), what) for count in (100, 200, 300) for what in ("hash", "SimHash")]


def test_each_method_finds_the_copies_that_it_must(capsys: pytest.CaptureFixture[str]) -> None:
    p1_quality.run(None, p1_quality.SMALL)
    printed = capsys.readouterr().out
    assert len(findings(printed)) == 3
    kept, _ = printed.split("columns of its own")
    recalls = re.findall(r"^(I-Match|SimHash, \w+ \w+(?:, City)?) +([\d. ]+)$", kept, re.MULTILINE)
    recalls = [line for line in recalls if len(line[1].split()) == len(PLANTED)]
    assert len(recalls) == 4
    for _, cells in recalls:
        by_kind = dict(zip(PLANTED, map(float, cells.split()), strict=True))
        assert by_kind["exact"] == by_kind["whitespace"] == 1
    i_match = dict(zip(PLANTED, map(float, recalls[0][1].split()), strict=True))
    assert i_match["followup"] == 0, "a sentence more is another hash"


def test_stores_find_what_is_near(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    p1_stores.run(None, p1_stores.SMALL, SQLITE)
    printed = capsys.readouterr().out
    assert re.search(r"^SQLite .* 22/44$", printed, re.MULTILINE)
    assert f"NOT MEASURED: documents: set {VARIABLE}" in printed
    assert findings(printed) == ["cannot be compared"]


def test_a_server_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "mongodb://127.0.0.1:1/?connectTimeoutMS=50")
    monkeypatch.setattr("benchmarks.papers.bucket_documents._SECONDS_TO_CONNECT", 0.2)
    with pytest.raises(NoServerError, match=rf"pymongo|{VARIABLE}"), open_documents():
        pass


def test_blocks_of_a_fingerprint_have_different_names() -> None:
    assert block_names(0x0001_0001_FFFF_0000) == ["1:0001", "2:0001", "3:ffff", "4:0000"]


class StandInCollection:
    """Keeps documents as a collection of pymongo does, for the calls that `BucketDocuments` makes."""

    def __init__(self) -> None:
        self.info: dict[str, list[dict[str, object]]] = {}

    def insert_many(self, documents: list[dict[str, Any]], *, ordered: bool) -> None:
        assert not ordered
        for document in documents:
            assert document["blockName"] not in self.info
            self.info[document["blockName"]] = document["info"]

    def bulk_write(self, updates: list[tuple[dict[str, Any], dict[str, Any]]], *, ordered: bool) -> None:
        assert not ordered
        for query, change in updates:
            self.info.setdefault(query["blockName"], []).append(change["$push"]["info"])

    def find_one(self, query: dict[str, Any], fields: dict[str, int]) -> dict[str, Any] | None:
        assert fields == {"info": 1}
        info = self.info.get(query["blockName"])
        return None if info is None else {"info": info}

    def find(self, query: dict[str, Any], fields: dict[str, int]) -> list[dict[str, Any]]:
        asked = [{"blockName": name} for name in query["blockName"]["$in"]]
        return [found for one in asked if (found := self.find_one(one, fields)) is not None]


def update_one(
    query: dict[str, Any], change: dict[str, Any], *, upsert: bool
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Stand for pymongo's `UpdateOne`."""
    assert upsert
    return query, change


def test_documents_find_all_that_is_near() -> None:
    rng = np.random.default_rng(17)
    # Some with the top bit, which MongoDB stores as a sign, and some near to others by 0 to 5 bits.
    values = rng.integers(0, 2**64, 60, dtype=np.uint64).tolist()
    for changed in range(6):
        bits = [rng.choice(64, changed, replace=False).tolist() for _ in range(20)]
        values += [values[i] ^ sum(1 << bit for bit in bits[i]) for i in range(20)]
    rows = [(f"text {i}", value) for i, value in enumerate(values)]
    documents = BucketDocuments(StandInCollection(), update_one)
    documents.fill(rows[:100])
    for name, value in rows[100:]:
        documents.insert(name, value)
    for asked in [*values, *rng.integers(0, 2**64, 20, dtype=np.uint64).tolist()]:
        near = {name for name, value in rows if (value ^ asked).bit_count() <= 3}
        assert documents.find_similar(asked, 3) == near
        assert documents.has_similar(asked, 3) == bool(near)


def test_documents_hold_entries_as_the_paper_says() -> None:
    written: list[dict[str, object]] = []

    class Collection:
        """What `fill` uses of pymongo's."""

        def insert_many(self, documents: list[dict[str, object]], *, ordered: bool) -> None:
            assert not ordered
            written.extend(documents)

    BucketDocuments(Collection(), None).fill([("a", 1), ("b", (1 << 64) - 1), ("c", 1 << 48)])
    info = {document["blockName"]: document["info"] for document in written}
    assert len(info) == len(written) == 10
    assert info["1:0000"] == [{"hashcode": 1, "textname": "a"}]
    assert info["1:ffff"] == [{"hashcode": -1, "textname": "b"}]
    assert info["2:0000"] == [{"hashcode": 1, "textname": "a"}, {"hashcode": 1 << 48, "textname": "c"}]


def test_short_texts_are_copies_of_earlier_ones() -> None:
    texts, is_copy = p3_short_texts.digits(1_000, 0.3)
    seen: set[str] = set()
    for text, copied in zip(texts, is_copy.tolist(), strict=True):
        assert (text in seen) == copied
        seen.add(text)
    assert len(seen) == 300
    assert {len(text) for text in texts} == {11}


def test_filters_and_trie_are_held_against_the_truth(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    p3_short_texts.run(None, p3_short_texts.SMALL, tmp_path)
    names = texts_of(tmp_path / "papers-p3-exact.svg")
    assert {"Bloom, either bit, 1%", "Bloom, both bits, 99%", "digit trie, 99%"} < names
    names = texts_of(tmp_path / "papers-p3-shares.svg")
    assert {"Bloom, either bit, all", "Bloom, both bits, new"} < names
    names = texts_of(tmp_path / "papers-p3-bits.svg")
    assert {"Bloom, either bit, 10%", "Bloom, both bits, 20%"} < names
    printed = capsys.readouterr().out
    assert len(findings(printed)) == 6
    assert "ours:  all answers right: True" in printed
    shares = re.findall(r"^ +(\d+)% +([\d.]+)% +([\d.]+)% +([\d.]+)% +([\d.]+)%$", printed, re.MULTILINE)
    assert [int(share) for share, *_ in shares] == [1, 10, 50, 90, 100]
    for share, either, either_new, both, both_new in shares:
        assert float(either) <= float(both), share
        assert float(either_new) <= float(both_new), share
    assert float(shares[-1][1]) < 40 < float(shares[-1][3])


def test_labelled_texts_are_the_labels_and_planted_copies(data: Path) -> None:
    articles = read_labelled_texts(data, 100)
    assert len(articles.texts) == 100
    assert articles.labelled == 1
    assert (0, 1) in articles.wanted
    planted = articles.wanted - {(0, 1)}
    assert {copy for _, copy in planted} == set(range(72, 100))
    assert not {0, 1, 2, 3} & {origin for origin, _ in planted}, "no copy of a petition that a label names"
    assert articles.is_wanted.sum() == 29


def test_three_rounds_on_labelled_texts(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plot = tmp_path / "plot.svg"
    p4_news.run(data, p4_news.SMALL, plot)
    assert {"minhash, precision", "jaccard, recall", "simhash-cosine, recall"} < texts_of(plot)
    printed = capsys.readouterr().out
    assert len(findings(printed)) == 7
    for name in ("jieba", "jieba-search", "jieba-full"):
        assert re.search(rf"^SimHash, none, {name} ", printed, re.MULTILINE)
    jaccard = re.search(r"^jaccard, none, .* ([\d.]+) +([\d.]+) +([\d.]+) +[\d.]+$", printed, re.MULTILINE)
    assert jaccard is not None
    assert float(jaccard[3]) > 0.9, "edited copies among unlike petitions"
    curves = printed.split("3. over thresholds")[1]
    lines = re.findall(r"^ +(0\.\d\d) +([\d.]+) ([\d.]+) ", curves, re.MULTILINE)
    assert len(lines) == len(METHODS["minhash:100"].thresholds)
    recalls = [float(recall) for _, _, recall in lines]
    assert recalls == sorted(recalls)
    assert recalls[0] < recalls[-1] == 1


def test_the_table_of_codes(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    p5_codes.run(data, p5_codes.SMALL)
    printed = capsys.readouterr().out
    assert len(findings(printed)) == 6
    cells = re.findall(
        r"^(frequency|tf-idf|textrank|feature-codes) +(\w.+?) +([\d,]+) +([\d.]+) +([\d.]+) ",
        printed,
        re.MULTILINE,
    )
    assert [cell[:2] for cell in cells] == [
        (features, method) for features in p5_codes.FEATURE_NAMES for method in p5_codes.METHODS_AT
    ]
    recall = {cell[:2]: float(cell[4]) for cell in cells}
    for features in p5_codes.FEATURE_NAMES:
        minhash = [
            recall[features, f"MinHash, {what}"] for what in ("3 differ", "5 differ", "5 equal", "3 equal")
        ]
        assert minhash == sorted(minhash), "each is looser than the one before"
    assert recall["feature-codes", p5_codes.JACCARD] > 0.3


def test_only_the_stores_need_more_than_the_extra_of_the_methods() -> None:
    papers = [name for name in (*WITHOUT_DATA, *WITH_DATA) if name.startswith("papers.")]
    assert len(papers) == 8
    imports = ", ".join(f"benchmarks.{name}" for name in papers if name != "papers.p1_stores")
    # None in sys.modules makes the import of a module fail.
    absent = ("tests", "pymysql", "psycopg", "pymongo", "scipy", "pandas", "pytest", "hypothesis")
    code = f"import sys; sys.modules.update(dict.fromkeys({absent})); import benchmarks.__main__, {imports}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_data_that_is_not_there_is_named(
    data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for folder, message in (
        (data / "no", f"--data: there is no folder {data / 'no'}"),
        (data, f"papers.p2_tweets needs {data / 'tweets-en' / 'airline_tweets.csv.gz'}"),
    ):
        monkeypatch.setattr(sys, "argv", ["benchmarks", "papers.p2_tweets", "--small", "--data", str(folder)])
        with pytest.raises(SystemExit) as stopped:
            main()
        assert stopped.value.code == 2
        assert message in capsys.readouterr().err
