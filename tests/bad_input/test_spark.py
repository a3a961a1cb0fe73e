"""What the Spark engine needs and does not find is told in one clear line, before or after Spark starts."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import venv
from contextlib import closing, suppress
from importlib.metadata import version
from pathlib import Path
from threading import Thread

import pytest

from db_dedup import Deduplicator, extras
from db_dedup.app.engines import find_engine
from db_dedup.config import EngineSettings
from db_dedup.dialects import dialect_for
from db_dedup.errors import ClusterUnavailableError, ConfigError, DedupError, MissingExtraError
from tests.bad_input.conftest import OTHER
from tests.dialects.tables import run as make
from tests.servers import Database
from tests.servers.spark import LOOPBACK, free_port

OPEN = """
import json, sys
from db_dedup.config import EngineSettings
from db_dedup.dialects.jdbc import JdbcAccess
from db_dedup.engines.spark import session
from db_dedup.engines.spark.reading import find_driver
from db_dedup.errors import DedupError
fault, *master = sys.argv[1:]
if fault == "release":
    own = session.versions()
    session.versions = lambda: {**own, "db_dedup": "9.9"}
try:
    with session.open_session(EngineSettings(name="spark", master=(*master, "local[1]")[0])) as opened:
        url = "jdbc:postgresql://host/office"
        find_driver(opened, JdbcAccess(url, ("org.postgresql.Driver",), "a package", "SELECT 1", None, None))
except DedupError as error:
    print(json.dumps([type(error).__name__, str(error)]))
"""


def refusal(**settings: object) -> DedupError:
    with pytest.raises(DedupError) as caught:
        find_engine(EngineSettings(name="spark", **settings))  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)
    return caught.value


def test_without_pyspark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extras, "find_spec", lambda name: None if name == "pyspark" else True)
    error = refusal(master="local[1]")
    assert isinstance(error, MissingExtraError)
    assert 'pip install "db-dedup[spark]"' in str(error)


@pytest.mark.usefixtures("pyspark")
def test_settings_that_cannot_be_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "needs a master: --master spark://host:7077" in str(refusal())
    assert "has no port: write spark://host:7077" in str(refusal(master="spark://host"))
    assert "'standalone' is no master of Spark" in str(refusal(master="standalone"))
    jar = str(tmp_path / "no.jar")
    assert f"there is no jar {jar}" in str(refusal(master="local[1]", jars=(jar,)))
    nobody = refusal(master=f"spark://{LOOPBACK}:{free_port()}")
    assert isinstance(nobody, ClusterUnavailableError)
    assert "does not answer" in str(nobody)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert "needs Java 17 or newer, and there is none" in str(refusal(master="local[1]"))
    old = tmp_path / "bin" / "java"
    old.parent.mkdir()
    old.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\" 2019-01-15' >&2\n")
    old.chmod(0o755)
    assert "is Java 11: set JAVA_HOME" in str(refusal(master="local[1]"))


def test_settings_of_another_engine() -> None:
    with pytest.raises(ConfigError, match="master: the engine 'embedded' has no such settings"):
        find_engine(EngineSettings(master="local[1]"))


@pytest.mark.usefixtures("pyspark")
def test_sqlite_is_refused_and_nothing_lost(sqlite_database: Database) -> None:
    make(
        sqlite_database,
        "CREATE TABLE petitions (id INTEGER PRIMARY KEY, body TEXT)",
        f"INSERT INTO petitions VALUES (1, '{OTHER}'), (2, '{OTHER}')",
    )
    dedup = Deduplicator(sqlite_database.engine, "petitions", {"body": 1})
    dedup.upgrade()
    dedup.scan()
    with pytest.raises(ConfigError, match="no cluster can read: scan it with the embedded engine"):
        dedup.scan(engine=EngineSettings(name="spark", master="local[1]"))
    assert dedup.verify().is_right


@pytest.mark.usefixtures("pyspark")
@pytest.mark.parametrize(
    ("fault", "kind", "words"),
    [
        ("jar", "ConfigError", "no JDBC driver for this database (org.postgresql.Driver)"),
        ("release", "ConfigError", "the executors of Spark have db_dedup"),
        ("python", "ConfigError", "the Python of Spark's executors has no"),
    ],
)
def test_what_only_spark_can_tell(fault: str, kind: str, words: str, tmp_path: Path) -> None:
    environment = os.environ | {"SPARK_LOCAL_IP": LOOPBACK}
    if fault == "python":
        venv.create(tmp_path / "bare", with_pip=False)
        environment["PYSPARK_PYTHON"] = str(tmp_path / "bare" / "bin" / "python")
    done = subprocess.run(
        [sys.executable, "-c", OPEN, fault], capture_output=True, text=True, check=False, env=environment
    )
    assert done.stdout, done.stderr[-2000:]
    name, message = json.loads(done.stdout.splitlines()[-1])
    assert (name, words in message) == (kind, True), message


def refuse_everyone(server: socket.socket) -> None:
    """Close each connection, until the server is closed."""
    with suppress(OSError):
        while True:
            server.accept()[0].close()


@pytest.mark.usefixtures("pyspark")
def test_a_master_that_does_not_take_the_program() -> None:
    """As one of another release, it takes the connection and answers nothing that Spark understands."""
    with closing(socket.create_server((LOOPBACK, 0))) as other:
        Thread(target=refuse_everyone, args=[other], daemon=True).start()
        master = f"spark://{LOOPBACK}:{other.getsockname()[1]}"
        done = subprocess.run(
            [sys.executable, "-c", OPEN, "master", master], capture_output=True, text=True, check=False,
            env=os.environ | {"SPARK_LOCAL_IP": LOOPBACK},
        )  # fmt: skip
    assert done.stdout, done.stderr[-2000:]
    name, message = json.loads(done.stdout.splitlines()[-1])
    assert name == "ClusterUnavailableError"
    assert f"{master} answers, but does not take this program" in message
    assert version("pyspark") in message


def test_urls_that_executors_cannot_use(postgresql_database: Database) -> None:
    engine = postgresql_database.engine
    with pytest.raises(ConfigError, match="reach a database by its host name, and the URL has none"):
        dialect_for(engine).jdbc(engine)
