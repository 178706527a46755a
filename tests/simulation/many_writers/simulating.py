"""One run: clients and faults act on a fleet, then the history and final state are checked.

``SIMULATION_SECONDS`` and ``SIMULATION_SEED`` make longer and other runs. Histories are kept in
``SIMULATION_HISTORIES``; without such a folder only failing ones are kept, beside the logs.
"""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from tests.simulation.many_writers.asking import PER_SERVER, SERVERS, Asking
from tests.simulation.many_writers.checker import World, check
from tests.simulation.many_writers.fleet import HOST_CPUS, SIZE, Fleet, must, wait_until
from tests.simulation.many_writers.history import History, Operation, Outcome
from tests.simulation.many_writers.nemesis import LATER_S, SOON_S, Harm, Nemesis, harms_of_services
from tests.simulation.many_writers.writers import (
    Client,
    Places,
    Reader,
    Writer,
    all_consumers,
    project_of,
)

SECONDS = float(os.environ.get("SIMULATION_SECONDS", "25"))
SEED = int(os.environ.get("SIMULATION_SEED", "2026"))
WRITERS = 16
READERS = 3
SETTLES_WITHIN_S = 90.0
CPU_RATIO = 4
"""The number of servers that share a processor, by the settings' default."""
PAGE = 1000
SHOWN = 20


@dataclass(frozen=True, slots=True)
class Run:
    """The result of a run."""

    operations: Sequence[Operation]
    problems: Sequence[str]
    acknowledged: int
    harms: int
    history: History

    def summary(self) -> str:
        """A table of requests and answers, one line each."""
        counts = Counter((each.kind.value, each.outcome.value) for each in self.operations)
        return "\n".join(
            f"{kind:16} {outcome:8} {n}" for (kind, outcome), n in sorted(counts.items())
        )


def simulate(
    fleet: Fleet,
    harms_of_database: Sequence[Harm],
    *,
    seed: int = SEED,
    seconds: float = SECONDS,
    ports: Sequence[int] = (),
    services_harms: Sequence[Harm] | None = None,
    calm_s: tuple[float, float] = SOON_S,
) -> Run:
    """Run, and return the violations; if there are any, a file keeps the history.

    By default, each service can be killed or paused; other faults of services can be given.
    """
    history = History()
    entrances = ports or fleet.ports
    fleet.start_agent(entrance=entrances[0])
    places = fleet.furnish()
    clients = _clients(seed, entrances, history, places)
    of_services = harms_of_services(fleet) if services_harms is None else services_harms
    nemeses = [
        Nemesis(harms, calm_s, _dice(seed, name), history)
        for name, calm_s, harms in (
            ("services", calm_s, of_services),
            ("database", LATER_S, harms_of_database),
        )
        if harms
    ]
    for client in clients:
        client.start()
    for nemesis in nemeses:
        nemesis.start()
    time.sleep(seconds)
    for nemesis in nemeses:
        nemesis.stop()
    fleet.wait_ready()
    _see_progress(clients)
    for client in clients:
        client.stop()
    for client in clients:
        client.join()
    fleet.settle()
    _look_at_the_end(fleet, history, places)
    world = World(
        {each: SIZE if each in places.resized else HOST_CPUS * CPU_RATIO for each in places.all},
        frozenset(places.resized),
        PER_SERVER,
    )
    operations = history.operations()
    run = Run(
        operations,
        check(operations, world),
        sum(each.acknowledged for each in clients),
        sum(each.done for each in nemeses),
        history,
    )
    _tell(run, seed, seconds, history, fleet)
    fleet.enlarge(places)
    return run


def _dice(seed: int, name: str) -> Random:
    return Random(f"{seed}/{name}")  # noqa: S311 - to be repeated, not to be secret


def _clients(seed: int, ports: Sequence[int], history: History, places: Places) -> list[Client]:
    writers = [
        Writer(number, _dice(seed, f"writer-{number}"), ports, history, places)
        for number in range(WRITERS)
    ]
    names = [f"reader-{number}" for number in range(READERS)]
    readers = [Reader(each, _dice(seed, each), ports, history, places) for each in names]
    return [*writers, *readers]


def _see_progress(clients: Sequence[Client]) -> None:
    """After all repairs, every client succeeds with something."""
    before = {each.name: each.acknowledged for each in clients}
    wait_until(
        lambda: all(each.acknowledged > before[each.name] for each in clients),
        "every client's next success",
        SETTLES_WITHIN_S,
    )


def _look_at_the_end(fleet: Fleet, history: History, places: Places) -> None:
    door = fleet.door()
    asking = Asking("the end", door, history)
    wait_until(lambda: _is_settled(_all_servers(fleet)), "the agent", SETTLES_WITHIN_S)
    operations = history.operations()
    found = [asking.consumer(each) for each in all_consumers(operations)]
    found += [asking.project(project_of(number)) for number in range(WRITERS)]
    for each in places.all:
        found += [asking.given(each), asking.usages(each), asking.inventory(each)]
    assert all(each.outcome is Outcome.DONE for each in found), "the end could not be seen"
    asking.servers({each["id"]: _server(door, each) for each in _all_servers(fleet)})
    door.close()


def _all_servers(fleet: Fleet) -> list[Any]:
    door = fleet.door()
    found: list[Any] = []
    marker = ""
    while True:
        path = f"{SERVERS}/detail?all_tenants=1&limit={PAGE}{marker}"
        page = must(door.call("GET", path))["servers"]
        found += page
        if len(page) < PAGE:
            door.close()
            return found
        marker = f"&marker={page[-1]['id']}"


def _is_settled(servers: Sequence[Any]) -> bool:
    return all(each["OS-EXT-STS:task_state"] is None for each in servers)


def _server(door: Any, shown: Any) -> dict[str, Any]:
    held = must(door.call("GET", f"/placement/allocations/{shown['id']}"))["allocations"]
    amounts = {provider: line["resources"] for provider, line in held.items()}
    return {"name": shown["name"], "status": shown["status"], "held": amounts}


def _tell(run: Run, seed: int, seconds: float, history: History, fleet: Fleet) -> None:
    """Print what happened, which pytest shows for a failed test."""
    head = f"seed {seed}, {seconds:.0f} s, {run.harms} harms, {run.acknowledged} acknowledged"
    sys.stdout.write(f"{head}\n{run.summary()}\n")
    kept = os.environ.get("SIMULATION_HISTORIES")
    if kept or run.problems:
        path = Path(kept or fleet.folder) / f"history-{seed}-{time.time_ns()}.jsonl"
        history.write(path, [head, *run.problems])
        sys.stdout.write(f"the history is in {path}\n")
    if run.problems:
        shown = "\n".join(run.problems[:SHOWN])
        sys.stdout.write(f"{len(run.problems)} problems\n{shown}\n{fleet.log_ends()}\n")
