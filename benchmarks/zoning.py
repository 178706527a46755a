"""Measures plans and boots over a tree of zones, and in a single zone with as many hosts.

Always true: all zones of a tree together have as many hosts as the single zone. When the answer to
a measured boot arrives, the boot is on the disk of the zone with the host, and the root has
recorded it. After the runs all servers are counted. A run that lost a server has no figures.

All zones share the cores of one machine, so the elapsed time of a wide tree mostly shows how many
cores there are. So two processor times are measured too: that of all zones together, and that of
the critical path. The critical path has, at each level of the tree, the zone that worked most.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks import judging, measured_tree
from benchmarks.figures import Figure, median
from benchmarks.measured_tree import ROOT, MeasuredZone, Shape

SETTLED_S = 0.1
"""The time in which zones may still work after their answer."""
WARM_UPS = 2
EMPTY = 100
DEAD_ZONES = 3
DEAD = "zone-1"
DEADLINE_S, POLL_S, FAILURES = 2.0, 1.0, 3
DEAD_SETTINGS = {
    "INNKEEPER_ZONE_SELECT_TIMEOUT_S": str(DEADLINE_S),
    "INNKEEPER_ZONE_POLL_INTERVAL_S": str(POLL_S),
    "INNKEEPER_ZONE_FAILURES_TO_OFFLINE": str(FAILURES),
}
INACTIVE_WITHIN_S = 60.0
ROOMY = {
    # On two cores, nine zones need longer to offer hosts for a thousand servers each.
    "INNKEEPER_ZONE_SELECT_TIMEOUT_S": "30",
    "INNKEEPER_ZONE_REQUEST_TIMEOUT_S": "60",
}


@dataclass(frozen=True, slots=True)
class Plan:
    """Says how much to measure. ``requests`` has the number of requests per number of servers."""

    zone_counts: tuple[int, ...]
    hosts: int
    requests: Mapping[int, int]
    dead_requests: int


def measure(directory: Path, plan: Plan) -> Iterator[Figure]:
    """Measure all trees, each after a single zone with as many hosts, and then a silent child."""
    shapes = [
        shape(zones, plan.hosts)
        for zones in plan.zone_counts
        for shape in (measured_tree.flat, measured_tree.tree)
    ]
    shapes.append(measured_tree.chain(plan.zone_counts[0], plan.hosts))
    for shape in shapes:
        yield from _measured(directory, shape, plan)
    yield from _dead(directory / "dead", plan)


def _measured(directory: Path, shape: Shape, plan: Plan) -> Iterator[Figure]:
    size = sum(shape.hosts.values()) // plan.hosts
    name = f"zones.{shape.name}.{size}"
    batches: list[tuple[str, int]] = []
    with measured_tree.running(directory / name, shape, ROOMY) as zones:
        root = zones[ROOT]
        if not shape.parents:
            yield from _figures(f"{name}.empty", root.empty, EMPTY, zones, shape)
        for count, requests in plan.requests.items():
            select = partial(root.select, count)
            yield from _figures(f"{name}.select.{count}", select, requests, zones, shape)
        for count, requests in plan.requests.items():
            create = partial(_create, root, count, batches)
            yield from _figures(f"{name}.create.{count}", create, requests, zones, shape)
        for batch_id, count in batches:
            found = len(root.servers_of(batch_id))
            if found != count:
                raise judging.Unsafe(f"{name}: {found} servers of a request for {count}")


def _create(root: MeasuredZone, count: int, batches: list[tuple[str, int]]) -> None:
    batches.append((root.create(count), count))


def _figures(
    name: str,
    act: Callable[[], object],
    requests: int,
    zones: Mapping[str, MeasuredZone],
    shape: Shape,
) -> Iterator[Figure]:
    """Send some requests one after the other, and yield the times per request."""
    for _ in range(WARM_UPS):
        act()
    took: list[float] = []
    before = _busy(zones)
    for _ in range(requests):
        begun = time.perf_counter()
        act()
        took.append(time.perf_counter() - begun)
    busy = {each: (busy_s - before[each]) / requests for each, busy_s in _busy(zones).items()}
    levels: dict[int, float] = {}
    for each, busy_s in busy.items():
        level = len(shape.above(each))
        levels[level] = max(levels.get(level, 0.0), busy_s)
    yield Figure(f"{name}.median", median(took) * 1e3, "ms")
    yield Figure(f"{name}.busy", sum(busy.values()) * 1e3, "ms")
    yield Figure(f"{name}.path", sum(levels.values()) * 1e3, "ms")
    yield Figure(f"{name}.root", busy[ROOT] * 1e3, "ms")


def _busy(zones: Mapping[str, MeasuredZone]) -> dict[str, float]:
    time.sleep(SETTLED_S)
    return {name: zone.service.busy_s() for name, zone in zones.items()}


def _dead(directory: Path, plan: Plan) -> Iterator[Figure]:
    """Measure plans while one of three children accepts connections and answers nothing."""
    shape = measured_tree.tree(DEAD_ZONES, plan.hosts)
    with measured_tree.running(directory, shape, DEAD_SETTINGS) as zones:
        root = zones[ROOT]
        for _ in range(WARM_UPS):
            root.select(1)
        usual = median([_timed(root) for _ in range(plan.dead_requests)])
        with _frozen(zones[DEAD]):
            first = _timed(root)
            next_ = [_timed(root) for _ in range(plan.dead_requests)]
            measured_tree.wait_inactive(root, DEAD, INACTIVE_WITHIN_S)
            # During this wait, the root has closed its connections to the other children.
            for _ in range(WARM_UPS):
                root.select(1)
            after = [_timed(root) for _ in range(plan.dead_requests)]
    yield Figure("zones.dead.deadline", DEADLINE_S * 1e3, "ms")
    yield Figure("zones.dead.usual", usual * 1e3, "ms")
    yield Figure("zones.dead.first", first * 1e3, "ms")
    yield Figure("zones.dead.next", max(next_) * 1e3, "ms")
    yield Figure("zones.dead.known", max(after) * 1e3, "ms")
    late = sum(each >= DEADLINE_S for each in [first, *next_, *after])
    yield Figure("zones.dead.late", late, "plans")


def _timed(root: MeasuredZone) -> float:
    begun = time.perf_counter()
    root.select(1)
    return time.perf_counter() - begun


@contextmanager
def _frozen(zone: MeasuredZone) -> Iterator[None]:
    process = zone.service.process
    process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        process.send_signal(signal.SIGCONT)
