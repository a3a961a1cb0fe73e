"""`compare`: a file of texts or a watched table, on the terminal, as CSV, JSON and a page."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from db_dedup.present.comparison_page import comparison_page
from db_dedup.present.comparison_words import SCORE_COLUMNS
from db_dedup.records import Combination, Comparison, RuleTrial, ThresholdScore, Trial
from db_dedup.records.calibration import PairSetting
from db_dedup.sample import Sample
from tests.calibrate.test_command import Page, labels  # noqa: F401 - a fixture
from tests.cli.conftest import fail, folder, sample, scanned, scanned_file, succeed  # noqa: F401 - fixtures
from tests.servers import Database

TEXTS = """text_a,text_b,label
夜间施工噪音扰民，请处理,夜间施工噪音扰民，请尽快处理,yes
公交车经常晚点,夜间施工噪音扰民，请处理,no
"the lift is broken,
again",the lift is broken again,yes
the lift is broken again,buses are late every day,no
"""
FEW = ("--segmenter", "chars:2", "--features", "none", "--method", "jaccard", "--method", "simhash")


@pytest.fixture
def texts(folder: Path) -> str:  # noqa: F811 - a fixture
    (folder / "pairs.csv").write_text(TEXTS, encoding="utf-8")
    return "pairs.csv"


def compared(*arguments: str) -> Any:
    return succeed("compare", *arguments, "--json").json()


def test_texts_in_a_table_for_people(texts: str) -> None:
    done = succeed("compare", "--pairs", texts, *FEW)
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in done.stdout.splitlines()]
    rows = [row for row in rows if row]
    assert [row[2] for row in rows[:3]] == ["preset strict", "preset balanced", "preset tweet"]
    assert [row[3] for row in rows[:3]] == ["3", "0.57", "0.57"], "strict has a radius and no threshold"
    # Of the three lists only the methods have several names.
    assert {row[0] for row in rows[3:]} == {"jaccard", "simhash"}
    titles = [line for line in done.stdout.splitlines() if line[0] not in "│┃┏┡└"]
    assert titles[1:] == ["Each step alone: methods, with segmenter chars:2 and features none"]
    jaccard = next(row for row in rows if row[0] == "jaccard")
    assert jaccard[2:5] == ["1.000", "1.000", "1.000"]
    told = done.stderr.splitlines()
    assert "4 labelled pairs of 6 texts, 2 of them duplicates" in told
    assert any(line.startswith("Best on these labels: ") for line in told)
    assert any(line.startswith("The preset balanced: F1 ") for line in told)
    assert any(line.startswith("Nearest setting of db_dedup: ") for line in told)


def test_data_for_programs(texts: str) -> None:
    found = compared("--pairs", texts, *FEW)
    assert (found["table"], found["pairs"], found["duplicates"]) == (None, 4, 2)
    assert [each["combination"]["method"] for each in found["trials"]] == ["simhash", "jaccard"]
    assert len(found["trials"][1]["curve"]) == 19
    done = succeed("compare", "--pairs", texts, *FEW, "--format", "csv")
    lines = list(csv.DictReader(io.StringIO(done.stdout)))
    assert list(lines[0]) == list(SCORE_COLUMNS)
    assert "Best on these labels: " in done.stderr
    assert [line["step"] for line in lines] == ["product"] * 3 + ["alone"] * 2
    assert float(lines[4]["f1"]) == found["trials"][1]["best"]["f1"]
    as_rows = json.loads(succeed("compare", "--pairs", texts, *FEW, "--format", "json").stdout)
    assert [row["method"] for row in as_rows] == [line["method"] for line in lines]


def test_a_narrow_terminal_lacks_the_times_and_is_told_so(texts: str) -> None:
    done = succeed("compare", "--pairs", texts, *FEW, "--segmenter", "words", COLUMNS="80")
    alone, together = done.stdout.split("Each step alone: segmenters")[1].split("Two steps crosswise")
    assert alone.count("comp. s") == 2, "these tables have one name in a row"
    assert "comp. s" not in together
    assert "method" in together
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert "this terminal has no room for the times: --format csv has them" in done.stderr
    assert "no room" not in succeed("compare", "--pairs", texts, *FEW, "--segmenter", "words").stderr


def test_labels_of_a_pair_that_has_a_later_one_are_counted(texts: str) -> None:
    before = succeed("compare", "--pairs", texts, *FEW).stderr
    assert "later label" not in before
    with Path(texts).open("a", encoding="utf-8") as file:
        # The first pair the other way round, twice, and the last one again.
        file.write("夜间施工噪音扰民，请尽快处理,夜间施工噪音扰民，请处理,no\n" * 2)
        file.write("the lift is broken again,buses are late every day,no\n")
        file.write("夜间施工噪音扰民，请处理,夜间施工噪音扰民，请尽快处理,yes\n")
    told = succeed("compare", "--pairs", texts, *FEW).stderr
    assert "4 labels were left out, because a later label of the same pair counts; 2 of them say the" in told
    found = compared("--pairs", texts, *FEW)
    assert found["repeated"] == {"count": 4, "opposite": 2}
    assert (found["pairs"], found["duplicates"]) == (4, 2)


def test_thresholds_and_steps_and_limits(texts: str) -> None:
    given = ("--threshold", "jaccard=0.2", "--threshold", "jaccard=0.9", "--threshold", "simhash=3")
    found = compared("--pairs", texts, *FEW, *given, "--steps", "together")
    curves = [[score["threshold"] for score in each["curve"]] for each in found["trials"]]
    assert curves == [[0.9, 0.2], [3]]
    assert {each["step"] for each in found["trials"]} == {"together"}
    told = succeed("compare", "--pairs", texts, *FEW, "--limit", "1").stderr
    assert "1 more: --limit, --format csv" in told


def test_the_environment_gives_options_as_well(texts: str) -> None:
    environment = {
        "DB_DEDUP_PAIRS": texts,
        "DB_DEDUP_SEGMENTER": "chars:2 words",
        "DB_DEDUP_FEATURES": "none",
        "DB_DEDUP_METHOD": "jaccard",
        "DB_DEDUP_THRESHOLD": "jaccard=0.5",
        "DB_DEDUP_STEPS": "alone",
        "DB_DEDUP_JSON": "1",
    }
    found = json.loads(succeed("compare", **environment).stdout)
    assert [each["combination"]["segmenter"] for each in found["trials"]] == ["chars:2", "words"]


@pytest.mark.parametrize(
    ("content", "arguments", "message"),
    [
        ("a,b\n", (), "pairs.csv needs the columns text_a, text_b and label"),
        ("key_a,key_b,label\n1,2,yes\n", (), "it has keys of rows, so name their TABLE as well"),
        ("text_a,text_b,label\na,b,yes\n", ("petitions",), "it has texts, which `db-dedup compare --pairs`"),
        ("text_a,text_b,label\na,b,no\n\n,b,yes\n", (), "pairs.csv, line 4: text_a is empty: fill it in"),
        ('text_a,text_b,label\na,"b\nc",no\na, ,yes\n', (), "pairs.csv, line 4: text_b is empty"),
        ("text_a,text_b,label\na,b,perhaps\n", (), "line 2: label 'perhaps' is none of yes, y"),
        ("text_a,text_b,label\na,b,yes\n", (), "labels of both kinds are needed"),
        ("text_a,text_b,label\na,b,no\n", (), "there are 0 and 1"),
        ("text_a,text_b,label\na,b,S\n", ("--duplicate-label", "V"), "--duplicate-label names what"),
        (TEXTS, ("--method", "jacard"), "unknown method 'jacard': did you mean jaccard"),
        (TEXTS, ("--segmenter", "?"), "chars:1"),
        (TEXTS, ("--steps", "alone,x"), "unknown step 'x': there is alone, cross, together"),
        (TEXTS, ("--threshold", "0.5"), "--threshold '0.5': write METHOD=VALUE, such as jaccard=0.5"),
        (TEXTS, ("--threshold", "jaccard=x"), "--threshold 'jaccard=x': write METHOD=VALUE"),
        (TEXTS, ("--threshold", "jaccard=3"), "3.0 is no threshold of jaccard"),
    ],
)
def test_bad_input(folder: Path, content: str, arguments: tuple[str, ...], message: str) -> None:  # noqa: F811
    (folder / "pairs.csv").write_text(content, encoding="utf-8")
    assert message in str(fail("compare", *arguments, "--pairs", "pairs.csv"))


def test_a_table_or_a_file_is_needed(folder: Path) -> None:  # noqa: F811, ARG001 - a fixture
    assert "name a labelled TABLE, or give a file of --pairs" in str(fail("compare"))
    assert "cannot read label file no.csv" in str(fail("compare", "--pairs", "no.csv"))


def test_a_table_by_a_file_of_keys(labels: str, sample: Sample) -> None:  # noqa: F811 - fixtures
    """On the labels of the sample that the package contains."""
    found = compared("petitions", "--pairs", labels, *FEW)
    assert found["table"] == "petitions"
    assert found["duplicates"] == len(sample.pairs)
    assert found["not_there"] == 0
    now = succeed("calibrate", "petitions", "--labels", labels, "--json").json()["now"]
    rule = found["rules"][0]
    assert rule["name"] is None
    assert {name: rule["score"][name] for name in ("right", "wrong", "missed")} == {
        name: now[name] for name in ("right", "wrong", "missed")
    }
    assert rule["setting"] == now["setting"]
    assert found["best"]["best"]["f1"] > 0.7


def test_the_labels_that_were_given_to_the_table(labels: str) -> None:  # noqa: F811 - a fixture
    assert "labels of both kinds are needed" in str(fail("compare", "petitions"))
    succeed("label", "petitions", "--answers", labels)
    by_verdicts, by_file = compared("petitions", *FEW), compared("petitions", "--pairs", labels, *FEW)
    assert 0 < by_verdicts["pairs"] <= by_file["pairs"]
    assert by_verdicts["not_there"] == 0


def test_labels_of_rows_that_have_changed_are_left_out(labels: str, scanned: Database) -> None:  # noqa: F811
    succeed("label", "petitions", "--answers", labels)
    before = compared("petitions", *FEW)
    key = Path(labels).read_text(encoding="utf-8").splitlines()[-1].split(",")[0]
    with scanned.engine.begin() as connection:
        changed = f"update petitions set content = 'all of it is new, every word' where id = {key}"
        connection.exec_driver_sql(changed)
    after = compared("petitions", *FEW)
    assert (after["pairs"], after["not_there"]) == (before["pairs"] - 1, 1)
    told = succeed("compare", "petitions", *FEW).stderr
    assert "1 label was left out: rows that are not there, have no text, or have changed since" in told


def test_labels_of_rows_that_have_a_later_one_are_counted(labels: str) -> None:  # noqa: F811 - a fixture
    """By `compare`, by `calibrate`, and by `label`, which keeps one label of each pair."""
    header, first, *others = Path(labels).read_text(encoding="utf-8").splitlines()
    a, b, _ = first.split(",")
    Path(labels).write_text("\n".join([header, f"{b},{a},no", first, *others]), encoding="utf-8")
    said = "1 label was left out, because a later label of the same pair counts; 1 of them says the opposite"
    assert said in succeed("compare", "petitions", "--pairs", labels, *FEW).stderr
    assert said in succeed("calibrate", "petitions", "--labels", labels).stderr
    told = succeed("label", "petitions", "--answers", labels).stderr.splitlines()
    assert said in told
    Path("once.csv").write_text("\n".join([header, first, *others]), encoding="utf-8")
    once = succeed("label", "petitions", "--answers", "once.csv").stderr.splitlines()
    assert said not in once
    assert [line for line in told if line.endswith(" kept")] == [
        line for line in once if line.endswith(" kept")
    ]


def test_the_nearest_setting_can_be_pasted(labels: str) -> None:  # noqa: F811 - a fixture
    one = (
        "--segmenter",
        "chars:2",
        "--features",
        "none",
        "--method",
        "jaccard",
        "--threshold",
        "jaccard=0.9",
    )
    found = compared("petitions", "--pairs", labels, *one)
    assert found["toml"][0] == "[tables.petitions]"
    assert found["nearest"]["changes"]
    text = Path("dedup.toml").read_text(encoding="utf-8")
    order = 'order = "created_at"'
    Path("dedup.toml").write_text(text.replace(order, "\n".join([order, *found["toml"][1:]])), "utf-8")
    again = compared("petitions", "--pairs", labels, *FEW)
    assert again["rules"][0]["score"] == found["nearest"]["score"]
    assert again["rules"][0]["setting"] == found["nearest"]["setting"]


def test_the_page_stands_alone_and_holds_no_row(labels: str, sample: Sample) -> None:  # noqa: F811 - fixtures
    succeed("compare", "petitions", "--pairs", labels, *FEW, "--output", "page.html")
    text = Path("page.html").read_text(encoding="utf-8")
    page = Page()
    page.feed(text)
    page.close()
    assert page.open == []
    assert page.seen.count("svg") == 4
    assert page.references == []
    assert "http" not in text
    assert "script" not in page.seen
    assert not {"NaN", "inf", "None"} & set(page.text.split())
    for petition in sample.petitions:
        assert petition.title not in text
        assert petition.content[:12] not in text
    assert "F1 by threshold of similarities" in page.text
    assert page.seen.count("li") >= 3 + 1 + 1 + 2 + 1, "each line of the plots has its name below it"
    assert "settings of the table, preset balanced" in page.text, "their results are the same"


@pytest.mark.parametrize(
    "arguments",
    [
        ("compare", "--pairs", "missing.csv", "--output", "no/page.html"),
        ("calibrate", "petitions", "--labels", "missing.csv", "--html", "no/page.html"),
        ("report", "missing", "--output", "no/page.html"),
    ],
)
def test_a_page_that_cannot_be_written_is_refused_before_the_work(
    folder: Path,  # noqa: F811, ARG001 - a fixture
    arguments: tuple[str, ...],
) -> None:
    assert str(fail(*arguments)) == "cannot write no/page.html: No such file or directory"


def test_a_page_replaces_no_file_unless_asked_for(labels: str) -> None:  # noqa: F811 - a fixture
    before = Path(labels).read_bytes()
    for command in (
        ("compare", "--pairs", labels, "--output", labels),
        ("calibrate", "petitions", "--labels", labels, "--html", labels),
    ):
        assert "--force replaces it" in str(fail(*command))
        assert Path(labels).read_bytes() == before
    Path("page.html").write_text("mine", encoding="utf-8")
    succeed("calibrate", "petitions", "--labels", labels, "--html", "page.html", "--force")
    assert "<svg" in Path("page.html").read_text(encoding="utf-8")


def test_names_are_escaped_on_the_page() -> None:
    score = ThresholdScore(0.5, 1, 0, 1, 1.0, 0.5, 2 / 3)
    trial = Trial(Combination(None, "<i>", "a&b"), "alone", score, (score,), False, 0.0, 0.0)
    setting = PairSetting(3, sketches=True, similarity="none", threshold=0.0)
    rule = RuleTrial("<u>", "jieba", "raw", setting, score, 0.0, 0.0)
    page = comparison_page(
        Comparison("<b>", 2, 2, 1, 0, (trial,), (), (rule,), trial, None, trial.combination)
    )
    assert not {"<b>", "<i>", "<u>", "a&b"} & {page[i : i + 3] for i in range(len(page))}
    assert all(part in page for part in ("&lt;b&gt;", "&lt;i&gt;", "&lt;u&gt;", "a&amp;b"))
