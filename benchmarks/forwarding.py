"""Measures requests through a door over pods, compared with the same requests at the pods.

Always true: the same kind of request is sent to the door and to a pod in turns. A server that is
created through the door is recorded there, and is on the disk of its pod, before the answer
arrives. After the runs the servers at the door are counted. A run that lost a server has no
figures.

All pods share the cores of one machine, so the elapsed time of a list over several pods mostly
shows how many cores there are. So the *critical path* is measured too: the processor time of the
door plus that of the pod that worked most.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks import judging, measured_door
from benchmarks.clients import TOKEN
from benchmarks.figures import Figure, median
from benchmarks.measured_door import AS_THE_DOOR, COMPUTE, DIRECT, MeasuredCloud, MeasuredDoor

WARM_UPS = 10
LIMIT = 1_000


@dataclass(frozen=True, slots=True)
class Plan:
    """Says how much work to measure. The project has ``servers`` servers before the measurement."""

    pod_counts: Sequence[int]
    hosts: int
    servers: int
    requests: int
    lists: int


def measure(directory: Path, plan: Plan) -> Iterator[Figure]:
    """Measure a door over each number of pods."""
    for pods in plan.pod_counts:
        with measured_door.running(directory / f"door-{pods}", pods, plan.hosts) as at:
            at.fill(plan.servers)
            yield from _lists(f"door.{pods}.list", at, plan)
            yield from _requests(f"door.{pods}", at, plan)


@dataclass(frozen=True, slots=True)
class _Timing:
    """Seconds of a request at the door and at a pod, and processor seconds of the door."""

    door: Sequence[float]
    pod: Sequence[float]
    busy_s: float

    def figures(self, name: str) -> Iterator[Figure]:
        yield Figure(f"{name}.median", median(self.door) * 1e3, "ms")
        yield Figure(f"{name}.pod", median(self.pod) * 1e3, "ms")
        yield Figure(f"{name}.more", (median(self.door) - median(self.pod)) * 1e3, "ms")
        yield Figure(f"{name}.busy", self.busy_s * 1e3, "ms")


def _requests(name: str, at: MeasuredDoor, plan: Plan) -> Iterator[Figure]:
    """Measure requests for one server: creates, then shows, then deletes."""
    door, pod = at.door, at.pods[-1]
    ours: list[str] = []
    theirs: list[str] = []
    before = _count(door)
    made = _in_turns(
        door,
        plan.requests,
        lambda _: ours.append(door.create()),
        lambda _: theirs.append(pod.create(DIRECT)),
    )
    yield from made.figures(f"{name}.create")
    if len(set(ours)) != len(ours) or _count(door) != before + len(ours):
        raise judging.Unsafe(f"{name}: not all servers are listed")
    shown = _in_turns(
        door,
        plan.requests,
        lambda number: door.show(ours[number]),
        lambda number: pod.show(theirs[number], DIRECT),
    )
    yield from shown.figures(f"{name}.show")
    gone = _in_turns(
        door,
        plan.requests,
        lambda number: door.delete(ours[number]),
        lambda number: pod.delete(theirs[number], DIRECT),
    )
    yield from gone.figures(f"{name}.delete")


def _in_turns(
    door: MeasuredCloud,
    requests: int,
    ask_door: Callable[[int], object],
    ask_pod: Callable[[int], object],
) -> _Timing:
    """Ask the door and the pod in turns, after some requests that are not counted."""
    at_door: list[float] = []
    at_pod: list[float] = []
    busy_s = 0.0
    for number in range(WARM_UPS + requests):
        if number == WARM_UPS:
            busy_s = door.busy_s()
        at_door.append(_timed(ask_door, number))
        at_pod.append(_timed(ask_pod, number))
    busy_s = (door.busy_s() - busy_s) / requests
    return _Timing(at_door[WARM_UPS:], at_pod[WARM_UPS:], busy_s)


def _timed(act: Callable[[int], object], number: int) -> float:
    begun = time.perf_counter()
    act(number)
    return time.perf_counter() - begun


def _lists(name: str, at: MeasuredDoor, plan: Plan) -> Iterator[Figure]:
    """Measure lists of all servers at the door, and of each pod's own servers at the pod."""
    clouds = (at.door, *at.pods)
    took: dict[str, list[float]] = {each.name: [] for each in clouds}
    at_once: list[float] = []
    ways: list[float] = []
    alone: dict[str, list[float]] = {each.name: [] for each in at.pods}
    doors: list[float] = []
    for number in range(WARM_UPS // 2 + plan.lists):
        before = [each.busy_s() for each in clouds]
        took[at.door.name].append(_timed(partial(_listed, at.door), number))
        busy = [each.busy_s() - busy_s for each, busy_s in zip(clouds, before, strict=True)]
        ways.append(busy[0] + max(busy[1:]))
        doors.append(busy[0])
        for pod in at.pods:
            pod_before = pod.busy_s()
            took[pod.name].append(_timed(partial(_listed_at, pod), number))
            alone[pod.name].append(pod.busy_s() - pod_before)
        at_once.append(_timed(partial(_listed_at_once, at.pods), number))
    found = json.loads(at.door.listed(LIMIT))["servers"]
    if len(found) != plan.servers:
        raise judging.Unsafe(f"{name}: {len(found)} of {plan.servers} servers are listed")
    warm = {each: median(times[WARM_UPS // 2 :]) for each, times in took.items()}
    slowest = max(warm[each.name] for each in at.pods)
    own = max(median(times[WARM_UPS // 2 :]) for times in alone.values())
    yield Figure(f"{name}.median", warm[at.door.name] * 1e3, "ms")
    yield Figure(f"{name}.pod", slowest * 1e3, "ms")
    together = median(at_once[WARM_UPS // 2 :])
    yield Figure(f"{name}.at_once", together * 1e3, "ms")
    yield Figure(f"{name}.share", warm[at.door.name] / slowest, "of one pod")
    yield Figure(f"{name}.beside", warm[at.door.name] / together, "of all pods")
    yield Figure(f"{name}.busy", median(doors[WARM_UPS // 2 :]) * 1e3, "ms")
    yield Figure(f"{name}.path", median(ways[WARM_UPS // 2 :]) * 1e3, "ms")
    yield Figure(f"{name}.pod_busy", own * 1e3, "ms")


def _listed(cloud: MeasuredCloud, _number: int) -> None:
    cloud.listed(LIMIT)


def _listed_at(pod: MeasuredCloud, _number: int) -> None:
    """Send a pod the request that the door sends to it."""
    pod.listed(LIMIT, AS_THE_DOOR)


def _listed_at_once(clouds: Sequence[MeasuredCloud], _number: int) -> None:
    """Ask all clouds at once, and wait for the slowest one. A door must do at least this."""
    with ThreadPoolExecutor(len(clouds)) as threads:
        list(threads.map(lambda each: each.listed(LIMIT, AS_THE_DOOR), clouds))


def _count(door: MeasuredCloud) -> int:
    """Return the number of servers that the door lists, over all pages."""
    count, path = 0, f"{COMPUTE}/servers?limit={LIMIT}"
    while path:
        told = door.call("GET", path, token=TOKEN)
        count += len(told["servers"])
        href = next((each["href"] for each in told.get("servers_links", [])), "")
        path = href.removeprefix(door.url)
    return count
