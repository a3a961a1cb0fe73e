"""What a worker does and how far it lags, for Prometheus. Labels have few values: table and outcome.

Importing this module raises MissingExtraError where prometheus-client is not installed.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC
from typing import Final

from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError

from db_dedup.errors import ConfigError, DedupError, MissingExtraError
from db_dedup.flow.threads import starting_threads
from db_dedup.jobs.worker.worker_table import Batch
from db_dedup.records import FrameReport
from db_dedup.schema.tables import Tables
from db_dedup.store.lag import Lag, read_lag
from db_dedup.store.scans import last_frames

try:
    from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Metric, start_http_server
    from prometheus_client.core import GaugeMetricFamily
except ModuleNotFoundError as _error:
    raise MissingExtraError("prometheus-client", "metrics") from _error

logger = logging.getLogger(__name__)

HANDLED, DEAD = "handled", "dead"

_BATCH_SECONDS: Final = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


class WorkerMetrics:
    """Counts the batches that a worker reports, and asks the database how long the queues are.

    The queues are read when somebody asks for the metrics, on a connection of its own. While the database
    cannot be reached, `db_dedup_database_up` is 0 and the gauges are left out.
    """

    def __init__(self, engine: Engine, tables: Tables, names: Sequence[str]) -> None:
        """Begin at zero for the watched tables of these names."""
        self.registry = CollectorRegistry()
        self._changes = Counter(
            "db_dedup_changes",
            "Changes taken out of the queue.",
            ["table", "outcome"],
            registry=self.registry,
        )
        self._batches = Counter(
            "db_dedup_batches",
            "Transactions in which changes were handled.",
            ["table"],
            registry=self.registry,
        )
        self._scans = Counter(
            "db_dedup_scans", "Full scans that this worker made.", ["table"], registry=self.registry
        )
        self._seconds = Histogram(
            "db_dedup_batch_seconds",
            "How long a batch took.",
            ["table"],
            buckets=_BATCH_SECONDS,
            registry=self.registry,
        )
        self._faulty = Gauge(
            "db_dedup_table_faulty",
            "The worker cannot work on the table and tries again: 1, or 0.",
            ["table"],
            registry=self.registry,
        )
        for name in names:
            self._faulty.labels(name).set(0)
            for outcome in (HANDLED, DEAD):
                self._changes.labels(name, outcome)
            for metric in (self._batches, self._scans, self._seconds):
                metric.labels(name)
        self.registry.register(QueueCollector(engine, tables, names))

    def observe(self, batch: Batch) -> None:
        """Count a batch, or a scan."""
        self._changes.labels(batch.table, HANDLED).inc(max(0, batch.changes - batch.dead))
        self._changes.labels(batch.table, DEAD).inc(batch.dead)
        if batch.is_scan:
            self._scans.labels(batch.table).inc()
            return
        self._batches.labels(batch.table).inc()
        self._seconds.labels(batch.table).observe(batch.seconds)

    def observe_fault(self, name: str, fault: DedupError | None) -> None:
        """Note that the changes of a table can no longer be handled; None: they can again."""
        self._faulty.labels(name).set(fault is not None)

    @contextmanager
    def served(self, host: str, port: int) -> Iterator[int]:
        """Serve the metrics over HTTP until the block ends; yield the port, a free one for 0.

        Raises:
            ConfigError: the port cannot be opened on this host.
        """
        try:
            with starting_threads():
                server, thread = start_http_server(port, host, self.registry)
        except OSError as error:
            raise ConfigError(
                "no metrics on {host}, port {port}: {reason}",
                host=host,
                port=port,
                reason=error.strerror or error,
            ) from error
        try:
            yield int(server.server_port)
        finally:
            server.shutdown()
            server.server_close()
            thread.join()


class QueueCollector:
    """The gauges, read when somebody asks for them."""

    def __init__(self, engine: Engine, tables: Tables, names: Sequence[str]) -> None:
        self._engine, self._tables, self._names = engine, tables, tuple(dict.fromkeys(names))

    def collect(self) -> Iterator[Metric]:
        """Read the gauges of all tables with two queries."""
        is_up = GaugeMetricFamily("db_dedup_database_up", "The database answers: 1, or 0.")
        try:
            with self._engine.connect() as connection:
                lags = read_lag(connection, self._tables)
                frames = last_frames(connection, self._tables)
        except (SQLAlchemyError, DedupError) as error:
            logger.info("no gauges: %s", type(error).__name__)
            is_up.add_metric([], 0)
            yield is_up
            return
        is_up.add_metric([], 1)
        yield is_up
        own = [name for name in self._names if name in lags]
        yield from _queue_gauges([lags[name] for name in own])
        yield from _frame_gauges({name: frames[name] for name in own if name in frames})


def _queue_gauges(lags: Sequence[Lag]) -> Iterator[Metric]:
    names = [lag.table_name for lag in lags]
    for name, help_text, values in (
        ("queue_length", "Changes that wait.", [lag.waiting for lag in lags]),
        ("queue_age_seconds", "How long the oldest has waited.", [lag.age_seconds or 0 for lag in lags]),
        ("dead_changes", "Changes that were given up.", [lag.dead for lag in lags]),
        ("last_scan_timestamp_seconds", "When the last full scan ended.", [_ended(lag) for lag in lags]),
    ):
        yield _gauge(name, help_text, zip(names, values, strict=True))


def _frame_gauges(frames: Mapping[str, FrameReport]) -> Iterator[Metric]:
    yield _gauge(
        "framed_rows",
        "Rows whose frame the last full scan left out.",
        ((name, report.rows) for name, report in frames.items()),
    )
    yield _gauge(
        "frame_drift_ratio",
        "Share of sampled rows whose texts new frames would change, by the last full scan.",
        ((name, _drift_left(report)) for name, report in frames.items()),
    )


def _gauge(name: str, help_text: str, values: Iterable[tuple[str, float | None]]) -> Metric:
    """Return a gauge of tables, without those whose value is None."""
    gauge = GaugeMetricFamily(f"db_dedup_{name}", help_text, labels=["table"])
    for table, value in values:
        if value is not None:
            gauge.add_metric([table], value)
    return gauge


def _drift_left(report: FrameReport) -> float | None:
    """Return the drift of the list in use: none is left where a scan has replaced the list."""
    return 0.0 if report.has_drifted and not report.waits else report.drift


def _ended(lag: Lag) -> float | None:
    """Return seconds since 1970; None before the first scan."""
    return lag.last_scan_at.replace(tzinfo=UTC).timestamp() if lag.last_scan_at else None
