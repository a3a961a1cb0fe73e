"""A session of Spark for one scan: what it needs is checked before it starts."""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

import db_dedup
from db_dedup.config import EngineSettings
from db_dedup.engines.spark.failures import is_of_spark, translate_spark_errors
from db_dedup.errors import ClusterUnavailableError, ConfigError

_OLDEST_JAVA: Final = 17
_CONNECT_SECONDS: Final = 5.0
_MASTER: Final = re.compile(r"spark://(?P<hosts>[^/]+)")
_OTHER_MASTERS: Final = re.compile(r"local(\[[\d*, ]+\])?$|local-cluster\[|yarn$|k8s://")
_ADDRESS: Final = re.compile(r"(?P<host>.+):(?P<port>\d+)")
_VERSION: Final = re.compile(r'version "(?:1\.)?(\d+)')
_SHUFFLE_PARTS: Final = "spark.sql.shuffle.partitions"
_FEWEST_PARTS: Final = 2
_PARTS_A_CORE: Final = 2
_ROWS_A_PART: Final = 50_000
"""A task has the keys of so many rows in memory: 50 keys of 30 bytes each, and as much to sort them."""

VERSIONS: Final = "python string, db_dedup string, spark string"

_OPTIONS: Final = {
    "spark.app.name": "db-dedup",
    "spark.log.level": "ERROR",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "2000",
    # Without this the first job starts, and the cores are counted, before all executors have registered.
    "spark.scheduler.minRegisteredResourcesRatio": "0.8",
}
"""The default options of a session; those of the settings replace them."""


class Session:
    """An open session.

    Attributes:
        spark: the session of PySpark.
        partitions: into how many parts tables and shuffles are divided.
    """

    def __init__(self, spark: Any) -> None:
        self.spark = spark
        self.partitions = _FEWEST_PARTS

    def divide(self, row_count: int, partitions: int | None) -> None:
        """Decide into how many parts a table is divided; call it when the executors have started.

        Args:
            row_count: of the table.
            partitions: what the settings say; None for two parts a core, more for a large table.
        """
        cores = int(self.spark.sparkContext.defaultParallelism)
        wanted = max(_FEWEST_PARTS, _PARTS_A_CORE * cores, -(-row_count // _ROWS_A_PART))
        self.partitions = partitions or wanted
        self.spark.conf.set(_SHUFFLE_PARTS, str(self.partitions))

    def has_class(self, name: str) -> bool:
        """Return whether the driver of Spark can load a class of Java."""
        jvm = self.spark.sparkContext._jvm
        try:
            loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
            jvm.java.lang.Class.forName(name, True, loader)
        except Exception as error:
            if "ClassNotFoundException" in str(error):
                return False
            raise
        return True

    def check_versions(self) -> None:
        """Check that the executors run the same releases as the driver.

        Raises:
            ConfigError: they do not.
        """
        own = versions()
        parts = max(_FEWEST_PARTS, int(self.spark.sparkContext.defaultParallelism))
        frame = self.spark.range(0, parts, 1, parts)
        found = frame.mapInArrow(versions_of, VERSIONS).collect()
        for row in found:
            others = row.asDict()
            for name, version in own.items():
                if others[name] != version:
                    raise ConfigError(
                        "the executors of Spark have {name} {theirs}, and this machine has {ours}: "
                        "install the same release on all, and set PYSPARK_PYTHON to the Python that has it",
                        name=name,
                        theirs=others[name],
                        ours=version,
                    )


def versions() -> dict[str, str]:
    """Return the releases that must be the same on all machines."""
    return {
        "python": ".".join(map(str, sys.version_info[:2])),
        "db_dedup": db_dedup.__version__,
        "spark": str(import_module("pyspark").__version__),
    }


def versions_of(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the releases of the executor that runs this."""
    for _ in batches:
        yield pa.RecordBatch.from_pylist([versions()])


def check_java() -> None:
    """Check that Java is there, and new enough.

    Raises:
        ConfigError: it is not.
    """
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if java is None or not Path(java).exists():
        raise ConfigError(
            "Spark needs Java {oldest} or newer, and there is none: install it (on Debian "
            "openjdk-17-jre-headless), or set JAVA_HOME",
            oldest=_OLDEST_JAVA,
        )
    told = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)  # noqa: S603
    version = _VERSION.search(told.stderr)
    if version is not None and int(version[1]) < _OLDEST_JAVA:
        raise ConfigError(
            "Spark needs Java {oldest} or newer, and {java} is Java {version}: set JAVA_HOME to a newer one",
            oldest=_OLDEST_JAVA,
            java=java,
            version=version[1],
        )


def check_jars(jars: Sequence[str]) -> None:
    """Check that jars that are files of this machine are there.

    Raises:
        ConfigError: one is not.
    """
    for jar in jars:
        if "://" not in jar and not Path(jar).is_file():
            raise ConfigError("there is no jar {jar}", jar=jar)


def is_active() -> bool:
    """Return whether this process has a session of Spark, as under `spark-submit`."""
    with quiet():
        return _session_of_process(import_module("pyspark.sql")) is not None


def _session_of_process(sql: Any) -> Any:
    """Return the session of this process, whichever thread has made it; None if there is none."""
    # `getActiveSession` knows only that of the thread that asks.
    return sql.SparkSession.getActiveSession() or getattr(sql.SparkSession, "_instantiatedSession", None)


def check_master(master: str) -> None:
    """Check that the master of a cluster answers; Spark itself tries for a minute.

    Raises:
        ClusterUnavailableError: it does not.
        ConfigError: its URL cannot be read.
    """
    found = _MASTER.fullmatch(master)
    if found is None and _OTHER_MASTERS.match(master):
        return  # Spark finds these by itself
    if found is None:
        raise ConfigError(
            "{master!r} is no master of Spark: write spark://host:7077, local[*], yarn or k8s://...",
            master=master,
        )
    faults = []
    for address in found["hosts"].split(","):
        parts = _ADDRESS.fullmatch(address)
        if parts is None:
            raise ConfigError("the master {master} has no port: write spark://host:7077", master=master)
        try:
            socket.create_connection((parts["host"], int(parts["port"])), _CONNECT_SECONDS).close()
        except (OSError, OverflowError) as error:
            faults.append(getattr(error, "strerror", None) or str(error))
        else:
            return
    raise ClusterUnavailableError(
        "the master of Spark does not answer at {master} ({reason}): is it running, and is the URL the one "
        "that its log names?",
        master=master,
        reason=faults[0],
    )


@contextmanager
def open_session(settings: EngineSettings) -> Iterator[Session]:
    """Open a session, or take the one that this process has, as `spark-submit` makes it; close only our own.

    Scans in several threads share one, which the last of them closes.

    Raises:
        DedupError: the cluster refuses.
    """
    with quiet(), translate_spark_errors():
        spark, parts = _OWN.enter(import_module("pyspark.sql"), settings)
        try:
            session = Session(spark)
            session.check_versions()
            yield session
        finally:
            _OWN.leave(spark, parts)


class _OwnSession:
    """The session that we have started in this process, and how many scans use it."""

    def __init__(self) -> None:
        self._lock, self._users = threading.Lock(), 0
        self._own: Any = None
        self._handlers: tuple[Any, Any] = (None, None)  # of SIGINT: the program's, and that of PySpark

    def enter(self, sql: Any, settings: EngineSettings) -> tuple[Any, str | None]:
        """Return (the session of this process, or one that is started; its number of parts)."""
        with self._lock:
            spark = _session_of_process(sql)
            if spark is None:
                former = signal.getsignal(signal.SIGINT)
                spark = self._own = _started(sql, settings)
                self._handlers = former, signal.getsignal(signal.SIGINT)
                self._users = 0
            parts = spark.conf.get(_SHUFFLE_PARTS, None)
            self._users += spark is self._own
            return spark, parts

    def leave(self, spark: Any, shuffle_parts: str | None) -> None:
        """Stop our own session after its last scan; give another one back its number of parts."""
        with self._lock:
            if spark is not self._own:
                if shuffle_parts is not None:
                    spark.conf.set(_SHUFFLE_PARTS, shuffle_parts)
                return
            self._users -= 1
            if self._users == 0:
                self._own = None
                try:
                    spark.stop()
                finally:
                    _put_back(*self._handlers)


def _put_back(former: Any, of_spark: Any) -> None:
    """Give the program its handler of SIGINT back, which PySpark replaces for good.

    Only the main thread can. A handler that the program has set meanwhile stays.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if is_main and former is not None and signal.getsignal(signal.SIGINT) is of_spark:
        signal.signal(signal.SIGINT, former)


_OWN: Final = _OwnSession()


def _started(sql: Any, settings: EngineSettings) -> Any:
    """Return a new session of Spark.

    Raises:
        ClusterUnavailableError: the master does not take the program. A master of another release answers
            nothing that this release understands, and Spark gives up after a minute or two.
    """
    try:
        return _builder(sql, settings).getOrCreate()
    except Exception as error:
        if not is_of_spark(error) or _MASTER.fullmatch(settings.master or "") is None:
            raise
        raise ClusterUnavailableError(
            "the master of Spark at {master} answers, but does not take this program: is it a master, and of "
            "the release of PySpark here, {version}? (its log names the fault)",
            master=settings.master,
            version=versions()["spark"],
        ) from error


def _builder(sql: Any, settings: EngineSettings) -> Any:
    builder = sql.SparkSession.builder.master(settings.master)
    # Without it PySpark has each machine run whatever is its `python3`.
    os.environ.setdefault("PYSPARK_PYTHON", settings.options.get("spark.pyspark.python", sys.executable))
    options = {**_OPTIONS, **settings.options}
    if settings.jars:
        options["spark.jars"] = ",".join(settings.jars)
    for name, value in options.items():
        builder = builder.config(name, value)
    return builder


@contextmanager
def quiet() -> Iterator[None]:
    """Ignore what PySpark says of releases of pandas, which no code here uses."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module=r"pyspark\..*")
        warnings.filterwarnings("ignore", message=r".*pandas.*", category=FutureWarning)
        yield
