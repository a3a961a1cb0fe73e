"""The benchmarks run, small and on SQLite: what they print for the record is up to them."""

from __future__ import annotations

import gzip
import re
from contextlib import closing
from importlib import import_module
from pathlib import Path
from random import Random
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from sqlalchemy import func, select

from benchmarks import (
    checks,
    console_pages,
    exact_first,
    growth,
    indexes,
    large,
    latency,
    lookups,
    plans,
    quickstart,
    scan_costs,
    spark_scan,
    trigger_cost,
    worker_edits,
    worker_groups,
)
from benchmarks.__main__ import QUICK, WITH_DATA, WITHOUT_DATA
from benchmarks.auto_explain import Access, read_plan, reading_all
from benchmarks.generated_petitions import make_part
from benchmarks.joined_articles import JoinedArticles
from benchmarks.large_figures import LargeFigures, read_figures
from benchmarks.papers import p2_tweets
from benchmarks.plot import line_svg, log_log_svg
from db_dedup.app import Database
from db_dedup.sample import generate_petitions
from tests.conftest import not_tested

SQLITE = ("SQLite",)


def test_each_benchmark_can_be_run_by_its_name() -> None:
    for name in (*WITHOUT_DATA, *WITH_DATA):
        assert callable(import_module(f"benchmarks.{name}").run)


def test_checks_find_the_edited_petitions_alone(capsys: pytest.CaptureFixture[str]) -> None:
    checks.run(None, checks.SMALL, SQLITE)
    lines = capsys.readouterr().out.splitlines()
    found = [re.split(r"  +", line)[1:3] for line in lines[-4:-2]]
    assert found == [["edited", "4/4"], ["of its own", "0/4"]]


def test_each_page_of_the_console_is_timed(capsys: pytest.CaptureFixture[str]) -> None:
    console_pages.run(None, console_pages.SMALL, SQLITE)
    _, *lines = capsys.readouterr().out.splitlines()
    shown = [int(groups) for groups in re.findall(r" (\d+) groups  ", "\n".join(lines))]
    assert len(shown) == len(lines) == 16
    assert shown[1] == 20  # the list of all groups, a page of it


def test_posts_are_told_apart_from_official_retweets(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for path, header, posts in (
        ("tweets-en/airline_tweets.csv.gz", "text", ["RT @a: the bridge is closed until Friday", "@b hello"]),
        (
            "tweets-en/apple_tweets.csv.gz",
            "text",
            ["the bridge is closed until Friday", "one two three"],
        ),
        ("weibo-reposts/reposts_sample.csv.gz", "id,text", ["1,这座桥周五之前都不能走", "2,转发微博"]),
    ):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        with gzip.open(tmp_path / path, "wt", encoding="utf-8") as file:
            file.write("\n".join([header, *posts * 10]))
    p2_tweets.run(tmp_path, p2_tweets.Sizes(users=3), tmp_path)
    printed = capsys.readouterr().out
    assert "official_retweet 0.0%, unofficial_retweet 25.0%, reply 25.0%" in printed
    assert "generated: 4; told apart 4, equal to their original 4" in printed
    assert "a message is posted n times: 8+: 2, 16+: 1" in printed
    # 40 English posts are three messages once they are cleaned. Of 20 Chinese ones ten are one message, and
    # nothing is left of the others.
    assert "ours:  92.5% of the posts" in printed
    assert "ours:  45.0% of the posts" in printed
    assert printed.count("paper: ") == 6
    for name, line in (
        ("repeats", "English"),
        ("users", "English, generated"),
        ("lengths", "Chinese, after"),
    ):
        assert f">{line}<" in (tmp_path / f"papers-p2-{name}.svg").read_text(encoding="utf-8")


def test_every_pair_within_a_radius_is_found() -> None:
    values = np.random.default_rng(1).integers(0, 1 << 8, 1_200, np.uint64)
    found = {(a, b): distance for a, b, distance in p2_tweets.close_pairs(values, 2).T.tolist()}
    numbers = values.tolist()
    wanted = {
        (a, b): (numbers[a] ^ numbers[b]).bit_count()
        for a in range(len(numbers))
        for b in range(a + 1, len(numbers))
        if (numbers[a] ^ numbers[b]).bit_count() <= 2
    }
    assert found == wanted


def test_lookups_find_what_was_planted_and_only_that(capsys: pytest.CaptureFixture[str]) -> None:
    lookups.run(None, lookups.Sizes(2_000, petitions=300, planted=100, lookups=40, checks=10), SQLITE)
    found = re.findall(r"^SQLite +(radius \d+|check) +(\d+)/(\d+)", capsys.readouterr().out, re.MULTILINE)
    assert [(what, asked) for what, _, asked in found] == [
        ("radius 3", "40"), ("radius 7", "40"), ("radius 11", "40"), ("check", "10"),
    ]  # fmt: skip
    assert [hits for _, hits, _ in found[:3]] == ["20"] * 3


def test_a_filter_is_measured_beside_the_index_of_digests(capsys: pytest.CaptureFixture[str]) -> None:
    exact_first.run(None, exact_first.SMALL, SQLITE)
    printed = re.findall(r"^SQLite +(\D+?) +([\d,.]+) +([\d,.]+)$", capsys.readouterr().out, re.MULTILINE)
    costs = {what: float(one.replace(",", "")) for what, one, _ in printed}
    assert costs.keys() == {"index of digests", "Bloom filter", "digit trie", "a whole check"}
    assert min(costs.values()) > 0


def test_every_index_of_ours_is_measured(capsys: pytest.CaptureFixture[str]) -> None:
    indexes.run(None, 6_000, 1, SQLITE)
    printed = re.findall(
        r"^SQLite +(\w+) +(itself|in all|\w+) +(-?\d+)", capsys.readouterr().out, re.MULTILINE
    )
    sizes = {(table, what): int(size) for table, what, size in printed}
    assert {table for table, _ in sizes} == {"fingerprint", "pair", "band", "sketch_segment", "change"}
    assert {f"fingerprint_block_{i}" for i in range(1, 5)} < {what for _, what in sizes}
    for table in ("band", "sketch_segment", "change"):  # whose key is their only index
        assert sizes[table, "in all"] > 0
    for table in ("fingerprint", "pair"):
        assert all(size > 0 for (which, _), size in sizes.items() if which == table)
        parts = sum(size for (which, what), size in sizes.items() if which == table and what != "in all")
        assert abs(parts - sizes[table, "in all"]) < 10


def test_what_a_dry_run_expects_is_near_what_a_scan_takes(capsys: pytest.CaptureFixture[str]) -> None:
    scan_costs.run(None, 3_000, SQLITE)
    (line,) = re.findall(r"^SQLite (.*)", capsys.readouterr().out, re.MULTILINE)
    *_, expected, needed, ratio = map(float, line.split())
    assert expected > 1
    assert ratio == pytest.approx(expected / needed, abs=0.05)
    assert 0.7 < ratio < 1.3


def test_each_step_of_the_quickstart_is_timed(capsys: pytest.CaptureFixture[str]) -> None:
    quickstart.run(None, 200, SQLITE)
    _, *lines = capsys.readouterr().out.splitlines()
    found = [re.fullmatch(r"(a file|SQLite) +\w.+ \d+\.\d s +\d+\.\d min", line) for line in lines]
    assert [match and match[1] for match in found] == ["a file"] * 3 + ["SQLite"] * 11


def test_a_sample_of_several_parts_has_one_row_to_a_key() -> None:
    parts = [make_part(number, 50) for number in range(3)]
    assert len({petition.id for part in parts for petition in part}) == 150
    assert len({petition.content for part in parts for petition in part}) > 100


def test_a_plot_puts_a_straight_line_where_it_belongs() -> None:
    svg = ET.fromstring(log_log_svg({"a & b": {10: 1.0, 1000: 100.0}}, "t", "x", "y"))  # noqa: S314 - our own
    line = next(element for element in svg.iter() if element.tag.endswith("polyline"))
    (x1, y1), (x2, y2) = (map(float, point.split(",")) for point in line.get("points", "").split())
    assert (x1, y1, x2, y2) == (70.0, 390.0, 530.0, 20.0)


def test_an_even_axis_begins_at_zero_and_ends_at_a_round_number() -> None:
    text = line_svg({"a": {100: 30.0, 10: 7.5}}, "t", "x", "y", is_x_log=True)
    svg = ET.fromstring(text)  # noqa: S314 - our own
    line = next(element for element in svg.iter() if element.tag.endswith("polyline"))
    # The axis of y ends at 30, whose quarter is a quarter of the height of 370.
    assert line.get("points") == "70.0,297.5 530.0,20.0"
    marks = [element.text for element in svg.iter() if element.get("text-anchor") == "end"]
    assert marks == ["0", "5", "10", "15", "20", "25", "30"]


@pytest.mark.parametrize("most", [0.0, 0.05, 0.3, 1.0, 8.0, 97.0, 100.0, 1234.0])
def test_an_even_axis_takes_in_all_values(most: float) -> None:
    svg = ET.fromstring(line_svg({"a": {0: 0.0, 1: most}}, "t", "x", "y"))  # noqa: S314 - our own
    line = next(element for element in svg.iter() if element.tag.endswith("polyline"))
    (_, low), (_, high) = (map(float, point.split(",")) for point in line.get("points", "").split())
    assert low == 390.0
    assert 20.0 <= high <= (20.0 + 370.0 / 2 if most else 390.0)


def test_of_two_tables_alike_one_alone_is_attached(tmp_path: Path) -> None:
    sizes = trigger_cost.Sizes(rows=40, statements=5, commits=3)
    sample = generate_petitions(10).petitions
    with closing(Database(f"sqlite:///{tmp_path / 'petitions.db'}", create=True)) as database:
        trigger_cost.prepare(database, sample, sizes.rows)
        queued = []
        for table in (trigger_cost.PLAIN, trigger_cost.ATTACHED):
            seconds = trigger_cost.write(database, table, sample, sizes)
            assert len(seconds) == 6
            with database.engine.connect() as connection:
                queued.append(
                    connection.execute(select(func.count()).select_from(database.tables.change)).scalar()
                )
    assert queued == [0, 5 + 3]


def test_edited_rows_are_handled_while_others_write(capsys: pytest.CaptureFixture[str]) -> None:
    worker_edits.run(None, worker_edits.Sizes(300, 30, 1), SQLITE)
    (line,) = re.findall(r"^SQLite +1 (.*)", capsys.readouterr().out, re.MULTILINE)
    rate, _, batches, *_ = line.replace(",", "").split()
    assert float(rate) > 0
    assert int(batches) >= 1


def test_changes_in_a_large_group_are_timed(capsys: pytest.CaptureFixture[str]) -> None:
    worker_groups.run(None, worker_groups.SMALL, SQLITE)
    lines = re.findall(r"^SQLite +(edited|deleted) (.*)", capsys.readouterr().out, re.MULTILINE)
    assert [kind for kind, _ in lines] == ["edited", "deleted"]
    assert all(int(figures.replace(",", "").split()[-1]) > 2 for _, figures in lines)


def test_each_inserted_row_is_seen_in_the_view(capsys: pytest.CaptureFixture[str]) -> None:
    latency.run(None, latency.Sizes(rows=100, a_second=20, seconds=1), SQLITE)
    line = re.search(
        r"^made-up petitions +SQLite +(\d+) +\d+ +(\d+) +(\d+)", capsys.readouterr().out, re.MULTILINE
    )
    assert line is not None
    inserted, seen, p50 = map(int, line.groups())
    assert (inserted, seen) == (20, 20)
    assert p50 > 0


def test_the_quick_part_is_of_benchmarks_that_exist() -> None:
    assert set(QUICK) < {*WITHOUT_DATA, *WITH_DATA}
    assert {"petitions", "frames", "planted_changes", "short_texts", "kinds"} < set(QUICK)


def test_growth_is_kept_and_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = {("made-up petitions", "SQLite", 200): (1.0, 1.0, 2.0, 3.0)}
    growth.write_figures(tmp_path / "growth.csv", before)
    growth.run(None, growth.Sizes(300, 300), SQLITE, tmp_path)
    assert re.search(r"^made-up petitions +SQLite +300 ", capsys.readouterr().out, re.MULTILINE)
    figures = growth.read_figures(tmp_path / "growth.csv")
    assert figures.items() > before.items()
    assert all(figure > 0 for figure in figures["made-up petitions", "SQLite", 300])
    for name in ("wall-seconds", "megabytes", "store-megabytes"):
        assert "SQLite, made-up petitions" in (tmp_path / f"growth-{name}.svg").read_text(encoding="utf-8")


def test_a_large_table_from_scan_to_views(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sizes = large.Sizes(rows=300, changes=30)
    figures = LargeFigures("made-up petitions", "SQLite", 200, tmp_path / "large.csv")
    figures.tell_seconds("check", 0.004)
    large.run(None, sizes, SQLITE, tmp_path)
    printed = capsys.readouterr().out
    steps = ("first scan", "first scan: matching", "scan, 1 % changed", "worker, 30 changes", "check")
    for step in (*steps, "view: members of a group"):
        assert re.search(rf"^{step} +\d", printed, re.MULTILINE)
    kept = read_figures(tmp_path / "large.csv")
    assert kept["made-up petitions", "SQLite", 200, "check"] == ["0.004"], "what was measured before"
    assert {len(kept["made-up petitions", "SQLite", 300, step]) for step in steps} == {1, 5}
    plot = (tmp_path / "large-petitions-sqlite.svg").read_text(encoding="utf-8")
    assert ">first scan: matching<" in plot


@pytest.fixture
def some_articles(tmp_path: Path) -> Path:
    """A folder of data with articles of three sentences each."""
    letters = "甲乙丙丁戊己庚辛壬癸子丑寅卯辰巳午未申酉戌亥"
    chance = Random(1)
    (tmp_path / "cn-law-articles").mkdir()
    file = tmp_path / "cn-law-articles" / "articles.csv.gz"
    with gzip.open(file, "wt", encoding="utf-8", newline="") as lines:
        lines.write("id,text\n")
        for number in range(200):
            sentences = ("".join(chance.choices(letters, k=chance.randint(5, 70))) for _ in range(3))
            lines.write(f"{number},{'。'.join(sentences)}。\n")
    return tmp_path


def test_texts_of_joined_sentences_depend_on_their_number_alone(some_articles: Path) -> None:
    joined = JoinedArticles(some_articles, copies=3)
    texts = list(joined.texts(2000))
    assert texts[1234] == JoinedArticles(some_articles, copies=3).text(1234)
    assert len(set(texts)) == 2000
    assert min(map(len, texts)) > 130
    sentences = [set(text.split("。")[:-1]) for text in texts]
    of_articles = set().union(
        *(set(text.split("。")) for text in JoinedArticles(some_articles, 0).texts(500))
    )
    copies = sum(not own <= of_articles for own in sentences)
    assert 30 <= copies <= 90, "three of a hundred have a sentence that was edited"


def test_a_first_scan_of_joined_sentences(
    some_articles: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sizes = large.Sizes(rows=300, copies=3, later=0, matching_mb=16, abridge_above=5)
    large.run(some_articles, sizes, SQLITE, tmp_path)
    printed = capsys.readouterr().out
    assert "300 texts of sentences of articles of law, 3 % near-copies" in printed
    assert "fill the table" in printed
    (scan,) = (line for line in printed.splitlines() if line.startswith("first scan "))
    assert float(scan.split()[-1]) >= 0, "megabytes of temporary files"
    assert "1 % changed" not in printed
    changed = "matching_mb = 16, abridge_above = 5"
    assert all(key[0].endswith(changed) for key in read_figures(tmp_path / "large.csv"))
    (plot,) = tmp_path.glob("*.svg")
    assert plot.name == "large-joined-articles-matching_mb-16-abridge_above-5-sqlite.svg"


def not_measured(printed: str) -> None:
    """Skip where there is no server, but not in CI."""
    for line in printed.splitlines():
        if "not measured" in line:
            not_tested(f"plans of the servers ({line})")


def test_plans_of_every_step_are_read(capsys: pytest.CaptureFixture[str]) -> None:
    plans.run(None, plans.SMALL)
    printed = capsys.readouterr().out
    not_measured(printed)
    lines = printed.splitlines()
    found = {step for line in lines for step in STEPS if line.startswith(step) and " by " in line}
    assert found == set(STEPS)
    (blocks,) = {
        line.partition(" by ")[2] for line in lines if "_block_1" in line and line.startswith("20 checks ")
    }
    assert blocks == ", ".join(f"fingerprint_block_{i}" for i in range(1, 5))
    assert re.search(r"^ +fingerprint_digest +1,000 ", printed, re.MULTILINE)
    after = printed.partition("after the worker")[2]
    assert re.search(r"^fingerprint +[\d,]+ +1,0", after, re.MULTILINE)


STEPS = (
    "20 checks ",
    "20 checks that block",
    "worker, 50 changes",
    "view: pairs of a row ",
    "view: rows of a group",
    "vacuumed: number of groups",
)


def test_a_plan_names_what_it_reads_as_a_whole() -> None:
    scan = {"Actual Rows": 2, "Actual Loops": 1}
    never = {"Node Type": "Seq Scan", "Relation Name": "change", "Actual Rows": 0, "Actual Loops": 0}
    whole = {"Node Type": "Seq Scan", "Relation Name": "pair", "Rows Removed by Filter": 7, **scan}
    by_index = {
        "Node Type": "Index Scan",
        "Relation Name": "fingerprint",
        "Index Name": "fingerprint_pkey",
        **scan,
    }
    top = {"Node Type": "Nested Loop", "Plans": [whole, by_index, never], "Shared Hit Blocks": 5, **scan}
    plan = read_plan({"Query Text": "SELECT *\n FROM x", "Plan": top}, 1.5)
    assert plan.accesses == (Access("pair", None), Access("fingerprint", "fingerprint_pkey"))
    assert plan.label == "select by ALL OF pair, fingerprint_pkey"
    assert (plan.text, plan.rows, plan.dropped, plan.pages) == ("SELECT * FROM x", 2, 7, 5)
    assert [table for table, _ in reading_all([plan], {"pair", "fingerprint"})] == ["pair"]
    assert list(reading_all([plan], {"fingerprint"})) == []


def test_both_engines_give_one_answer(capsys: pytest.CaptureFixture[str]) -> None:
    spark_scan.run(None, spark_scan.SMALL)
    printed = capsys.readouterr().out
    not_measured(printed)
    assert printed.count("  the same") == 4
    assert re.search(r"^spark +\d", printed, re.MULTILINE)


def test_without_java_one_line_says_so(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    spark_scan.run(None, spark_scan.SMALL)
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("Spark: not measured (no ")
