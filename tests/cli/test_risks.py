"""What `init` and `scan --dry-run` warn of, and that they do not warn of tables that have nothing of it."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from sqlalchemy import Column, Integer, MetaData, Table, insert
from sqlalchemy import Text as LongText

from db_dedup.config import Settings
from db_dedup.proposal import has_too_little_text, risk_of_too_little_text, risks_of_texts
from db_dedup.proposal.risks import shared_frame, sounds_like_answers
from db_dedup.sample import generate_petitions
from tests.cli.conftest import succeed
from tests.servers import Database

ROWS = 200
PETITIONS = generate_petitions(ROWS).petitions
LETTERS = [petition.content for petition in PETITIONS]
TITLES = [petition.title for petition in PETITIONS]
OPENING = "您好，您反映的问题已收悉，我单位高度重视，立即组织人员核实，现将有关情况答复如下："
FORM = (
    "【工单编号】{i:08}【诉求类型】投诉【诉求内容】{text}"
    "【办理要求】请承办单位在五个工作日内办结，并将结果反馈市民。"
)
ENGLISH_FORM = (
    "Complaint number {i}. Thank you for contacting the city hotline, your request is as follows: {text}"
)
JOINT = (
    "小区电梯长期故障，物业公司多次推诿不予维修，给老人和孩子的出行带来极大不便，"
    "恳请有关部门尽快督促物业公司维修。"
)


def unlike(count: int, length: int = 60) -> list[str]:
    """Texts of random ideographs, which share nothing."""
    source = random.Random(7)
    return ["".join(chr(source.randrange(0x4E00, 0x9FA5)) for _ in range(length)) for _ in range(count)]


def unlike_words(count: int) -> list[str]:
    source = random.Random(8)
    letters = "abcdefghijklmnopqrstuvwxyz"
    return [
        " ".join("".join(source.choices(letters, k=source.randrange(3, 9))) for _ in range(20))
        for _ in range(count)
    ]


def risks(**columns: list[str]) -> list[str]:
    return list(risks_of_texts(columns, leaves_frames_out=True))


def test_a_sound_table_has_no_risk() -> None:
    assert risks(title=TITLES, content=LETTERS) == []
    assert risks(content=unlike(ROWS)) == []
    assert risks(narrative=unlike_words(ROWS)) == []


@pytest.mark.parametrize(
    "name",
    [
        "reply",
        "Company response",
        "ANSWER",
        "officialReply",
        "replies2",
        "答复内容",
        "回复",
        "办理结果",
        "处理意见",
        "replycontent",
        "ANSWERTEXT",
    ],
)
def test_columns_that_hold_answers_by_their_name(name: str) -> None:
    [risk] = risks(**{name: LETTERS})
    assert name in risk
    assert "official answers" in risk
    assert sounds_like_answers(name)


@pytest.mark.parametrize(
    "name",
    [
        "content",
        "title",
        "诉求内容",
        "反映问题",
        "handled_at",
        "responsible_office",
        "replaced_by",
        "correspondence",
    ],
)
def test_names_that_are_not_of_answers(name: str) -> None:
    assert not sounds_like_answers(name)


@pytest.mark.parametrize(
    "texts",
    [
        [OPENING + text for text in unlike(ROWS)],
        [text + OPENING for text in unlike(ROWS)],
        [FORM.format(i=i * 7919, text=text) for i, text in enumerate(unlike(ROWS))],
        [ENGLISH_FORM.format(i=i * 7919, text=text) for i, text in enumerate(unlike_words(ROWS))],
        [OPENING + text for text in unlike(ROWS * 6 // 10)] + unlike(ROWS * 4 // 10),
    ],
    ids=["opening", "closing", "form", "words with spaces", "most rows"],
)
def test_what_most_rows_share_is_a_frame(texts: list[str]) -> None:
    [risk] = risks(content=texts)
    assert risk.startswith("column content: in ")
    assert "leaves such a frame out" in risk
    [compared] = risks_of_texts({"content": texts}, leaves_frames_out=False)
    assert "`frames = true`" in compared


@pytest.mark.parametrize(
    "texts",
    [
        ["尊敬的领导您好，" + text for text in unlike(ROWS)],
        [OPENING + text for text in unlike(ROWS // 4)] + unlike(ROWS),
        [f"{JOINT}{i}" for i in range(ROWS)] + unlike(50),
        [JOINT] * ROWS,
        [JOINT] * ROWS + [JOINT + text for text in unlike(20, 30)],
        [OPENING + text for text in unlike(10)],
    ],
    ids=[
        "greeting",
        "a fifth of the rows",
        "a joint letter",
        "exact duplicates",
        "a letter that few add to",
        "few rows",
    ],
)
def test_what_is_no_frame_of_most_rows(texts: list[str]) -> None:
    assert risks(content=texts) == []


def test_the_length_of_a_frame() -> None:
    share, characters = shared_frame([OPENING + text for text in unlike(ROWS)])
    assert share == 1
    assert characters == len(OPENING)


def test_short_texts() -> None:
    [risk] = risks(title=unlike(ROWS, 29))
    assert risk.startswith("short texts: half of the sampled rows have 29 characters")
    assert risks(title=unlike(ROWS, 30)) == []
    assert risks(title=unlike(ROWS, 15), content=unlike(ROWS, 15)) == []
    assert risks(title=unlike(19, 10)) == []
    # Empty texts say nothing about the length of the others.
    assert risks(content=[*unlike(50, 40), *[""] * ROWS]) == []


def test_rows_with_too_little_text() -> None:
    [risk] = risk_of_too_little_text(300, 1_000)
    assert risk.startswith("300 rows have too little text to judge, 30% of all")
    assert list(risk_of_too_little_text(49, 1_000)) == []
    assert list(risk_of_too_little_text(5, 10)) == []
    assert has_too_little_text(["", "停水"])
    assert not has_too_little_text(["停水三天", "无人维修"])


def fill(database: Database, texts: list[str]) -> None:
    table = Table("replies", MetaData(), Column("id", Integer, primary_key=True), Column("reply", LongText))
    table.create(database.engine)
    with database.engine.begin() as connection:
        connection.execute(insert(table), [{"id": i, "reply": text} for i, text in enumerate(texts, 1)])


def test_init_and_the_dry_run_print_them(database: Database, tmp_path: Path) -> None:
    fill(database, [OPENING + text for text in unlike(60, 40)] + ["无"] * 20)
    file = tmp_path / "dedup.toml"
    done = succeed("init", "--url", database.url, "--config", str(file))
    comments = [line for line in file.read_text("utf-8").splitlines() if line.startswith("# Warning: ")]
    warned = [line for line in done.stderr.splitlines() if line.startswith("warning: replies: ")]
    assert [line.removesuffix(".").partition(": ")[2] for line in comments] == [
        line.removeprefix("warning: replies: ") for line in warned
    ]
    assert ["official answers" in line for line in warned] == [True, False, False]
    assert "characters are the same" in warned[1]
    assert warned[2].startswith("warning: replies: 20 sampled rows have too little text to judge, 25% of all")
    assert list(Settings.from_file(file).tables) == ["replies"]
    dry = succeed("scan", "replies", "--dry-run", "--config", str(file))
    risks_of_scan = [line for line in dry.stderr.splitlines() if line.startswith("warning: ")]
    assert [line.removeprefix("warning: ") for line in risks_of_scan] == [
        line.removeprefix("warning: replies: ").replace("20 sampled rows", "20 rows") for line in warned
    ]
    as_json = succeed("scan", "replies", "--dry-run", "--json", "--config", str(file)).json()
    assert as_json["risks"] == [line.removeprefix("warning: ") for line in risks_of_scan]


def test_a_table_without_risks_is_not_warned_of(petitions: Database) -> None:
    done = succeed("init", "--force", "--url", petitions.url)
    assert "warning" not in done.stderr
    assert "Warning" not in Path("dedup.toml").read_text("utf-8")
    assert "warning" not in succeed("scan", "petitions", "--dry-run").stderr
