"""The service's metrics, served in Prometheus' format at ``/metrics``.

Always true: with several workers, each worker reports the same counters: sums over all workers,
including those that have ended.
"""

from __future__ import annotations

from pathlib import Path

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

from innkeeper.domain.errors import Busy, Refusal, Unavailable

FOLDER_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
"""Names the folder of the workers' metrics. The library reads the variable when it is imported,
so the variable must be set before the process starts."""

BATCH = Histogram(
    "innkeeper_commit_steps",
    "Steps that were committed together.",
    buckets=(1, 2, 4, 8, 16, 32, 64, 128, 256),
)
COMMIT = Histogram(
    "innkeeper_commit_seconds",
    "Time of one group commit, from its first statement to its end.",
    buckets=(0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1.0, 5.0),
)
BOOTS = Counter("innkeeper_boots_total", "Boot requests, by outcome.", ("outcome",))

REFUSALS = Counter(
    "innkeeper_no_valid_host_total",
    "Boot requests without a valid host, by the filter that removed the last of the hosts.",
    ("filter",),
)

TURNS = Counter(
    "innkeeper_periodic_turns_total",
    "Turns at periodic tasks that this process took, by task.",
    ("task",),
)

TURN = Histogram(
    "innkeeper_turn_seconds",
    "Time that a process waited for its turn to write, behind other processes.",
    buckets=(0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0),
)
FAILURES = Counter(
    "innkeeper_commit_failures_total",
    "Commits that failed, after a conflict or because of the database.",
    ("why",),
)
WAITING = Gauge(
    "innkeeper_waiting_steps", "Steps that wait for the writer thread.", multiprocess_mode="livesum"
)
CONNECTIONS = Gauge(
    "innkeeper_connections",
    "Connections to the database: the maximum, and those in use.",
    ("pool", "what"),
    multiprocess_mode="livesum",
)
FOLLOWED = Gauge(
    "innkeeper_followed_timestamp_seconds",
    "When a process last brought its host table up to date; the oldest of all processes.",
    multiprocess_mode="livemin",
)
DIFFERENCES = Counter(
    "innkeeper_table_differences_total",
    "Differences found between a process's host table and the database.",
)
COMPARED = Counter(
    "innkeeper_table_rows_compared_total",
    "Rows of a process's host table that were compared with the database.",
)
REPLACED = Counter(
    "innkeeper_workers_replaced_total",
    "Workers started in place of one that had ended, or was killed because it hung.",
    ("why",),
)
BUSY, UNAVAILABLE, OVERTAKEN, FAILED = "busy", "unavailable", "overtaken", "failed"
for _why in (BUSY, UNAVAILABLE, OVERTAKEN, FAILED):
    # Created at 0, so that rates exist from the start.
    FAILURES.labels(_why)


def lost(error: Exception) -> None:
    """Count a failed commit."""
    if isinstance(error, Unavailable):
        why = BUSY if isinstance(error, Busy) else UNAVAILABLE
    else:
        why = OVERTAKEN if isinstance(error, Refusal) else FAILED
    FAILURES.labels(why).inc()


def forget(pid: int, folder: Path) -> None:
    """Remove the gauges of a worker that has ended, but keep its counters."""
    mark_process_dead(pid, str(folder))  # type: ignore[no-untyped-call]


def exposition(*, of_workers: bool = False) -> bytes:
    """Return the metrics in Prometheus' format; with ``of_workers``, those of all workers."""
    if not of_workers:
        return generate_latest()
    registry = CollectorRegistry()
    MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    return generate_latest(registry)
