"""What a worker tells Prometheus."""

from __future__ import annotations

import importlib
import re
import socket
import sys
import threading
from urllib.request import urlopen

import pytest
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families
from sqlalchemy import insert

from db_dedup import Deduplicator
from db_dedup.errors import ConfigError, MissingExtraError
from db_dedup.jobs.worker.change_worker import ChangeWorker
from db_dedup.jobs.worker.metrics import WorkerMetrics
from db_dedup.store.clock import utc_now
from tests.forms import OTHER_FORM, in_form, texts, watch, write
from tests.health.conftest import do
from tests.health.process import background
from tests.servers import Database

Samples = dict[tuple[str, str, str], float]
"""(name, table, outcome) -> value; buckets and times of creation aside."""


def samples(text: str) -> Samples:
    found = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            assert set(sample.labels) <= {"table", "outcome", "le"}, sample
            if not sample.name.endswith(("_bucket", "_created")):
                name = sample.name.removeprefix("db_dedup_")
                found[name, sample.labels.get("table", ""), sample.labels.get("outcome", "")] = sample.value
    return found


def scraped(metrics: WorkerMetrics) -> Samples:
    return samples(generate_latest(metrics.registry).decode())


def metrics_of(dedup: Deduplicator) -> WorkerMetrics:
    return WorkerMetrics(dedup.database.engine, dedup.database.tables, [dedup.name])


def drain(dedup: Deduplicator, metrics: WorkerMetrics) -> None:
    ChangeWorker([dedup.worker()], on_batch=metrics.observe).run(threading.Event(), drain=True)


def test_changes_batches_and_the_queue(dedup: Deduplicator, database: Database) -> None:
    metrics = metrics_of(dedup)
    drain(dedup, metrics)
    before = scraped(metrics)
    assert before["scans_total", "petitions", ""] == 1  # the table was attached after its scan
    assert before["changes_total", "petitions", "handled"] == before["batches_total", "petitions", ""] == 0
    assert before["last_scan_timestamp_seconds", "petitions", ""] > 0

    do(database, "UPDATE petitions SET title = '关于停水' WHERE id BETWEEN 10 AND 14")
    change = dedup.database.tables.change
    with dedup.database.engine.begin() as connection:
        values = {"table_id": 1, "row_key": "too long", "operation": "X", "queued_at": utc_now()}
        connection.execute(insert(change).values(**values))
    waiting = scraped(metrics)
    assert waiting["queue_length", "petitions", ""] == 6
    assert waiting["queue_age_seconds", "petitions", ""] > 0

    drain(dedup, metrics)
    after = scraped(metrics)
    assert after["changes_total", "petitions", "handled"] == 5
    assert after["changes_total", "petitions", "dead"] == 1
    assert after["batches_total", "petitions", ""] == after["batch_seconds_count", "petitions", ""] > 0
    assert after["batch_seconds_sum", "petitions", ""] > 0
    assert after["scans_total", "petitions", ""] == 1
    assert (after["queue_length", "petitions", ""], after["queue_age_seconds", "petitions", ""]) == (0, 0)
    assert after["dead_changes", "petitions", ""] == 1


def test_the_frames_of_the_last_scan(sqlite_database: Database) -> None:
    own = texts(250)
    write(sqlite_database.engine, in_form(own[:240]) + own[240:])
    dedup = watch(sqlite_database.engine, frame_drift="wait")
    metrics = metrics_of(dedup)
    assert not [name for name, *_ in scraped(metrics) if name.startswith("frame")]
    dedup.scan()
    found = scraped(metrics)
    assert found["framed_rows", "letters", ""] == 240
    assert ("frame_drift_ratio", "letters", "") not in found

    do(sqlite_database, "DELETE FROM letters WHERE id <= 150")
    write(sqlite_database.engine, in_form(texts(150, seed=2), OTHER_FORM), first=1001)
    dedup.scan()
    found = scraped(metrics)
    assert found["framed_rows", "letters", ""] == 90
    assert found["frame_drift_ratio", "letters", ""] == 0.6
    dedup.scan(rebuild=True)
    found = scraped(metrics)
    assert found["framed_rows", "letters", ""] == 240
    assert found["frame_drift_ratio", "letters", ""] == 0


def test_only_the_named_tables_are_told_of(dedup: Deduplicator) -> None:
    Deduplicator(dedup.database, "petitions").worker()
    database = dedup.database
    found = scraped(WorkerMetrics(database.engine, database.tables, ["petitions", "petitions", "others"]))
    assert {table for name, table, _ in found if name == "queue_length"} == {"petitions"}
    assert {table for name, table, _ in found if name == "changes_total"} == {"petitions", "others"}


def test_a_database_that_is_away(dedup: Deduplicator, database: Database) -> None:
    metrics = metrics_of(dedup)
    assert scraped(metrics)["database_up", "", ""] == 1
    do(database, *_drop_our_tables(database))
    found = scraped(metrics)
    assert found["database_up", "", ""] == 0
    assert found["changes_total", "petitions", "handled"] == 0
    assert not [name for name, *_ in found if name.startswith("queue")]


def _drop_our_tables(database: Database) -> list[str]:
    if database.name == "postgresql":
        return ["DROP SCHEMA dedup CASCADE"]
    return ["DROP VIEW dedup_queue_lag", "DROP TABLE dedup_change"]


def test_a_port_that_is_taken(dedup: Deduplicator) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match=f"port {port}"), metrics_of(dedup).served("127.0.0.1", port):
            pass


def test_it_is_served_until_the_end(dedup: Deduplicator) -> None:
    with metrics_of(dedup).served("127.0.0.1", 0) as port:
        with urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
            found = samples(answer.read().decode())
        assert found["queue_length", "petitions", ""] == 0
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "db_dedup.jobs.worker.metrics")
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    with pytest.raises(MissingExtraError, match=re.escape('pip install "db-dedup[metrics]"')):
        importlib.import_module("db_dedup.jobs.worker.metrics")


def test_the_worker_serves_them(dedup: Deduplicator, database: Database) -> None:
    assert dedup.name == "petitions"
    with background("worker", "petitions", "--metrics-port", "0", "--poll", "0.05") as worker:
        (url,) = re.findall(r"metrics on (http://127\.0\.0\.1:\d+/metrics)", worker.line())
        do(database, "UPDATE petitions SET title = '关于停水' WHERE id BETWEEN 10 AND 14")
        while True:
            with urlopen(url) as answer:  # noqa: S310 - our own
                found = samples(answer.read().decode())
            if found["changes_total", "petitions", "handled"] == 5:
                break
        assert worker.end() == 0
