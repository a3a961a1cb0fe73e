"""The API gives what Python and the command line give."""

from __future__ import annotations

import json
import re
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import asdict
from typing import Any

import pytest
from sqlalchemy import text as sql
from typer.testing import CliRunner

from db_dedup import Database, Deduplicator
from db_dedup.cli.application import app
from db_dedup.records.kinds import KINDS
from db_dedup.sample import Sample
from db_dedup.translation import ENGLISH, tr, use_language
from db_dedup.web.cursors import cursor_of
from db_dedup.web.tables import Tables
from tests.servers import Database as Served
from tests.web.conftest import Client, running, scanned

TABLE = "/tables/petitions"


def record_of(sample: Sample, place: int = 0) -> dict[str, Any]:
    petition = sample.petitions[place]
    return {"title": petition.title, "content": petition.content}


@pytest.mark.parametrize("limit", [2, 7, 1000])
def test_pages_of_pairs_are_all_pairs(client: Client, dedup: Deduplicator, limit: int) -> None:
    found = client.everything(f"{TABLE}/pairs", "pairs", limit=limit)
    expected = [asdict(pair) for pair in dedup.pairs()]
    assert len(expected) > 7
    assert sorted(found, key=str) == sorted(expected, key=str)
    assert {pair["kind"] for pair in found} > {"copy"}


def test_pairs_of_a_kind(client: Client, dedup: Deduplicator) -> None:
    pairs = list(dedup.pairs())
    for kind in KINDS:
        expected = {(p.key_a, p.key_b) for p in pairs if p.kind == kind}
        assert 0 < len(expected) < len(pairs)
        found = client.everything(f"{TABLE}/pairs", "pairs", kind=kind, limit=2)
        assert {(p["key_a"], p["key_b"]) for p in found} == expected, kind
    for word, flag in (("true", True), ("false", False)):
        expected = {(p.key_a, p.key_b) for p in pairs if p.kind == "edited" and p.other_place is flag}
        assert 0 < len(expected) < sum(p.kind == "edited" for p in pairs)
        found = client.everything(f"{TABLE}/pairs", "pairs", kind="edited", other_place=word, limit=2)
        assert {(p["key_a"], p["key_b"]) for p in found} == expected, word
    assert client.get(f"{TABLE}/pairs", kind="odd").problem == "invalid"


@pytest.mark.parametrize("limit", [2, 3, 1000])
def test_pages_of_groups_are_all_groups(client: Client, dedup: Deduplicator, limit: int) -> None:
    found = client.everything(f"{TABLE}/groups", "groups", limit=limit)
    assert found == [asdict(group) for group in dedup.groups()]
    assert len(found) > 3


def test_the_group_of_each_row(client: Client, dedup: Deduplicator) -> None:
    group = dedup.groups(1)[0]
    members = dedup.members(group.group_id)
    assert len(members) > 2
    for key in members:
        found = client.get(f"{TABLE}/group", row_key=key).json()
        assert (found["group"], found["row_keys"]) == (asdict(group), members)
    pages = client.everything(f"{TABLE}/group", "row_keys", row_key=members[-1], limit=2)
    assert pages == members


def test_a_row_in_no_group(client: Client, dedup: Deduplicator, sample: Sample) -> None:
    grouped = {key for group in dedup.groups() for key in dedup.members(group.group_id)}
    alone = next(key for key in map(str, range(1, len(sample.petitions))) if key not in grouped)
    assert client.get(f"{TABLE}/group", row_key=alone).problem == "unknown-row"


def test_an_explanation_is_that_of_the_command(client: Client, dedup: Deduplicator, scanned_url: str) -> None:
    pair = next(iter(dedup.pairs()))
    found = client.get(f"{TABLE}/explanation", key_a=pair.key_a, key_b=pair.key_b).json()
    arguments = ["explain", "petitions", pair.key_a, pair.key_b, "--url", scanned_url, "--json"]
    printed = json.loads(CliRunner().invoke(app, arguments).stdout)
    assert found.pop("sentences")[0].endswith(".")
    for name in ("decision", "distance", "similarities", "columns", "differences"):
        assert found[name] == printed[name]


def test_the_sentences_of_an_explanation_are_english(client: Client, dedup: Deduplicator) -> None:
    """Whatever the language of the service: the API has one."""
    pair = next(iter(dedup.pairs()))
    keys = {"key_a": pair.key_a, "key_b": pair.key_b}
    expected = client.get(f"{TABLE}/explanation", **keys).json()["sentences"]
    use_language("zh")
    try:
        assert client.get(f"{TABLE}/explanation", **keys).json()["sentences"] == expected
        assert tr("passed") != "passed"
    finally:
        use_language(ENGLISH)


def test_a_table_that_no_address_can_name_is_told(sqlite_database: Served) -> None:
    with sqlite_database.engine.begin() as connection:
        connection.execute(sql('CREATE TABLE "a/b" (id INTEGER PRIMARY KEY, content TEXT)'))
    with closing(Database(sqlite_database.url)) as database:
        dedup = Deduplicator(database, "a/b", {"content": 1})
        dedup.upgrade()
        dedup.scan()
        (fault,) = Tables(database, None).make_ready().values()
        assert "table = 'a/b' in the settings file" in str(fault)
        with running(database) as client:
            assert client.get("/tables/a%2Fb/groups").status == 404


def test_explanations_at_the_same_time_do_not_mix(client: Client, dedup: Deduplicator) -> None:
    pairs = [(pair.key_a, pair.key_b) for pair in dedup.pairs()][:12]

    def explain(pair: tuple[str, str]) -> bytes:
        return client.get(f"{TABLE}/explanation", key_a=pair[0], key_b=pair[1]).body

    one_by_one = [explain(pair) for pair in pairs]
    assert all(b'"tokens_a"' in body for body in one_by_one)
    with ThreadPoolExecutor(8) as pool:
        for _ in range(3):
            assert list(pool.map(explain, pairs)) == one_by_one


def test_checks_at_the_same_time_do_not_mix(client: Client, sample: Sample) -> None:
    records = [record_of(sample, place) for place in range(24)]

    def check(record: dict[str, Any]) -> bytes:
        return client.post(f"{TABLE}/check", {"record": record, "differences": True}).body

    one_by_one = [check(record) for record in records]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(check, records)) == one_by_one


def test_status(client: Client, dedup: Deduplicator) -> None:
    (entry,) = dedup.database.status()
    assert client.get(f"{TABLE}/status").json()["pairs"] == entry.pairs
    assert [one["table"] for one in client.get("/status").json()] == ["petitions"]
    assert client.get("/tables").json() == {"tables": ["petitions"]}


def test_health_and_metrics(client: Client) -> None:
    assert client.get("/health/live").json() == {"status": "live"}
    for _ in range(300):
        ready = client.get("/health/ready")
        if ready.status == 200:
            break
        assert ready.problem == "busy"
    assert ready.json() == {"status": "ready"}
    text = client.get("/metrics").body.decode()
    assert 'db_dedup_queue_length{table="petitions"} 0.0' in text
    assert 'route="/v1/health/live",status="200"' in text


@pytest.mark.parametrize("path", ["/health/live", "/docs", "/tables"])
def test_monitors_may_ask_without_a_body(client: Client, path: str) -> None:
    asked, got = client.send("HEAD", path), client.get(path)
    assert (asked.status, asked.body) == (200, b"")
    assert asked.headers["content-length"] == str(len(got.body))


def test_another_method_is_told_which_there_are(client: Client) -> None:
    answer = client.send("PUT", "/tables/petitions/check", {})
    assert answer.problem == "method-refused"
    assert answer.headers["allow"] == "POST"


def test_the_openapi_document_names_all_and_the_page_needs_no_other_file(client: Client) -> None:
    document = client.get("/openapi.json").json()
    assert {path for path in document["paths"] if not path.startswith("/v1/")} == set()
    check = document["paths"]["/v1/tables/{table}/check"]["post"]
    assert check["security"] == [{"HTTPBearer": []}]
    assert set(check["responses"]) == {"200", "default"}
    assert "HTTPValidationError" not in json.dumps(document)
    page = client.get("/docs")
    assert page.headers["content-type"].startswith("text/html")
    text = page.body.decode()
    assert "<script" not in text
    assert all(link.startswith("/v1/") for link in text.split('href="')[1:])
    assert all(path in text for path in document["paths"])
    schemas = document["components"]["schemas"]
    for name in re.findall('"#/components/schemas/([^"]*)"', json.dumps(document)):
        assert name in schemas
    # Whatever a client may send or get is explained, also what is inside a list, or the answer of a 201.
    for field in {field for schema in schemas.values() for field in schema["properties"]}:
        assert f'<td class="name">{field}</td>' in text, field
    assert "expires_at" in text
    assert {"matches", "leads_to", "errors"} <= schemas["Problem"]["properties"].keys()
    assert 'id="not-json"' in text


def test_a_label_is_stored_listed_and_withdrawn(own_database: Database) -> None:
    dedup = Deduplicator(own_database, "petitions")
    pairs = [pair for pair in dedup.pairs() if pair.distance][:3]
    with running(own_database) as client:
        labels = [{"key_a": p.key_a, "key_b": p.key_b, "is_duplicate": False} for p in pairs]
        given = client.post(f"{TABLE}/labels", {"labels": labels}).json()
        assert (given["kept"], given["faults"], given["changes_answer"]) == (3, [], True)
        assert given["is_queued"]
        listed = client.everything(f"{TABLE}/labels", "labels", limit=2)
        assert all(label["decided_at"].endswith("Z") for label in listed)
        assert {frozenset((one["key_a"], one["key_b"])) for one in listed} == {
            frozenset((p.key_a, p.key_b)) for p in pairs
        }
        assert not any(one["is_duplicate"] for one in listed)
        path = f"{TABLE}/labels?key_a={pairs[0].key_a}&key_b={pairs[0].key_b}"
        assert client.send("DELETE", path).json()["withdrawn"] is False
        assert client.send("DELETE", path).json()["withdrawn"] is None
        assert len(client.everything(f"{TABLE}/labels", "labels")) == 2
        forged = cursor_of(("2026-01-01T00:00:00+00:00", "a", "b"))
        assert client.get(f"{TABLE}/labels", cursor=forged).problem == "invalid"
        unknown = client.post(f"{TABLE}/labels", {"labels": [{**labels[0], "key_a": "no such row"}]}).json()
        assert (unknown["kept"], len(unknown["faults"])) == (0, 1)


def refuses_nul(client: Client) -> None:
    """PostgreSQL fails with this character; the fault is the client's."""
    for path in (
        "group?row_key=%00",
        "group?row_key=1&cursor=WyJcdTAwMDAiXQ",  # ["\u0000"]
        "group/history?group_id=1%00",
        "explanation?key_a=1&key_b=%00",
    ):
        assert client.get(f"{TABLE}/{path}").problem == "invalid"
    assert client.get("/tables/%00/groups").problem == "invalid"
    assert client.send("DELETE", f"{TABLE}/reservations/%00").problem == "invalid"
    label = {"key_a": "\0", "key_b": "1", "is_duplicate": True}
    assert client.post(f"{TABLE}/labels", {"labels": [label]}).json()["kept"] == 0
    assert client.post(f"{TABLE}/check", {"record": {"title": "\0", "content": "a\0b"}}).status == 200
    confirmation = f"{TABLE}/reservations/{'0' * 32}/confirmation"
    assert client.post(confirmation, {"row_key": "\0"}).problem == "expired"
    reserved = {"record": {"title": "a\0b", "content": "a\0b"}, "row_key": "\0"}
    assert client.post(f"{TABLE}/reservations", reserved).problem == "invalid"


def test_the_same_in_every_database(database: Served, sample: Sample) -> None:
    ours = scanned(database, sample)
    try:
        dedup = Deduplicator(ours, "petitions")
        with running(ours) as client:
            pairs = client.everything(f"{TABLE}/pairs", "pairs", limit=5)
            assert sorted(pairs, key=str) == sorted((asdict(p) for p in dedup.pairs()), key=str)
            groups = client.everything(f"{TABLE}/groups", "groups", limit=5)
            assert groups == [asdict(group) for group in dedup.groups()]
            first = groups[0]["group_id"]
            members = client.everything(f"{TABLE}/group", "row_keys", row_key=first, limit=2)
            assert members == dedup.members(first)
            checked = client.post(f"{TABLE}/check", {"record": record_of(sample)}).json()
            assert checked["is_duplicate"]
            refuses_nul(client)
    finally:
        ours.close()
