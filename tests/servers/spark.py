"""A standalone cluster of Spark on this machine: a master and two workers with one core each."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from tests.servers.process import ServerUnavailableError, telling_lines

LOOPBACK = "127.0.0.1"
WORKERS = 2
START_SECONDS = 180.0
OPTIONS = {
    "spark.driver.host": LOOPBACK,
    "spark.driver.bindAddress": LOOPBACK,
    "spark.executor.memory": "700m",
    "spark.executor.cores": "1",
}
"""Of a session on the cluster."""
JARS = {"postgresql": "postgresql.jar", "mariadb": "mariadb-java-client.jar"}
DEBIAN = Path("/usr/share/java")


@dataclass
class Cluster:
    """A running cluster.

    Attributes:
        master: its URL.
        workers: the processes of the workers; each leads a group with all that it started.
    """

    master: str
    folder: Path
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def kill_worker(self) -> None:
        """Kill a worker, and the executor that it started."""
        _kill(self.workers.pop())

    def stop(self) -> None:
        """End all processes and remove their folder."""
        for process in [*self.workers, *self.processes]:
            _kill(process)
        shutil.rmtree(self.folder, ignore_errors=True)


def start_spark(worker_memory: str = "1g") -> Cluster:
    """Start a cluster.

    Args:
        worker_memory: the most that the heaps of a worker's executors take together.

    Raises:
        ServerUnavailableError: PySpark, Java or a JDBC driver is missing, or the cluster does not start.
    """
    if importlib.util.find_spec("pyspark") is None:
        raise ServerUnavailableError('no pyspark: pip install "db-dedup[spark]"')
    if shutil.which("java") is None:
        raise ServerUnavailableError("no java: apt-get install openjdk-17-jre-headless")
    for jar in JARS.values():
        if not (DEBIAN / jar).exists():
            raise ServerUnavailableError(
                f"no {DEBIAN / jar}: apt-get install libpostgresql-jdbc-java libmariadb-java"
            )
    port = free_port()
    cluster = Cluster(f"spark://{LOOPBACK}:{port}", Path(tempfile.mkdtemp(prefix="dedup-spark-")))
    try:
        _start(cluster, port, worker_memory)
    except BaseException:
        cluster.stop()
        raise
    return cluster


def free_port() -> int:
    """Return a port on which nobody listens now."""
    with closing(socket.create_server((LOOPBACK, 0))) as server:
        found: int = server.getsockname()[1]
        return found


def jar(database: str) -> str:
    """Return the jar of a database's JDBC driver."""
    return str(DEBIAN / JARS[database])


def _start(cluster: Cluster, port: int, memory: str) -> None:
    log = cluster.folder / "log"
    with log.open("wb") as output:
        master = _run("master.Master", ["--host", LOOPBACK, "--port", str(port)], cluster.folder, output)
        cluster.processes.append(master)
        _await(log, "I have been elected leader", 1)
        for number in range(WORKERS):
            folder = cluster.folder / f"worker-{number}"
            options = ["--host", LOOPBACK, "--cores", "1", "--memory", memory, "--work-dir", str(folder)]
            worker = _run("worker.Worker", [*options, cluster.master], cluster.folder, output)
            cluster.workers.append(worker)
        _await(log, "Registering worker", WORKERS)


def _run(name: str, options: list[str], folder: Path, output: IO[bytes]) -> subprocess.Popen[bytes]:
    home = Path(str(importlib.util.find_spec("pyspark").origin)).parent  # type: ignore[union-attr]
    return subprocess.Popen(
        [str(home / "bin/spark-class"), f"org.apache.spark.deploy.{name}", "--webui-port", "0", *options],
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        cwd=folder,
        env=os.environ
        | {
            "SPARK_HOME": str(home),
            "SPARK_LOCAL_IP": LOOPBACK,
            "PYSPARK_PYTHON": sys.executable,
            "LC_ALL": "C.UTF-8",
        },
        start_new_session=True,
    )


def _await(log: Path, said: str, times: int) -> None:
    deadline = time.monotonic() + START_SECONDS
    while log.read_text(errors="replace").count(said) < times:
        if time.monotonic() > deadline:
            lines = " / ".join(telling_lines(log.read_text(errors="replace")))
            raise ServerUnavailableError(f"Spark was not ready after {START_SECONDS:.0f} s: {lines}")
        time.sleep(0.05)


def _kill(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
