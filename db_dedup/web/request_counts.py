"""The numbers of requests and their total times, for the metrics."""

from collections.abc import Mapping

_Labels = tuple[str, str, int]
"""Method, route and status of a request: the labels of its metric."""


class RequestCounts:
    """The number of requests and their seconds, by method, route and status."""

    def __init__(self) -> None:
        self._counts: dict[_Labels, tuple[int, float]] = {}

    def observe(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count one request."""
        count, total = self._counts.get((method, route, status), (0, 0.0))
        self._counts[method, route, status] = count + 1, total + seconds

    def counts(self) -> Mapping[_Labels, tuple[int, float]]:
        """Return (method, route, status) -> (number of requests, their seconds)."""
        return dict(self._counts)
