"""`label` at the terminal: pairs are offered, answers kept, undone, listed and brought in from a file."""

from __future__ import annotations

import csv
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest
from sqlalchemy import Column, Engine, Integer, MetaData, String, Table, insert, text

from db_dedup import Deduplicator, Text
from db_dedup.cli.label import _Session
from tests.cli.conftest import fail, folder, run, sample, scanned, scanned_file, succeed  # noqa: F401 - fixtures
from tests.servers import Database


def listed() -> list[tuple[str, ...]]:
    """What is kept, without the times."""
    lines = list(csv.reader(succeed("label", "petitions", "--list", "--format", "csv").stdout.splitlines()))
    assert lines[0] == ["key_a", "key_b", "label", "decided_at"]
    return [tuple(line[:3]) for line in lines[1:]]


def offered(stdout: str) -> list[frozenset[str]]:
    """The pairs of row keys that were shown."""
    return [frozenset(keys) for keys in re.findall(r"row (\d+)\s+┃ row (\d+)", stdout)]


def letters(engine: Engine) -> Deduplicator:
    """Twenty short letters and twenty long ones, each with a second one that shares more and more of it."""
    table = Table(
        "letters", MetaData(), Column("id", Integer, primary_key=True), Column("body", String(2000))
    )
    table.create(engine)
    generator = Random(4)
    rows = []
    for words in (20, 150):
        for i in range(20):
            body = [f"w{generator.randrange(100_000)}" for _ in range(words)]
            other = [word if j >= i * words / 30 else f"x{j}{i}" for j, word in enumerate(body)]
            rows += [{"body": " ".join(body)}, {"body": " ".join(other)}]
    with engine.begin() as connection:
        connection.execute(insert(table), rows)
    dedup = Deduplicator(engine, "letters", {"body": Text()}, segmenter="words")
    dedup.upgrade()
    dedup.scan()
    return dedup


@pytest.mark.usefixtures("scanned")
def test_answers_are_kept_and_not_asked_for_again() -> None:
    first = succeed("label", "petitions", "--limit", "3", stdin="y\nn\ns\n")
    pairs = offered(first.stdout)
    assert len(set(pairs)) == 3
    assert "2 labels stored" in first.stderr
    assert "db-dedup scan petitions" in first.stderr
    assert {(frozenset(line[:2]), line[2]) for line in listed()} == {(pairs[0], "yes"), (pairs[1], "no")}
    again = offered(succeed("label", "petitions", "--limit", "3", stdin="").stdout)
    assert again[0] == pairs[2], "a pair that was skipped is offered again"
    assert not set(pairs[:2]) & set(again)


@pytest.mark.usefixtures("scanned")
def test_ctrl_d_at_a_terminal_quits_as_q_does() -> None:
    terminal, stdin = os.openpty()
    command = (sys.executable, "-m", "db_dedup.cli", "label", "petitions")
    with subprocess.Popen(command, stdin=stdin, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        os.close(stdin)
        assert process.stderr is not None
        said = b""
        while line := process.stderr.readline():
            said += line
            if b"q quit: " in line:
                break
        while process.poll() is None:  # what is written before the terminal waits for one key is dropped
            os.write(terminal, b"\x04")
            time.sleep(0.05)
        said += process.stderr.read()
    os.close(terminal)
    assert (process.returncode, said.splitlines()[-1]) == (0, b"0 labels stored")


@pytest.mark.usefixtures("scanned")
def test_an_answer_can_be_undone_at_once_and_later() -> None:
    result = succeed("label", "petitions", "--limit", "2", stdin="x\nu\nn\nu\ny\nq\n")
    pairs = offered(result.stdout)
    first, other = pairs[0], pairs[2]
    assert pairs == [first, first, other, first, other]
    assert "nothing to undo" in result.stderr
    (line,) = listed()
    assert line[2] == "yes"
    succeed("label", "petitions", "--undo", line[1], line[0])
    assert listed() == []
    again = run("label", "petitions", "--undo", *line[:2])
    assert again.exit_code == 1
    assert "they have no label" in again.stderr


def test_what_is_undone_at_once_is_the_label_that_was_given(
    database: Database, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also if a row has changed since it was shown; what cannot be undone is told."""
    dedup = letters(database.engine)
    labels = dedup.labels()
    (question,) = labels.questions(1)

    def set_texts(text_a: str) -> None:
        with database.engine.begin() as connection:
            changed = text("UPDATE letters SET body = :body WHERE id = :key")
            connection.execute(changed, {"body": text_a, "key": int(question.key_a)})

    def change() -> None:
        set_texts("another text of this row")

    def withdraw() -> None:
        labels.withdraw(question.key_a, question.key_b)

    for meanwhile, told in ((change, ""), (withdraw, "they have no label")):
        steps = iter(("n", "u", "q"))

        def answer(steps: Iterator[str] = steps, meanwhile: Callable[[], None] = meanwhile) -> str:
            said = next(steps)
            if said == "u":
                meanwhile()
            return said

        monkeypatch.setattr("db_dedup.cli.label._answer", answer)
        assert _Session(labels, ["body"], full=False).ask([question, question]) == []
        assert told in capsys.readouterr().err
        set_texts(question.texts_a[0])
        assert labels.stored() == []


@pytest.mark.usefixtures("scanned")
def test_answers_from_a_file_hold_and_what_is_listed_can_be_read_again() -> None:
    pairs = [line.split(",")[:2] for line in _pairs() if not line.endswith(",0,1.0")][:2]
    lines = [f"{pairs[0][0]},{pairs[0][1]},no", f"{pairs[1][1]},{pairs[1][0]},1", "77777,1,no"]
    Path("answers.csv").write_text("\n".join(["key_a,key_b,label", *lines]), encoding="utf-8")
    result = succeed("label", "petitions", "--answers", "answers.csv")
    assert "2 labels stored" in result.stderr
    assert "row '77777' is not there" in result.stderr
    kept = succeed("label", "petitions", "--list", "--format", "csv").stdout
    Path("kept.csv").write_text(kept, encoding="utf-8")
    before = listed()
    assert sorted(label for _, _, label in before) == ["no", "yes"]
    succeed("scan", "petitions")
    assert ",".join(pairs[0]) not in {",".join(line.split(",")[:2]) for line in _pairs()}
    succeed("label", "petitions", "--answers", "kept.csv")
    assert listed() == before
    told = succeed("explain", "petitions", *pairs[0]).stdout
    assert "not a pair: somebody has labelled them as no duplicates." in told
    assert "somebody has labelled them as no duplicates" in told


@pytest.mark.usefixtures("scanned")
def test_a_file_of_which_no_label_can_be_stored_is_a_failure() -> None:
    Path("answers.csv").write_text("key_a,key_b,label\n77777,1,no\n", encoding="utf-8")
    result = run("label", "petitions", "--answers", "answers.csv")
    assert result.exit_code == 1
    assert "row '77777' is not there" in result.stderr
    assert "0 labels stored" in result.stderr


def test_labels_that_are_not_needed_are_counted(scanned: Database) -> None:  # noqa: F811 - a fixture
    """Two exact duplicates, and each of them beside one other row."""
    first = (
        "SELECT f.row_key, c.row_key FROM dedup_fingerprint f JOIN dedup_fingerprint c ON c.id = f.copy_of"
    )
    with scanned.engine.connect() as connection:
        one, other = connection.execute(text(first)).all()[0]
    third = next(key for line in _pairs() for key in line.split(",")[:2] if key not in (one, other))
    lines = [f"{one},{other},yes", f"{one},{third},yes", f"{other},{third},yes"]
    Path("answers.csv").write_text("\n".join(["key_a,key_b,label", *lines]), encoding="utf-8")
    assert succeed("label", "petitions", "--answers", "answers.csv").stderr.splitlines() == [
        (
            "1 label was left out, because a later label of rows with the same two texts counts; "
            "0 of them say the opposite"
        ),
        "1 label is of exact duplicates, which need no label",
        "1 label stored",
    ]
    Path("answers.csv").write_text("\n".join(["key_a,key_b,label", lines[0]]), encoding="utf-8")
    assert run("label", "petitions", "--answers", "answers.csv").exit_code == 1


@pytest.mark.usefixtures("scanned")
def test_a_label_that_says_nothing_keeps_nothing() -> None:
    Path("answers.csv").write_text("key_a,key_b,label\n1,2,yes\n1,3,perhaps\n", encoding="utf-8")
    assert "--duplicate-label" in str(fail("label", "petitions", "--answers", "answers.csv"))
    assert listed() == []


def test_questions_tell_much_and_are_spread(sqlite_database: Database) -> None:
    dedup = letters(sqlite_database.engine)
    questions = dedup.labels().questions(20)
    assert len(questions) == 20
    keys = [frozenset((q.key_a, q.key_b)) for q in questions]
    assert len(set(keys)) == 20
    rows = [key for pair in keys for key in pair]
    assert max(rows.count(key) for key in rows) <= 2
    telling = [q for q in questions if q.reason == "near the threshold"]
    assert telling
    assert all(abs(q.similarity - 0.57) < 0.25 for q in telling)
    assert {q.is_found for q in questions} == {True, False}
    assert {len(q.texts_a[0]) > 400 for q in questions[:4]} == {True, False}
    found = {frozenset((p.key_a, p.key_b)) for p in dedup.pairs(expand=True)}
    assert {pair in found for pair, q in zip(keys, questions, strict=True) if q.is_found} == {True}
    assert {pair in found for pair, q in zip(keys, questions, strict=True) if not q.is_found} == {False}
    assert dedup.labels().stored() == []


def _pairs() -> list[str]:
    return succeed("pairs", "petitions", "--format", "csv").stdout.splitlines()[1:]
