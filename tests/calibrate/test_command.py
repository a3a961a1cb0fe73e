"""`calibrate`: from labels to a proposal, on the terminal, as JSON and as a page."""

from __future__ import annotations

import json
import re
import tomllib
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from db_dedup.sample import Sample
from tests.cli.conftest import fail, folder, sample, scanned, scanned_file, succeed  # noqa: F401 - fixtures
from tests.servers import Database

VOID = {"meta", "br"}


class Page(HTMLParser):
    """Checks that tags are closed as they were opened, and keeps what the page refers to."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []
        self.references: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        self.references += [
            f"{name}={value}" for name, value in attrs if name in ("src", "href", "xlink:href")
        ]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.fixture
def labels(scanned: Database, sample: Sample) -> str:  # noqa: F811, ARG001 - fixtures
    """The planted pairs as duplicates, and as many others that are none."""
    planted = [(str(pair.id_a), str(pair.id_b)) for pair in sample.pairs]
    in_pairs = {key for pair in planted for key in pair}
    alone = [str(petition.id) for petition in sample.petitions if str(petition.id) not in in_pairs]
    others = list(zip(alone[::2], alone[1::2], strict=False))
    lines = [f"{a},{b},yes" for a, b in planted] + [f"{a},{b},no" for a, b in others]
    Path("labels.csv").write_text("\n".join(["key_a,key_b,label", *lines]), encoding="utf-8")
    return "labels.csv"


def calibrated(*arguments: str) -> Any:
    return succeed("calibrate", "petitions", *arguments, "--json").json()


def test_it_counts_what_the_labels_say(labels: str, sample: Sample) -> None:  # noqa: F811 - a fixture
    found = calibrated("--labels", labels)
    assert found["duplicates"] == len(sample.pairs)
    assert found["not_there"] == 0
    now = found["now"]
    stored = succeed("pairs", "petitions", "--expand", "--format", "csv").stdout.splitlines()[1:]
    planted = {frozenset((str(pair.id_a), str(pair.id_b))) for pair in sample.pairs}
    hits = {frozenset(line.split(",")[:2]) for line in stored}
    assert now["right"] == len(hits & planted)
    assert now["missed"] == len(planted - hits)
    assert now["right"] + now["wrong"] + now["unlabelled"] == len(hits)
    assert now["precision"]["low"] <= now["precision"]["value"] <= now["precision"]["high"]
    wrong = calibrated("--labels", labels, "--unlabelled-are-wrong")["now"]
    assert (wrong["unlabelled"], wrong["wrong"]) == (0, now["wrong"] + now["unlabelled"])


def test_the_whole_grid_is_there_and_recall_never_falls_with_the_radius(labels: str) -> None:
    found = calibrated("--labels", labels)
    assert len(found["grid"]) == 12 * 2 * (1 + 5 * 19)
    recalls = [each["recall"]["value"] for each in found["by_radius"] if not each["setting"]["sketches"]]
    assert len(recalls) == 12
    assert recalls == sorted(recalls)
    assert {each["setting"]["similarity"] for each in found["by_threshold"]} == {
        "word_jaccard", "char_jaccard", "char_overlap", "overlap", "cosine",
    }  # fmt: skip


def test_what_is_proposed_does_better_and_can_be_pasted(labels: str) -> None:
    text = Path("dedup.toml").read_text(encoding="utf-8")
    strict = text.replace('order = "created_at"', 'order = "created_at"\npreset = "strict"')
    Path("dedup.toml").write_text(strict, encoding="utf-8")
    found = calibrated("--labels", labels)
    assert found["is_better"]
    assert found["proposed"]["f1"] > found["now"]["f1"]
    lines = tomllib.loads("\n".join(found["toml"]))["tables"]["petitions"]
    proposed = found["proposed"]["setting"]
    assert lines == {key: proposed[key] for key in lines}
    told = succeed("calibrate", "petitions", "--labels", labels, "--html", "page.html").stderr
    assert set(ringed(Path("page.html"))) == {"now", "proposed"}
    assert "radius 3 to 7 adds" in told
    assert "The labels support the proposed setting:\n[tables.petitions]\n" in told


def test_the_page_stands_alone_and_holds_no_row(labels: str, sample: Sample) -> None:  # noqa: F811 - a fixture
    succeed("calibrate", "petitions", "--labels", labels, "--html", "page.html")
    text = Path("page.html").read_text(encoding="utf-8")
    page = Page()
    page.feed(text)
    page.close()
    assert page.open == []
    assert page.seen.count("svg") == 4
    assert page.references == []
    assert "http" not in text
    assert "script" not in page.seen
    assert "NaN" not in text
    for petition in sample.petitions:
        assert petition.title not in text
        assert petition.content[:12] not in text
    assert "Precision and recall by radius" in page.text


def test_what_is_proposed_already_is_marked_once(labels: str) -> None:
    lines = "\n".join(calibrated("--labels", labels)["toml"]).splitlines()[1:]
    text = Path("dedup.toml").read_text(encoding="utf-8")
    order = 'order = "created_at"'
    Path("dedup.toml").write_text(text.replace(order, "\n".join([order, *lines])), encoding="utf-8")
    succeed("calibrate", "petitions", "--labels", labels, "--html", "page.html")
    assert set(ringed(Path("page.html"))) == {"now and proposed"}


def ringed(page: Path) -> list[str]:
    """The names below the plot of precision against recall that are no measure's."""
    plot = (
        page.read_text(encoding="utf-8")
        .split("<title>Precision against recall</title>")[1]
        .split("</figure>")[0]
    )
    names = re.findall(r"</[ib]>([^<]+)</li>", plot)
    return [
        name for name in names if "jaccard" not in name and name not in ("char_overlap", "overlap", "cosine")
    ]


def test_the_answers_to_label_are_what_counts_without_a_file(labels: str) -> None:
    assert "no labelled duplicate" in str(fail("calibrate", "petitions"))
    succeed("label", "petitions", "--answers", labels)
    by_verdicts, by_file = calibrated(), calibrated("--labels", labels)
    assert 0 < by_verdicts["labelled"] <= by_file["labelled"]
    assert by_verdicts["not_there"] == 0
    assert json.dumps(by_verdicts["now"]["setting"]) == json.dumps(by_file["now"]["setting"])
    assert by_verdicts["now"]["missed"] == by_file["now"]["missed"]


def test_a_few_labels_are_not_enough_to_choose_by(labels: str) -> None:
    lines = Path(labels).read_text(encoding="utf-8").splitlines()
    Path("few.csv").write_text("\n".join([*lines[:3], lines[-1]]), encoding="utf-8")
    assert calibrated("--labels", "few.csv")["cross_validated_f1"]["value"] is None
    assert "are too few to estimate" in succeed("calibrate", "petitions", "--labels", "few.csv").stderr


def test_labels_of_rows_that_are_not_there_are_told(labels: str) -> None:
    with Path(labels).open("a", encoding="utf-8") as file:
        file.write("\n77777,1,yes\n")
    told = succeed("calibrate", "petitions", "--labels", labels).stderr
    assert "1 label names rows or texts that are not there" in told
