"""Measures claims and boots through one, two and four processes, on each kind of database.

Always true: all numbers of processes take turns with the same clients, database and requests.
Clients, processes and database servers share the machine. So the figures show the cost of more
processes and of their conflicts, but not the gain of more processors. The busiest process is the
leader, which writes for all processes. After the last turn the final state is checked, as after
every run.
"""

from __future__ import annotations

import itertools
import random
import re
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from benchmarks import claiming, database_servers, judging
from benchmarks.clients import Outcome, Question, ask, empty
from benchmarks.figures import PERCENT, Figure, median
from benchmarks.fleet import Fleet
from benchmarks.running import (
    ALIVE_WITHOUT_AGENT,
    LOG,
    Started,
    database_at,
    filled,
    started,
    store_in,
)
from benchmarks.serving import ALLOCATIONS_PER_HOST, BOOT
from innkeeper.store.tables import placement

CONFLICT = 409
FEW = 100
"""If a fleet has fewer hosts than this, the hosts are larger than real ones, so that they do not
fill up."""
LARGE = (1_000_000, 1_000_000_000, 20_000_000)
WARM_UP_S = 0.3
SQLITE = "sqlite"
FEW_CLIENTS = 16
LEADS_WITHIN_S = 30.0
LOOKS_AGAIN_S = 0.1
COUNTED_AFTER_S = 1.2
"""After this time, an idle writer thread has counted all of its commits."""
COUNTS_MAX = 10
"""How often the count is read on a machine so busy that the writer thread counts later."""
CONNECTS_S = 1.5
"""After this time, all other processes are connected to the leader. They look for it once a
second."""
SEED = 2026
AGAIN = re.compile(r"\bevent=(?:write_overtaken|batch_repeated|batch_tried_again)\b")
"""Matches the log events of writes that a service repeats after a conflict."""
TOGETHER = re.compile(r"\bsteps=(\d+)")
STEPS = "innkeeper_commit_steps"


@dataclass(frozen=True, slots=True)
class Plan:
    """Says how much work to measure."""

    host_counts: Sequence[int]
    process_counts: Sequence[int]
    client_counts: Sequence[int]
    seconds: float
    repetitions: int


@dataclass(slots=True)
class Tally:
    """The results of one kind of request with one number of processes, over all turns."""

    outcome: Outcome = field(default_factory=Outcome)
    done: int = 0
    conflicts: int = 0
    steps_per_commit: list[float] = field(default_factory=list)
    busiest_s: list[float] = field(default_factory=list)

    def figures(self, name: str, yardstick: Outcome) -> Iterator[Figure]:
        """Yield rates, latencies, the ratio, and the share of conflicts."""
        yield from self.outcome.figures(name)
        yield self.outcome.ratio(name, yardstick)
        yield Figure(f"{name}.steps", median(self.steps_per_commit), "per commit", is_rate=True)
        yield Figure(f"{name}.conflicts", PERCENT * self.conflicts / self.done, "%")
        yield Figure(f"{name}.busy", median(self.outcome.busy_s) * 1e6, "us")
        yield Figure(f"{name}.leader", median(self.busiest_s) * 1e6, "us")


@dataclass(slots=True)
class Turns:
    """Runs all turns on one database, and keeps the acknowledged ids."""

    place: Path
    url: str | None
    plan: Plan
    questions: Mapping[str, Question]
    yardsticks: dict[tuple[int, int], Outcome] = field(default_factory=dict)
    tallies: dict[tuple[str, int, int], Tally] = field(default_factory=dict)
    servers: list[str] = field(default_factory=list)
    claims: list[str] = field(default_factory=list)
    _seeds: Iterator[int] = field(default_factory=lambda: itertools.count(SEED))

    def take(self, processes: int) -> None:
        """Measure one turn: empty requests, and each kind of write."""
        elsewhere = {**ALIVE_WITHOUT_AGENT, **database_at(self.url)}
        with started(self.place, elsewhere, workers=processes) as service:
            _wait_for_leader(service, processes)
            for kind in self.questions:
                self._ask(service, kind, max(self.plan.client_counts), WARM_UP_S)
            time.sleep(COUNTED_AFTER_S)
            for clients in self.plan.client_counts:
                found = ask(service, empty(), clients, self.plan.seconds)
                self.yardsticks.setdefault((processes, clients), Outcome()).add(found)
                for kind in self.questions:
                    self._measure(service, kind, processes, clients)

    def _measure(self, service: Started, kind: str, processes: int, clients: int) -> None:
        tally = self.tallies.setdefault((kind, processes, clients), Tally())
        log = self.place / LOG
        said, commits, steps = log.stat().st_size, *_commits(service)
        found = self._ask(service, kind, clients, self.plan.seconds)
        commits_now, steps_now = _counted(service, commits)
        tally.outcome.add(found)
        tally.done += found["done"]
        tally.conflicts += repeated(log, said) + found["answers"] - found["done"]
        tally.steps_per_commit.append((steps_now - steps) / (commits_now - commits))
        tally.busiest_s.append(found["busiest_s"] / found["done"])

    def _ask(self, service: Started, kind: str, clients: int, seconds: float) -> dict[str, Any]:
        found = ask(service, self.questions[kind], clients, seconds, next(self._seeds))
        if len(found["server_ids"]) + len(found["new_uuids"]) != found["done"]:
            raise RuntimeError("The response to a write contains no id.")
        self.servers += found["server_ids"]
        self.claims += found["new_uuids"]
        return found


def measure(directory: Path, plan: Plan) -> Iterator[Figure]:
    """Measure rates, latencies, ratios and conflicts on each database, by number of hosts."""
    for hosts in plan.host_counts:
        place = directory / f"{SQLITE}-{hosts}"
        place.mkdir(parents=True)
        yield from _measure_one(SQLITE, place, None, hosts, plan)
    for name in database_servers.SERVERS:
        try:
            with database_servers.started(name) as server:
                for hosts in plan.host_counts:
                    place = directory / f"{name}-{hosts}"
                    place.mkdir(parents=True)
                    yield from _measure_one(name, place, server.fresh(), hosts, plan)
        except database_servers.Missing as missing:
            print(f"Not measured on {name}: {missing}\n", flush=True)


def _measure_one(
    server: str, place: Path, url: str | None, hosts: int, plan: Plan
) -> Iterator[Figure]:
    shape = LARGE if hosts < FEW else None
    fleet = Fleet(hosts, allocations=ALLOCATIONS_PER_HOST * hosts, shape=shape)
    filled(place, fleet, url)
    questions = {
        "claim": claiming.claim(_providers(place, url), [CONFLICT]),
        "boot": replace(BOOT, refusals=[CONFLICT]),
    }
    turns = Turns(place, url, plan, questions)
    dice = random.Random(SEED)
    for _ in range(plan.repetitions):
        # The order is random, because tables grow and the machine has other load.
        for processes in dice.sample(plan.process_counts, len(plan.process_counts)):
            turns.take(processes)
    judging.judge_both(place, url, turns.servers, turns.claims)
    for processes, clients in itertools.product(plan.process_counts, plan.client_counts):
        name = figure_name(server, hosts, processes, clients)
        yardstick = turns.yardsticks[processes, clients]
        yield from yardstick.figures(f"{name}.empty")
        for kind in questions:
            yield from turns.tallies[kind, processes, clients].figures(f"{name}.{kind}", yardstick)


def figure_name(server: str, hosts: int, processes: int, clients: int) -> str:
    """Return the prefix of the names of the figures in one row of the table."""
    base = "several" if clients == FEW_CLIENTS else f"several-{clients}"
    return f"{base}.{server}.{hosts}.{processes}"


def _wait_for_leader(service: Started, processes: int) -> None:
    """Wait until one process leads, and the others are connected to it."""
    if processes == 1:
        return
    deadline_s = time.monotonic() + LEADS_WITHIN_S
    while b"\ninnkeeper_leading 1.0" not in _metrics(service):
        if time.monotonic() > deadline_s:
            raise RuntimeError("No process leads.")
        time.sleep(LOOKS_AGAIN_S)
    time.sleep(CONNECTS_S)


def _metrics(service: Started) -> bytes:
    with urllib.request.urlopen(f"http://127.0.0.1:{service.port}/metrics") as answer:
        found: bytes = answer.read()
    return found


def _providers(place: Path, url: str | None) -> list[str]:
    store = store_in(place, url)
    try:
        with store.read() as tx:
            uuids = tx.execute(sa.select(placement.resource_providers.c.uuid)).scalars()
            return [str(each) for each in uuids]
    finally:
        store.dispose()


def _commits(service: Started) -> tuple[float, float]:
    """Return the number of commits of all processes, and that of the commands in them."""
    lines = _metrics(service).decode().splitlines()
    reported = dict(line.rsplit(" ", 1) for line in lines if line.startswith(STEPS))
    return float(reported[f"{STEPS}_count"]), float(reported[f"{STEPS}_sum"])


def _counted(service: Started, before: float) -> tuple[float, float]:
    """Return the same as :func:`_commits`, once the commits since ``before`` are counted."""
    for _ in range(COUNTS_MAX):
        time.sleep(COUNTED_AFTER_S)
        found = _commits(service)
        if found[0] > before:
            return found
    raise RuntimeError("The service counts no commits.")


def repeated(log: Path, begin: int = 0) -> int:
    """Return how many writes a service has repeated, from its log after ``begin``."""
    with log.open("rb") as file:
        file.seek(begin)
        lines = file.read().decode(errors="replace").splitlines()
    found = (TOGETHER.search(line) for line in lines if AGAIN.search(line))
    return sum(int(together[1]) if together else 1 for together in found)
