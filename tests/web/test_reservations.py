"""Of several clients that send the same record at the same moment, or one like it, exactly one passes."""

from __future__ import annotations

import io
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import numpy as np
import pytest
from sqlalchemy import Connection, select, text, update

from db_dedup import Database, Deduplicator
from db_dedup.errors import InvalidArgumentError, ReservationExpiredError, RowNotFoundError, TableBusyError
from db_dedup.records import CheckResult, Reservation
from db_dedup.sample import Sample
from db_dedup.schema.tables import Tables
from db_dedup.store import reservations
from db_dedup.store.clock import database_now
from tests.servers import Database as Served
from tests.web.conftest import Answer, Client, running, scanned

PATH = "/tables/petitions/reservations"
CLIENTS = 8
TEXT = (
    "老年大学旁边没有可以安静看书的地方，希望在文化站的二楼增设一处阅览室，配备桌椅和灯光，"
    "周末也能开放，方便附近的老人和放学的孩子。目前最近的图书馆要坐四十分钟公交车。"
)
RECORD = {"title": "建议增设图书阅览室", "content": TEXT}
EDITS = [
    ("希望", "盼望"),
    ("。", "！"),
    ("桌椅", "书桌椅子"),
    ("公交车", "公共汽车"),
    ("方便", "便利"),
    ("周末", "星期天"),
    ("老人", "老年人"),
    ("目前", "现在"),
]
OTHER = {
    "title": "路面塌陷",
    "content": "建设路与和平路交叉口的路面塌陷已有两周，晚上没有围挡，存在安全隐患。",
}


@pytest.fixture
def served(database: Served, sample: Sample) -> Iterator[Database]:
    """A scanned table in each kind of database."""
    with closing(scanned(database, sample)) as ours:
        yield ours


@pytest.fixture
def dedup(own_database: Database) -> Deduplicator:
    return Deduplicator(own_database, "petitions")


def at_once(client: Client, records: list[dict[str, str]]) -> list[Answer]:
    """Send records, each from a client of its own, at the same moment; a busy service is asked again."""

    until = time.monotonic() + 120  # patience with a busy machine

    def send(record: dict[str, str]) -> Answer:
        while True:
            answer = client.post(PATH, {"record": record})
            if answer.status != 503:
                return answer
            assert time.monotonic() < until, answer.body
            time.sleep(0.1)

    with ThreadPoolExecutor(len(records)) as pool:
        return list(pool.map(send, records))


def store(database: Database, row_key: int, record: dict[str, str]) -> None:
    columns = "id, title, content, created_at"
    row = {"id": row_key, **record, "created_at": "2026-01-01 00:00:00"}
    with database.engine.begin() as connection:
        statement = f"INSERT INTO petitions ({columns}) VALUES (:id, :title, :content, :created_at)"
        connection.execute(text(statement), row)


def expire(database: Database) -> None:
    """Let the reservations expire."""
    table = database.tables.reservation
    with database.engine.begin() as connection:
        connection.execute(update(table).values(expires_at=database_now(connection)))


def reserved(found: Reservation | CheckResult) -> Reservation:
    assert isinstance(found, Reservation)
    return found


def matches(found: Reservation | CheckResult) -> list[tuple[str, bool]]:
    assert isinstance(found, CheckResult)
    return [(match.row_key, match.is_reserved) for match in found.matches]


def test_of_clients_with_the_same_record_one_passes(served: Database) -> None:
    with running(served) as client:
        answers = at_once(client, [RECORD] * CLIENTS)
        assert sorted(answer.status for answer in answers) == [201] + [409] * (CLIENTS - 1)
        for answer in answers:
            if answer.status == 409:
                assert answer.problem == "duplicate"
                (match,) = answer.json()["matches"]
                assert (match["is_reserved"], match["distance"], match["kind"]) == (True, 0, "copy")
        assert client.post(PATH, {"record": OTHER}).status == 201


def test_of_clients_with_small_edits_one_passes(served: Database) -> None:
    records = [{**RECORD, "content": TEXT.replace(*edit)} for edit in EDITS]
    assert len({record["content"] for record in records}) == CLIENTS
    with running(served) as client:
        answers = at_once(client, records)
    assert sorted(answer.status for answer in answers) == [201] + [409] * (CLIENTS - 1)


def test_each_of_the_edited_records_is_new_without_the_others(own_database: Database) -> None:
    """So what keeps seven of them out is the reservation of the eighth."""
    with running(own_database) as client:
        for edit in EDITS:
            record = {**RECORD, "content": TEXT.replace(*edit)}
            answer = client.post(PATH, {"record": record})
            assert answer.status == 201
            name = answer.json()["reservation"]
            assert client.send("DELETE", f"{PATH}/{name}").status == 204


def test_the_whole_way_of_a_client(own_database: Database) -> None:
    with running(own_database) as client:
        answer = client.post(PATH, {"record": RECORD, "seconds": 600})
        assert answer.status == 201
        name = answer.json()["reservation"]
        assert answer.json()["expires_at"].endswith("Z")
        early = client.post(f"{PATH}/{name}/confirmation", {"row_key": "9001"})
        assert early.problem == "unknown-row"
        store(own_database, 9001, RECORD)
        assert client.post(f"{PATH}/{name}/confirmation", {"row_key": "9001"}).status == 204
        again = client.post(f"{PATH}/{name}/confirmation", {"row_key": "9001"})
        assert (again.status, again.problem) == (409, "expired")
        refused = client.post(PATH, {"record": RECORD, "differences": True})
        assert [match["row_key"] for match in refused.json()["matches"]] == ["9001"]


def test_a_confirmation_after_the_end_is_refused_and_the_record_checked_again(own_database: Database) -> None:
    edited = {**RECORD, "content": TEXT.replace(*EDITS[0])}
    with running(own_database) as client:
        name = client.post(PATH, {"record": RECORD, "seconds": 1}).json()["reservation"]
        expire(own_database)
        confirmation = f"{PATH}/{name}/confirmation"
        stored = {"row_key": "9001", "record": RECORD}
        # Not even its own row is there: nothing is kept from other clients by this.
        assert client.post(confirmation, stored).json()["matches"] == []
        second = client.post(PATH, {"record": edited})
        assert second.status == 201
        store(own_database, 9001, RECORD)
        late = client.post(confirmation, stored)
        assert (late.status, late.problem) == (409, "expired")
        (match,) = late.json()["matches"]
        assert (match["is_reserved"], match["kind"]) == (True, "edited")
        store(own_database, 9002, edited)
        other = client.post(f"{PATH}/{second.json()['reservation']}/confirmation", {"row_key": "9002"})
        assert other.status == 204
        (match,) = client.post(confirmation, stored).json()["matches"]
        assert (match["row_key"], match["is_reserved"]) == ("9002", False)
        without = client.post(confirmation, {"row_key": "9001"})
        assert (without.problem, "matches" in without.json()) == ("expired", False)
        assert client.post(confirmation, {"record": {"title": [1]}}).problem == "invalid"


def test_what_cannot_be_reserved(own_database: Database) -> None:
    with running(own_database) as client:
        for body in (
            {"record": RECORD, "seconds": 0},
            {"record": RECORD, "seconds": 601},
            {"record": RECORD, "row_key": "1"},
            {"record": {"nothing": 1}},
        ):
            assert client.post(PATH, body).problem == "invalid", body


def test_a_blocking_check_in_python_sees_reservations(own_database: Database, dedup: Deduplicator) -> None:
    edited = {**RECORD, "content": TEXT.replace(*EDITS[0])}
    name = reserved(dedup.reserve(RECORD)).name
    with own_database.engine.begin() as connection:
        (match,) = dedup.check(edited, connection, block=True)
    assert (match.is_reserved, match.row_key, match.group_id) == (True, "", None)
    assert match.similarity is not None
    assert 0.5 < match.similarity < 1
    assert dedup.check(edited) == []
    assert dedup.release(name)
    assert not dedup.release(name)
    with own_database.engine.begin() as connection:
        assert dedup.check(edited, connection, block=True) == []


def test_a_reservation_with_a_key_ends_when_its_row_is_committed(
    own_database: Database, dedup: Deduplicator
) -> None:
    reserved(dedup.reserve(RECORD, row_key=9001))
    assert matches(dedup.reserve(RECORD)) == [("9001", True)]
    store(own_database, 9001, RECORD)
    assert matches(dedup.reserve(RECORD)) == [("9001", False)]
    worker = dedup.worker()
    while not worker.is_drained():
        worker.step()
    assert matches(dedup.reserve(RECORD)) == [("9001", False)]


def test_an_expired_reservation_keeps_nobody_out_and_is_deleted(
    own_database: Database, dedup: Deduplicator
) -> None:
    first = reserved(dedup.reserve(RECORD))
    expire(own_database)
    reserved(dedup.reserve(RECORD))
    with own_database.engine.connect() as connection:
        names = connection.execute(select(own_database.tables.reservation.c.name)).scalars().all()
    assert first.name not in names
    assert len(names) == 1
    with pytest.raises(ReservationExpiredError):
        dedup.confirm(first.name, 1)


def test_a_confirmation_needs_the_key_of_a_committed_row(dedup: Deduplicator) -> None:
    name = reserved(dedup.reserve(RECORD)).name
    with pytest.raises(InvalidArgumentError, match="name the row key"):
        dedup.confirm(name)
    with pytest.raises(RowNotFoundError):
        dedup.confirm(name, 9001)
    dedup.confirm(name, 1)


def test_short_records_are_compared_by_their_edits_and_their_numbers(dedup: Deduplicator) -> None:
    reserved(dedup.reserve({"title": "2号楼停水三天了"}))
    assert matches(dedup.reserve({"title": "2号楼停水三天啦"})) == [("", True)]
    reserved(dedup.reserve({"title": "3号楼停水三天了"}))


def test_a_reservation_contains_no_text_and_no_plain_hash(
    own_database: Database, dedup: Deduplicator
) -> None:
    record = {"title": "联系电话13800001111"}
    reserved(dedup.reserve(record))
    table = own_database.tables.reservation
    with own_database.engine.connect() as connection:
        (row,) = connection.execute(select(table)).mappings().all()
    with np.load(io.BytesIO(row["packed"]), allow_pickle=False) as packed:
        numbers = {int(value) for name in packed.files for value in packed[name].ravel().tolist()}
    assert not numbers & {ord(character) for character in "联系电话"}
    assert 13800001111 not in numbers
    with own_database.engine.connect() as connection:
        assert connection.execute(select(table.c.row_key)).scalar() is None


def test_reservations_by_former_settings_are_waited_for(own_database: Database, dedup: Deduplicator) -> None:
    reserved(dedup.reserve(RECORD))
    Deduplicator(own_database, "petitions", {"title": 2, "content": 1}, order="created_at").scan()
    with pytest.raises(TableBusyError, match="former settings"):
        dedup.reserve(OTHER)
    expire(own_database)
    reserved(dedup.reserve(OTHER))


def test_there_is_a_most(dedup: Deduplicator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("db_dedup.app.blocking_check.MOST_RESERVED", 1)
    reserved(dedup.reserve(RECORD))
    with pytest.raises(TableBusyError, match="has 1 reservations"):
        dedup.reserve(OTHER)


def test_reservations_whose_rows_are_stored_are_not_read(
    own_database: Database, dedup: Deduplicator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody needs to confirm them, so there may be many."""
    monkeypatch.setattr("db_dedup.app.blocking_check.MOST_RESERVED", 1)
    first = reserved(dedup.reserve(RECORD, row_key=9001))
    store(own_database, 9001, RECORD)
    read: list[str] = []
    read_named = reservations.read_named

    def noted(
        connection: Connection, tables: Tables, table_id: int, names: Sequence[str]
    ) -> list[Reservation]:
        read.extend(names)
        return read_named(connection, tables, table_id, names)

    monkeypatch.setattr(reservations, "read_named", noted)
    reserved(dedup.reserve(OTHER))
    assert read == []
    dedup.confirm(first.name)
    assert read == [first.name]


def test_reservations_together_have_a_most_bytes(
    dedup: Deduplicator, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = len(reserved(dedup.reserve(RECORD)).packed)
    monkeypatch.setattr("db_dedup.app.blocking_check.MOST_RESERVED_BYTES", size)
    with pytest.raises(TableBusyError, match="has 1 reservations"):
        dedup.reserve(OTHER)
