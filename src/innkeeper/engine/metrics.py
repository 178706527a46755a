"""The service's metrics, served in Prometheus' format at ``/metrics``.

Always true: if there are several workers (processes), each worker reports the same counters. A
counter is the sum over all workers, including those that have ended.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from http import HTTPStatus
from pathlib import Path

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

from innkeeper.domain.errors import Busy, Refusal, Unavailable
from innkeeper.engine.label_children import LabelChildren

FOLDER_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
"""The environment variable that names the folder of the workers' metrics. The Prometheus library
reads it when it is imported, so it must be set before the process starts."""

BATCH = Histogram(
    "innkeeper_commit_steps",
    "Commands in one group commit.",
    buckets=(1, 2, 4, 8, 16, 32, 64, 128, 256),
)
COMMIT = Histogram(
    "innkeeper_commit_seconds",
    "Time of one group commit, from its first statement to its end.",
    buckets=(0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1.0, 5.0),
)
BOOTS = Counter("innkeeper_boots_total", "Boot requests, by outcome.", ("outcome",))

AHEAD = Counter(
    "innkeeper_boots_planned_ahead_total",
    "Boots planned during the flush of the previous batch, by outcome: used or undone.",
    ("outcome",),
)

REFUSALS = Counter(
    "innkeeper_no_valid_host_total",
    "Boot requests without a valid host, by the filter that removed the last hosts.",
    ("filter",),
)

TURNS = Counter(
    "innkeeper_periodic_turns_total",
    "Periodic tasks that this process has run, by task.",
    ("task",),
)

TURN = Histogram(
    "innkeeper_turn_seconds",
    "Time that a process waited for other processes before it could write.",
    buckets=(0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0),
)
FAILURES = Counter(
    "innkeeper_commit_failures_total",
    "Commits that failed, after a conflict or because of the database.",
    ("why",),
)
WAITING = Gauge(
    "innkeeper_waiting_steps",
    "Commands that wait for the writer thread, by kind.",
    ("kind",),
    multiprocess_mode="livesum",
)
WAITED = Histogram(
    "innkeeper_wait_seconds",
    "Time for which commands waited for the writer thread; the longest of each kind in a batch.",
    ("kind",),
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 10.0),
)
DROPPED = Counter(
    "innkeeper_dropped_steps_total",
    "Commands that were not carried out, because their clients had left, by kind.",
    ("kind",),
)
CONNECTIONS = Gauge(
    "innkeeper_connections",
    "Connections to the database: the maximum number, and the number in use.",
    ("pool", "what"),
    multiprocess_mode="livesum",
)
FOLLOWED = Gauge(
    "innkeeper_followed_timestamp_seconds",
    "When a process last updated its host table; the oldest time of all processes.",
    multiprocess_mode="livemin",
)
LEADING = Gauge(
    "innkeeper_leading",
    "Whether a process is the leader. The other processes forward writes to the leader.",
    multiprocess_mode="livesum",
)
FORWARDING = Gauge(
    "innkeeper_forwarding",
    "Whether a process is connected to the leader, so that it can forward writes.",
    multiprocess_mode="livesum",
)
FORWARDED = Counter(
    "innkeeper_forwarded_total",
    "Write requests to a process that is not the leader, by outcome.",
    ("outcome",),
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
    "Workers started to replace a worker that had ended, or was killed because it hung.",
    ("why",),
)
LEASE_EVENT_FAILURES = Counter(
    "innkeeper_lease_event_failures_total",
    "Unexpected errors of lease events, by outcome: retried or given up.",
    ("outcome",),
)
LEASE_NOTIFICATIONS = Counter(
    "innkeeper_lease_notifications_total",
    "Notifications posted to the webhook of leases, by outcome.",
    ("outcome",),
)
ZONE_REQUESTS = Counter(
    "innkeeper_zone_requests_total",
    "Requests to child zones, by child and outcome.",
    ("zone", "outcome"),
)
ZONE_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
ZONE_SECONDS = Histogram(
    "innkeeper_zone_request_seconds",
    "Time of requests to child zones, by child, including the wait for a connection.",
    ("zone",),
    buckets=ZONE_BUCKETS,
)
ZONE_ACTIVE = Gauge(
    "innkeeper_zone_active",
    "Whether a child zone answered the last polls.",
    ("zone",),
    multiprocess_mode="mostrecent",
)
ZONE_SERVERS = Gauge(
    "innkeeper_zone_servers",
    "Servers that this zone knows in a child zone.",
    ("zone",),
    multiprocess_mode="mostrecent",
)
ZONE_FAILURES = Gauge(
    "innkeeper_zone_failures",
    "Failed polls of a child zone since its last answer.",
    ("zone",),
    multiprocess_mode="mostrecent",
)
_zones: set[str] = set()
POD_REQUESTS = Counter(
    "innkeeper_pod_requests_total", "Requests to pods, by pod and outcome.", ("pod", "outcome")
)
POD_SECONDS = Histogram(
    "innkeeper_pod_request_seconds",
    "Time of requests to pods, by pod, including the wait for a connection.",
    ("pod",),
    buckets=ZONE_BUCKETS,
)
POD_UP = Gauge(
    "innkeeper_pod_up",
    "Whether a pod answered the last polls.",
    ("pod",),
    multiprocess_mode="mostrecent",
)
POD_MEASUREMENT_AGE = Gauge(
    "innkeeper_pod_measurement_age_seconds",
    "Time since a pod was measured; -1 if it never was.",
    ("pod",),
    multiprocess_mode="mostrecent",
)
_pods: set[str] = set()
TOGETHER = ("allocations", "heartbeats", "results", "reports")
KINDS = ("boot", "entries", "write", "decide", "explain", *TOGETHER)
for _kind in KINDS:
    # Created with the value 0, so that rates exist from the start.
    WAITING.labels(_kind)
    DROPPED.labels(_kind)
    WAITED.labels(_kind)
_WAITED_OF, _BOOTS_OF = LabelChildren(WAITED), LabelChildren(BOOTS)
_ZONE_REQUESTS_OF, _ZONE_SECONDS_OF = LabelChildren(ZONE_REQUESTS), LabelChildren(ZONE_SECONDS)
_POD_REQUESTS_OF, _POD_SECONDS_OF = LabelChildren(POD_REQUESTS), LabelChildren(POD_SECONDS)
for _outcome in ("retried", "given_up"):
    LEASE_EVENT_FAILURES.labels(_outcome)
_USED, _UNDONE = AHEAD.labels("used"), AHEAD.labels("undone")
for _outcome in ("answered", "unanswered", "kept"):
    FORWARDED.labels(_outcome)
for _outcome in ("accepted", "failed", "dropped"):
    LEASE_NOTIFICATIONS.labels(_outcome)
BUSY, UNAVAILABLE, OVERTAKEN, FAILED = "busy", "unavailable", "overtaken", "failed"
for _why in (BUSY, UNAVAILABLE, OVERTAKEN, FAILED):
    # Created with the value 0, so that rates exist from the start.
    FAILURES.labels(_why)


SETTLES_EVERY_S = 1.0
"""The writer thread passes its observations to the library at most once in this time."""


class Later:
    """Observations of the writer thread that wait to be passed to the Prometheus library.

    :meth:`settle` passes on all of them at once. The library needs several microseconds for an
    observation. Just after a flush, it needs several times as long, because the processor's caches
    are cold.
    """

    def __init__(self) -> None:
        self._left: deque[tuple[Callable[[float], None], float]] = deque()
        self._settled_s = time.perf_counter()

    def __bool__(self) -> bool:
        return bool(self._left)

    def add(self, count: Callable[[float], None], amount: float) -> None:
        """Call ``count`` with the amount when the observations are settled."""
        self._left.append((count, amount))

    def settle(self) -> None:
        """Pass all waiting observations to the library. Any thread may call this."""
        self._settled_s = time.perf_counter()
        while self._left:
            try:
                count, amount = self._left.popleft()
            except IndexError:
                # Another thread took the last one.
                return
            count(amount)

    def settle_if_due(self) -> None:
        """Settle the observations, at most once in ``SETTLES_EVERY_S``."""
        if time.perf_counter() - self._settled_s >= SETTLES_EVERY_S:
            self.settle()


LATER = Later()


def booted(outcomes: Iterable[str]) -> None:
    """Count boot requests by their outcomes."""
    for each in outcomes:
        LATER.add(_BOOTS_OF.of(each).inc, 1)


def waited(kind: str, seconds: float) -> None:
    """Record the longest wait of the commands of a kind in a batch."""
    LATER.add(_WAITED_OF.of(kind).observe, seconds)


def planned_ahead(*, used: int, undone: int) -> None:
    """Count plans that were made ahead, by whether they were used or undone."""
    _USED.inc(used)
    _UNDONE.inc(undone)


def waiting(commands: Mapping[str, int]) -> None:
    """Set the gauge of waiting commands, by kind."""
    for kind, count in commands.items():
        WAITING.labels(kind).set(count)


def asked_zone(zone: str, status: int | None, seconds: float) -> None:
    """Count a request to a child zone. ``status`` is ``None`` if there was no usable answer."""
    _ZONE_REQUESTS_OF.of(zone, _outcome_of(status)).inc()
    _ZONE_SECONDS_OF.of(zone).observe(seconds)


def asked_pod(pod: str, status: int | None, seconds: float) -> None:
    """Count a request to a pod. ``status`` is ``None`` if there was no usable answer."""
    _POD_REQUESTS_OF.of(pod, _outcome_of(status)).inc()
    _POD_SECONDS_OF.of(pod).observe(seconds)


def _outcome_of(status: int | None) -> str:
    if status is None:
        return "silent"
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return "failed"
    return "refused" if status >= HTTPStatus.BAD_REQUEST else "answered"


def pods(known: Mapping[str, tuple[bool, float | None]]) -> None:
    """Set the gauges of pods. ``known`` maps the name of each existing pod to its values.

    The values are whether the pod is up, and the age of its measurement in seconds. A removed pod
    is shown as down, with the age -1 ("no measurement").
    """
    _pods.update(known)
    for name in _pods:
        is_up, age_s = known.get(name, (False, None))
        POD_UP.labels(name).set(is_up)
        POD_MEASUREMENT_AGE.labels(name).set(-1 if age_s is None else age_s)


def zones(known: Mapping[str, tuple[bool, int, int]]) -> None:
    """Set the gauges of child zones.

    ``known`` maps the name of each child to its values: whether the child is active, its number of
    servers and its number of failed polls. A removed child zone is shown with zeros.
    """
    _zones.update(known)
    for name in _zones:
        is_active, servers, failures = known.get(name, (False, 0, 0))
        ZONE_ACTIVE.labels(name).set(is_active)
        ZONE_SERVERS.labels(name).set(servers)
        ZONE_FAILURES.labels(name).set(failures)


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
    """Return this process's metrics, or all workers' metrics, in Prometheus' format."""
    LATER.settle()
    if not of_workers:
        return generate_latest()
    registry = CollectorRegistry()
    MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    return generate_latest(registry)
