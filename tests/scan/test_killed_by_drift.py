"""A scan that is killed while it builds a new answer because the frames have changed."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from db_dedup import Deduplicator, PairLabel
from tests.forms import FORM, OTHER_FORM, edited, in_form, stored, texts, watch, write
from tests.interrupted.conftest import let_leases_end, stopped_at
from tests.scan.test_frames import found_at, lists
from tests.servers import Database

__all__ = ["let_leases_end"]

OTHER_CASES = [
    *(("sqlite", point) for point in ("measuring the frames", "matching", "switching")),
    *((server, point) for server in ("postgresql", "mariadb") for point in ("between pages", "switching")),
]
CASES = [
    ("sqlite", "between pages"),
    *(pytest.param(*case, marks=pytest.mark.thorough) for case in OTHER_CASES),
]
SETTINGS = """
[database]
url = "{url}"
[tables.letters.columns]
body = 1
"""


@pytest.fixture
def labelled(database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Deduplicator:
    """Letters in a form, scanned, with a rejected pair; then as many came in another form."""
    monkeypatch.chdir(tmp_path)
    Path("dedup.toml").write_text(SETTINGS.format(url=database.url), encoding="utf-8")
    own, others = texts(250), texts(250, seed=2)
    write(database.engine, in_form([*own, edited(own[7]), edited(own[20]), own[9]]))
    dedup = watch(database.engine)
    dedup.scan()
    dedup.labels().give([PairLabel("21", "252", is_duplicate=False)])
    dedup.scan()
    write(database.engine, in_form([*others, edited(others[5])], OTHER_FORM), first=1001)
    return dedup


@pytest.mark.parametrize(("database", "point"), CASES, indirect=["database"])
def test_a_killed_rebuild_by_drift(
    labelled: Deduplicator, point: str, let_leases_end: Callable[[], None]
) -> None:
    dedup, recipe, before = labelled, stored(labelled).recipe, found_at(labelled)
    assert before.keys() == {("8", "251"), ("10", "253")}
    with stopped_at(point, table="letters") as scan:
        scan.send(signal.SIGKILL)
        assert scan.end() == (-signal.SIGKILL, "")

    assert stored(dedup).recipe == recipe
    assert found_at(dedup) == before
    assert [match.row_key for match in dedup.check({"body": FORM.format(text=texts(8)[7])})] == ["8", "251"]
    *_, latest = lists(dedup)
    assert (latest[1] == recipe) is (point == "measuring the frames")

    let_leases_end()
    report = dedup.scan()
    assert stored(dedup).recipe != recipe
    after = found_at(dedup)
    assert after.keys() == {*before, ("1006", "1251")}
    assert {pair: after[pair] for pair in before} == before
    assert len(dedup.labels().stored()) == 1
    (left,) = lists(dedup)
    assert left == latest or point == "measuring the frames"
    assert (report.segmented < report.rows) is (point != "measuring the frames")
    assert dedup.verify().is_right
