"""Metrics of the service for Prometheus. Importing this needs the extra `metrics`."""

from collections.abc import Iterator, Sequence

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Metric, generate_latest
from prometheus_client.core import SummaryMetricFamily

from db_dedup.app import Database
from db_dedup.jobs.worker.metrics import QueueCollector
from db_dedup.web.request_counts import RequestCounts


class _RequestCollector:
    def __init__(self, requests: RequestCounts) -> None:
        self._requests = requests

    def collect(self) -> Iterator[Metric]:
        """Read the counts."""
        names = ["method", "route", "status"]
        seconds = SummaryMetricFamily(
            "db_dedup_http_request_seconds", "Requests and their seconds.", labels=names
        )
        for (method, route, status), (count, total) in self._requests.counts().items():
            seconds.add_metric([method, route, str(status)], count, total)
        yield seconds


def exposition(database: Database, names: Sequence[str], requests: RequestCounts) -> tuple[bytes, str]:
    """Return (the metrics as text, its media type)."""
    registry = CollectorRegistry()
    registry.register(QueueCollector(database.engine, database.tables, names))
    registry.register(_RequestCollector(requests))
    return generate_latest(registry), CONTENT_TYPE_LATEST
