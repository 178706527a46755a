"""Metrics of requests. The engine's metrics are in :mod:`innkeeper.engine.metrics`."""

from __future__ import annotations

from prometheus_client import Histogram

from innkeeper.engine.label_children import LabelChildren

REQUESTS = Histogram(
    "innkeeper_request_seconds",
    "Time from a request's arrival to its answer.",
    ("api", "path", "method", "status"),
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0),
)


def observe(api: str, path: str, method: str, status: int, took_s: float) -> None:
    """Record one answered request."""
    _REQUESTS_OF.of(api, path, method, status).observe(took_s)


_REQUESTS_OF = LabelChildren(REQUESTS)
