"""Measures leases: decisions on the calendar, requests over HTTP, due events, and reserved boots.

Always true: all parts have the same calendar. With the time of each request, the service's
processor time is measured, because other load of the machine hardly changes it. After the runs the
final state is checked. A run that lost a lease or held a host twice has no figures.
"""

from __future__ import annotations

import random
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

from benchmarks import judging, leased_fleet
from benchmarks.clients import ADMIN, TOKEN
from benchmarks.figures import Figure, median
from benchmarks.fleet import Fleet
from benchmarks.lease_client import SMALL, LeaseClient, Timing, body_of, figures_of
from benchmarks.leased_fleet import SLOT, SLOT_SIZES, Leased
from benchmarks.running import ALIVE_WITHOUT_AGENT, filled, started, store_in
from innkeeper import wiring
from innkeeper.domain.leases import Demand, LeaseEventState, Window
from innkeeper.domain.moves import Initiator
from innkeeper.scheduling.leases.choosing import ChosenUnits
from innkeeper.snapshot import loader
from innkeeper.snapshot.columns import HostTable
from innkeeper.store.transactions import Store
from innkeeper.systems.leases import booking, nearest
from innkeeper.systems.leases.context import LeaseContext

PROJECT = TOKEN.partition(":")[2]
A_DAY_S = 86_400.0
DAYS, HOURS_MAX = 30, 48
"""Measured leases begin within so many days, and last at most so many hours."""
BUSY_DAYS = 10
"""In these first days most hosts are held, so leases may be refused."""
WARM_UPS = 5
DEMANDS = {
    "hosts": Demand(2, 4),
    "required": Demand(2, 4, requirements=('[">=", "$vcpus", "64"]',)),
    "slots": Demand(8, 8, SLOT),
    "together": Demand(8, 8, SLOT, affinity=True),
    "apart": Demand(8, 8, SLOT, affinity=False),
}
"""The measured demands: whole hosts, and slots of each affinity."""
SHARE_REFUSED = 0.9
"""Requests for this share of all hosts are refused, and the refusal names a later start. On
average, a host has room for two large slots."""
EVERY = 8
"""A large slot is as large as so many ordinary slots. It fills one of the smallest hosts."""
PAGE = 1_000
_SIZE = "&".join(f"{name}={size}" for name, size in SLOT_SIZES.items())
QUESTIONS = {
    "hosts": "resource_type=physical:host&amount=4",
    "slots": f"resource_type=virtual:instance&amount=8&{_SIZE}",
    "together": f"resource_type=virtual:instance&amount=8&affinity=true&{_SIZE}",
    "window": "resource_type=physical:host&amount=4&duration_minutes=1440",
}
BOOT_KINDS = ("plain", "hosts", "slots")
BOOT_HOSTS = 50
DONE_WITHIN_S, LOOK_AGAIN_S = 600.0, 0.02
START_MARGIN_S = 3.0


@dataclass(frozen=True, slots=True)
class Plan:
    """Says how much to measure: the calendar, decisions, requests of each kind, and boots."""

    calendar: Leased
    other_hosts: int
    decisions: int
    requests: int
    boots: int


def measure(directory: Path, plan: Plan) -> Iterator[Figure]:
    """Measure everything about leases."""
    now, size = wiring.now(), plan.calendar
    place, rush = directory / "requests", directory / "rush"
    place.mkdir(parents=True)
    filled(place, Fleet(size.hosts + plan.other_hosts, allocations=0))
    store = store_in(place)
    try:
        leased_fleet.fill(store, size, PROJECT, now)
        yield from _decisions(store, plan, now)
    finally:
        store.dispose()
    shutil.copytree(place, rush)
    yield from _requests(place, plan, now)
    yield from _rush(rush, plan, now)


# -- decisions -------------------------------------------------------------------------------


def _decisions(store: Store, plan: Plan, now: datetime) -> Iterator[Figure]:
    with store.read() as tx:
        table = loader.load_all(tx)
    dice = random.Random(plan.calendar.seed)
    context = LeaseContext(A_DAY_S, Initiator("req-benchmark"), now)
    for kind, demand in DEMANDS.items():
        windows = [_window(dice, now) for _ in range(WARM_UPS + plan.decisions)]
        took = [_timed(partial(_look, table, demand, each, context)) for each in windows]
        yield from figures_of(f"leases.decision.{kind}", took[WARM_UPS:])
    for kind, demand in _refused(plan.calendar.hosts).items():
        windows = [_busy_window(dice, now) for _ in range(WARM_UPS + plan.requests // 4)]
        took = [_timed(partial(_refuse, table, demand, each, context)) for each in windows]
        yield from figures_of(f"leases.refusal.{kind}", took[WARM_UPS:])


def _look(table: HostTable, demand: Demand, window: Window, context: LeaseContext) -> None:
    assert isinstance(booking.look(table, [demand], window, context), ChosenUnits)


def _refuse(table: HostTable, demand: Demand, window: Window, context: LeaseContext) -> None:
    assert not isinstance(booking.look(table, [demand], window, context), ChosenUnits)
    assert nearest.window(table, [demand], window, context) is not None


def _refused(hosts: int) -> dict[str, Demand]:
    """Return demands for whole hosts and for slots of each affinity. None of them fits soon."""
    many = int(SHARE_REFUSED * hosts)
    every = {name: EVERY * amount for name, amount in SLOT.items()}
    return {
        "hosts": Demand(many, many),
        "slots": Demand(2 * many, 2 * many, every),
        "apart": Demand(many, many, every, affinity=False),
    }


def _window(dice: random.Random, now: datetime) -> Window:
    """Return a window after the days in which most hosts are held."""
    start = _minute(now) + timedelta(days=BUSY_DAYS, hours=dice.randrange(24 * DAYS))
    return Window(start, start + timedelta(hours=dice.randint(1, HOURS_MAX)))


def _busy_window(dice: random.Random, now: datetime) -> Window:
    """Return a window in the days in which most hosts are held."""
    start = _minute(now) + timedelta(days=3, hours=dice.randrange(24 * 4))
    return Window(start, start + timedelta(hours=dice.randint(1, HOURS_MAX)))


def _minute(now: datetime) -> datetime:
    return now.replace(second=0, microsecond=0)


def _timed(act: Callable[[], object]) -> Timing:
    busy_s, begun = time.thread_time(), time.perf_counter()
    act()
    took_s = time.perf_counter() - begun
    return took_s, time.thread_time() - busy_s


# -- requests --------------------------------------------------------------------------------


def _requests(place: Path, plan: Plan, now: datetime) -> Iterator[Figure]:
    dice = random.Random(plan.calendar.seed + 1)
    with started(place, ALIVE_WITHOUT_AGENT) as service:
        yield Figure("leases.start", service.ready_after_s, "s")
        client, admin = LeaseClient(service), LeaseClient(service, ADMIN)
        for kind, demand in DEMANDS.items():
            create = partial(_create, client, demand, dice, now)
            yield from client.measured(f"leases.create.{kind}", create, plan.requests)
        for kind, demand in _refused(plan.calendar.hosts).items():
            refuse = partial(_refused_request, client, demand, dice, now)
            yield from client.measured(f"leases.refused.{kind}", refuse, plan.requests // 4)
        for kind, query in QUESTIONS.items():
            question = partial(client.availability, query)
            yield from client.measured(f"leases.availability.{kind}", question, plan.requests)
        for kind, each in {"own": client, "all": admin}.items():
            page = partial(each.page, PAGE)
            yield from each.measured(f"leases.page.{kind}", page, plan.requests // 2)
        yield from _boots(client, plan)
        yield Figure("leases.memory", service.resident_mb(), "MB")
    judging.judge_leases(place, client.lease_ids, client.server_ids)


def _create(client: LeaseClient, demand: Demand, dice: random.Random, now: datetime) -> None:
    client.create(body_of(demand, _window(dice, now)))


def _refused_request(
    client: LeaseClient, demand: Demand, dice: random.Random, now: datetime
) -> None:
    sizes = {name: EVERY * size for name, size in SLOT_SIZES.items()}
    client.refused(body_of(demand, _busy_window(dice, now), sizes))


# -- boots -----------------------------------------------------------------------------------


def _boots(client: LeaseClient, plan: Plan) -> Iterator[Figure]:
    """Measure boots in turns: on ordinary hosts, on reserved hosts, and in reserved slots."""
    count = WARM_UPS + plan.boots
    hosts = client.reserve(Demand(BOOT_HOSTS, BOOT_HOSTS))["id"]
    slots = client.reserve(Demand(count, count, SMALL))["flavor_id"]
    boots = {
        "plain": partial(client.boot, {}, {}),
        "hosts": partial(client.boot, {}, {"reservation": hosts}),
        "slots": partial(client.boot, {"flavorRef": slots}, {}),
    }
    dice = random.Random(plan.calendar.seed)
    took: dict[str, list[Timing]] = {kind: [] for kind in BOOT_KINDS}
    for turn in range(count):
        for kind in dice.sample(BOOT_KINDS, len(BOOT_KINDS)):
            each = client.timed(boots[kind])
            if turn >= WARM_UPS:
                took[kind].append(each)
    medians = {
        kind: [median(each) * 1e3 for each in zip(*pairs, strict=True)]
        for kind, pairs in took.items()
    }
    for kind, (took_ms, busy_ms) in medians.items():
        yield Figure(f"leases.boot.{kind}.median", took_ms, "ms")
        yield Figure(f"leases.boot.{kind}.busy", busy_ms, "ms")
        yield Figure(f"leases.boot.{kind}.share", took_ms / medians["plain"][0], "of plain")
        yield Figure(f"leases.boot.{kind}.busy_share", busy_ms / medians["plain"][1], "of plain")


# -- due events ------------------------------------------------------------------------------


def _rush(place: Path, plan: Plan, now: datetime) -> Iterator[Figure]:
    """Measure when leases with one due time have begun to start, and when they are active."""
    store = store_in(place)
    try:
        with started(place, ALIVE_WITHOUT_AGENT) as service:
            ready_after_s = service.ready_after_s
        at = wiring.now() + timedelta(seconds=2 * ready_after_s + START_MARGIN_S)
        count = leased_fleet.begin_rush(store, now, at)
        with started(place, ALIVE_WITHOUT_AGENT) as service:
            if wiring.now() >= at:
                raise RuntimeError("The events were due before the service was ready.")
            busy_s = -service.busy_s()
            begun_s, active_s = _watch(store, at, count)
            busy_s += service.busy_s()
    finally:
        store.dispose()
    yield Figure("leases.events.count", count, "leases")
    yield Figure("leases.events.begun", begun_s, "s")
    yield Figure("leases.events.active", active_s, "s")
    yield Figure("leases.events.busy", busy_s / count * 1e3, "ms per lease")
    judging.judge_leases(place, [], [])


def _watch(store: Store, at: datetime, count: int) -> tuple[float, float]:
    """Return the seconds from the due time until all starts are begun, and until all are done."""
    begun_s: float | None = None
    while True:
        since_s = (wiring.now() - at).total_seconds()
        states = leased_fleet.starts_in(store, at)
        if begun_s is None and not states.get(LeaseEventState.WAITING):
            begun_s = since_s
        if begun_s is not None and states.get(LeaseEventState.DONE) == count:
            return begun_s, since_s
        if since_s > DONE_WITHIN_S:
            raise RuntimeError(f"The starts of leases are not done: {states}.")
        time.sleep(LOOK_AGAIN_S)
