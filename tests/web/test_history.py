"""The history of groups over HTTP, in the console and as a command: an old id leads to groups of today."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from sqlalchemy import text
from typer.testing import CliRunner

from db_dedup import Database, Deduplicator
from db_dedup.cli.application import app
from tests.web.conftest import Client, running
from tests.web.console.conftest import Visitor


class Regrouped(NamedTuple):
    """A table of which one group lost its representative, and another one all rows."""

    database: Database
    client: Client
    moved: str
    left: list[str]
    ended: str


@pytest.fixture
def regrouped(own_database: Database) -> Iterator[Regrouped]:
    dedup = Deduplicator(own_database, "petitions")
    large = next(group for group in dedup.groups() if group.size > 2 and not group.is_loose)
    small = dedup.groups()[-1]
    members = dedup.members(large.group_id)
    gone = [large.group_id, *dedup.members(small.group_id)]
    assert small.group_id not in members
    with own_database.engine.begin() as connection:
        connection.execute(text(f"DELETE FROM petitions WHERE id IN ({', '.join(gone)})"))
    dedup.scan()
    with running(own_database) as client:
        yield Regrouped(own_database, client, large.group_id, members[1:], small.group_id)


def test_an_old_id_leads_to_todays_group(regrouped: Regrouped) -> None:
    found = regrouped.client.get("/tables/petitions/group/history", group_id=regrouped.moved).json()
    (group,) = found["groups"]
    assert group["group_id"] in regrouped.left
    (change,) = found["changes"]
    assert (change["kind"], change["new_group_id"]) == ("new_representative", group["group_id"])
    assert (change["size"], change["moved"]) == (len(regrouped.left) + 1, len(regrouped.left))
    assert change["changed_at"].endswith("Z")
    back = regrouped.client.get("/tables/petitions/group/history", group_id=group["group_id"]).json()
    assert back["origins"] == [change]
    refused = regrouped.client.get("/tables/petitions/group", row_key=regrouped.moved)
    assert refused.problem == "unknown-row"
    assert refused.json()["leads_to"] == [group["group_id"]]


def test_an_id_that_never_was_one(regrouped: Regrouped) -> None:
    answer = regrouped.client.get("/tables/petitions/group/history", group_id="no such id")
    assert (answer.status, answer.problem) == (404, "unknown-row")
    assert regrouped.client.get("/tables/petitions/group", row_key="no such id").json()["leads_to"] == []


def test_the_page_of_an_old_id_links_to_todays_group(regrouped: Regrouped) -> None:
    visitor = Visitor(regrouped.client.port)
    page = visitor.get(f"/console/tables/petitions/group?row_key={regrouped.moved}")
    assert page.status == 404
    (there,) = page.links("/group?row_key")
    assert "got another representative" in page.text
    group = visitor.get(there)
    assert group.status == 200
    assert "What happened to the group" in group.text
    assert "got another representative" in group.text
    ended = visitor.get(f"/console/tables/petitions/group?row_key={regrouped.ended}")
    assert "No row of that group is in a group now." in ended.text
    assert "No row" not in visitor.get("/console/tables/petitions/group?row_key=no").text


def test_the_command_says_the_same(regrouped: Regrouped) -> None:
    url = regrouped.database.engine.url.render_as_string(hide_password=False)

    def printed(*arguments: str) -> str:
        result = CliRunner().invoke(app, ["history", "petitions", *arguments, "--url", url])
        assert result.exit_code == 0, result
        return result.stdout

    today = json.loads(printed(regrouped.moved, "--json"))["groups"][0]["group_id"]
    assert f"group {regrouped.moved} is now in group {today}" in printed(regrouped.moved)
    assert f"group {regrouped.ended} is no group now" in printed(regrouped.ended)
    assert {change["kind"] for change in json.loads(printed("--json"))} == {"new_representative", "ended"}
    assert "new representative" in printed()
    unknown = CliRunner().invoke(app, ["history", "petitions", "no", "--url", url])
    assert unknown.exit_code == 1
    assert "no group of 'petitions' has the id 'no'" in str(unknown.exception)


def test_the_report_shows_what_the_last_scans_changed(regrouped: Regrouped, tmp_path: Path) -> None:
    url = regrouped.database.engine.url.render_as_string(hide_password=False)
    page = tmp_path / "report.html"
    result = CliRunner().invoke(app, ["report", "petitions", "--output", str(page), "--url", url])
    assert result.exit_code == 0, result
    shown = page.read_text(encoding="utf-8")
    assert "Changed ids of groups" in shown
    assert f"<td>{regrouped.moved}</td>" in shown
