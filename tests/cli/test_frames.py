"""What the commands say of frames, and the rows in which they show them."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import Engine, delete

from tests.cli.conftest import run, succeed
from tests.forms import FORM, OTHER_FORM, edited, in_form, letters, texts, write
from tests.servers import Database

SETTINGS = """
[database]
url = "sqlite:///database.db"
[tables.letters]
{settings}
[tables.letters.columns]
body = 1
"""
OPENING, CLOSING = "[【工单来源】市民热线【诉求内容】]", "[【办理要求】请承办单位"


@pytest.fixture(autouse=True)
def folder(sqlite_database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Letters in a form, not scanned yet, in the folder of their database."""
    monkeypatch.chdir(tmp_path)
    settings()
    own = texts(250)
    write(sqlite_database.engine, in_form([*own, edited(own[7])]))
    succeed("upgrade")
    return tmp_path


def settings(**values: str) -> None:
    lines = [f"{name} = {value!r}" for name, value in values.items()]
    Path("dedup.toml").write_text(SETTINGS.format(settings="\n".join(lines)), encoding="utf-8")


def replace_forms(engine: Engine) -> None:
    """Write half of the letters in another form."""
    with engine.begin() as connection:
        connection.execute(delete(letters).where(letters.c.id.between(101, 250)))
    write(engine, in_form(texts(150, seed=2), OTHER_FORM), first=1001)


def test_a_dry_run_shows_the_form() -> None:
    said = succeed("scan", "letters", "--dry-run").stderr
    assert "frames: left out of 251 rows; the list has " in said
    (line,) = [line for line in said.splitlines() if line.startswith("row ")]
    assert said.count("what is in brackets is left out before texts are compared:\nrow ") == 1
    assert OPENING in line
    assert CLOSING in line
    (example,) = succeed("scan", "letters", "--dry-run", "--json").json()["frame_examples"]
    assert [is_frame for _, is_frame in example["parts"]] == [True, False, True]
    own = example["parts"][1][0]
    bodies = texts(250)
    assert own == [*bodies, edited(bodies[7])][int(example["row_key"]) - 1]


def test_status_shows_the_form() -> None:
    assert "frames: left out of 251 rows" in succeed("scan", "letters").stderr
    shown = succeed("status", "letters", "--frames").stdout
    assert OPENING in shown
    assert OPENING not in succeed("status", "letters").stdout
    (entry,) = succeed("status", "letters", "--frames", "--json").json()
    assert (entry["frames"]["state"], entry["frames"]["rows"]) == ("measured", 251)
    assert len(entry["frame_examples"]) == 1


def test_explain_says_what_was_left_out() -> None:
    succeed("scan", "letters")
    explained = succeed("explain", "letters", "8", "251")
    for key in ("8", "251"):
        assert (
            f"Column body of row {key} was compared without its frame: {OPENING} {CLOSING}"
            in explained.stdout
        )
    (column,) = succeed("explain", "letters", "8", "251", "--json").json()["columns"]
    assert "".join(column["frames_a"]).startswith("【工单来源】")
    assert column["text_a"] == texts(8)[7]
    assert column["value_a"] == FORM.format(text=texts(8)[7])
    assert "".join(token["text"] for token in column["tokens_a"]) == column["text_a"]


def test_drift_is_said_and_is_no_difference(sqlite_database: Database) -> None:
    settings(frame_drift="wait")
    succeed("scan", "letters")
    replace_forms(sqlite_database.engine)
    said = succeed("scan", "letters").stderr
    waits = "would be compared by other texts; `db-dedup scan letters --rebuild` compares by the new frames"
    assert waits in said
    verified = run("verify", "letters")
    assert verified.exit_code == 0
    assert f"{waits} (this does not count as a difference)" in verified.stderr
    assert "scan letters --rebuild" in succeed("status", "letters").stdout
    settings(frame_drift="rebuild")
    assert "builds a new answer by the new frames" in succeed("scan", "letters", "--preview").stderr
    assert "the answer was built anew" in succeed("scan", "letters").stderr
    assert "frames" not in succeed("verify", "letters").stderr


def test_few_rows_are_not_measured(sqlite_database: Database) -> None:
    with sqlite_database.engine.begin() as connection:
        connection.execute(delete(letters).where(letters.c.id > 100))
    assert "frames: not measured" in succeed("scan", "letters").stderr
    assert "not measured" in succeed("status", "letters").stdout
    assert succeed("status", "letters", "--frames", "--json").json()[0].get("frame_examples") is None


def test_a_lost_list_is_one_line(sqlite_database: Database) -> None:
    succeed("scan", "letters")
    with sqlite_database.engine.begin() as connection:
        connection.exec_driver_sql("DELETE FROM dedup_frame_list")
    failed = run("verify", "letters")
    assert failed.exit_code == 1
    assert str(failed.error) == (
        "the stored list of frames of 'letters' is missing: run `db-dedup scan letters --rebuild`"
    )
    assert "worker, check, explain and verify wait for it" in succeed("status", "letters").stdout
