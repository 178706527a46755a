"""A cache of a metric's children, by the values of their labels.

The lookup of a child in the Prometheus library costs more than an observation. If a metric has few
label values, all of its children can be cached.
"""

from __future__ import annotations

from typing import Generic, TypeVar

from prometheus_client import Counter, Gauge, Histogram

Metric = TypeVar("Metric", Counter, Gauge, Histogram)


class LabelChildren(Generic[Metric]):
    """The children of one metric. Label values need not be strings."""

    def __init__(self, metric: Metric) -> None:
        self._metric: Metric = metric
        self._known: dict[tuple[object, ...], Metric] = {}

    def of(self, *values: object) -> Metric:
        """Return the child with these label values. Create it if needed."""
        child = self._known.get(values)
        if child is None:
            child = self._known[values] = self._metric.labels(*values)
        return child
