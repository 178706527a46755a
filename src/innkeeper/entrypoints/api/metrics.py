"""Metrics of requests. The engine's metrics are in :mod:`innkeeper.engine.metrics`."""

from __future__ import annotations

from prometheus_client import Histogram

REQUESTS = Histogram(
    "innkeeper_request_seconds",
    "Time from a request's arrival to its answer.",
    ("api", "path", "method", "status"),
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0),
)


def observe(api: str, path: str, method: str, status: int, took_s: float) -> None:
    """Record one answered request."""
    key = (api, path, method, status)
    child = _CHILDREN.get(key)
    if child is None:
        child = _CHILDREN[key] = REQUESTS.labels(api, path, method, str(status))
    child.observe(took_s)


# Cached, because the library's lookup by labels costs more than the observation.
_CHILDREN: dict[tuple[str, str, str, int], Histogram] = {}
