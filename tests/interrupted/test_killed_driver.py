"""A scan on Spark whose driver is killed: the last answer stays, and the table is free after a lease."""

from __future__ import annotations

import json
import signal
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import delete, update

from db_dedup.cli.demo import fill
from db_dedup.cli.demo import petitions as petitions_table
from db_dedup.errors import ScanRunningError
from db_dedup.sample import Sample
from db_dedup.store.scans import DIED
from tests.cli.conftest import write_settings
from tests.interrupted.conftest import by_settings, dump, fresh_answer, stopped_at
from tests.scan.conftest import answer
from tests.servers import Database
from tests.servers.spark import OPTIONS, Cluster, jar


def scan_with_spark(database: Database, cluster: Cluster) -> None:
    """Have every scan by the settings file run on the cluster."""
    write_settings(database)
    jars = [jar(database.name)]
    lines = ["[engine]", 'name = "spark"', f"master = {json.dumps(cluster.master)}", f"jars = {jars}"]
    lines += ["[engine.options]", *(f"{json.dumps(name)} = {json.dumps(OPTIONS[name])}" for name in OPTIONS)]
    with Path("dedup.toml").open("a", encoding="utf-8") as settings:
        settings.write("\n".join(lines))


@pytest.mark.parametrize(
    ("reached", "point"),
    [
        ("postgresql", "Spark has read"),
        ("postgresql", "Spark confirms"),
        ("postgresql", "switching"),
        ("mariadb", "switching"),
    ],
    indirect=["reached"],
)
def test_a_killed_driver_leaves_the_last_answer_and_a_lease(
    reached: Database, cluster: Cluster, sample: Sample, point: str, let_leases_end: Callable[[], None]
) -> None:
    with reached.engine.begin() as connection:
        fill(connection, sample)
    scan_with_spark(reached, cluster)
    dedup = by_settings(reached)
    dedup.upgrade()
    dedup.scan()
    shown, stored = answer(dedup), dump(dedup, "scan")
    ids = sorted(petition.id for petition in sample.petitions)
    with reached.engine.begin() as connection:
        connection.execute(delete(petitions_table).where(petitions_table.c.id.in_(ids[::7])))
        others = petitions_table.c.id.in_(ids[1::7])
        connection.execute(update(petitions_table).where(others).values(content="换成了别的内容"))
    with stopped_at(point) as scan:
        scan.send(signal.SIGKILL)
        # Its standard error ends when Java and the last process that holds it do.
        assert scan.end()[0] == -signal.SIGKILL
        with pytest.raises(ScanRunningError, match=f"{socket.gethostname()}:{scan.process.pid}:"):
            dedup.scan()
    assert answer(dedup) == shown
    assert dump(dedup, "scan") == stored
    let_leases_end()
    (entry,) = dedup.database.status()
    assert (entry.last_scan_state, entry.last_scan_error) == ("failed", DIED)
    dedup.scan()
    found = answer(dedup)
    assert found == fresh_answer(dedup)
    assert found != shown
    assert dedup.verify().is_right
