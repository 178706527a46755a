"""The children of a metric by the values of its labels, each looked up in the library once.

The library's lookup by labels costs more than an observation. A metric with few values of labels
can keep all of its children.
"""

from __future__ import annotations

from typing import Generic, TypeVar

from prometheus_client import Counter, Gauge, Histogram

Metric = TypeVar("Metric", Counter, Gauge, Histogram)


class LabelChildren(Generic[Metric]):
    """The children of one metric. Values of labels need not be texts."""

    def __init__(self, metric: Metric) -> None:
        self._metric: Metric = metric
        self._known: dict[tuple[object, ...], Metric] = {}

    def of(self, *values: object) -> Metric:
        """Return the child with these values of the labels. The child exists from then on."""
        child = self._known.get(values)
        if child is None:
            child = self._known[values] = self._metric.labels(*values)
        return child
