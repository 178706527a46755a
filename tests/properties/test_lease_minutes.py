"""Random leases, changes, failures and clocks against a timeline of minutes in plain Python.

After each step, the whole database is judged (:class:`tests.support.lease_worlds.LeaseWorld`). A
lease with a single reservation is accepted exactly if the timeline has room, and gets as much as
the timeline has. So does a lease at its first healing. A refused request changes no row of any
table.
"""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from innkeeper.domain.errors import NotEnough, Refusal
from innkeeper.domain.leases import (
    Demand,
    Lease,
    LeaseEventState,
    LeaseStatus,
    Reservation,
    ReservationState,
)
from innkeeper.store.tables.compute import servers
from innkeeper.store.tables.leases import holds
from innkeeper.systems.leases.refusals import DATE
from innkeeper.systems.leases.updates import LeaseChange
from tests.support.lease_worlds import SIZES, LeaseWorld, demand_of
from tests.support.minutes import Minutes, joined

PROJECTS = ("project", "stranger")
HORIZON = 120
PERIOD = 20
"""The minutes between the leases of a series."""
REQUIRED = st.sampled_from(["", "", "", '["==", "$kind", "a"]', '["=", "$kind", "b"]'])
COUNTS = st.integers(1, 4)


def whole(least: int, more: int, required: str) -> dict[str, Any]:
    """Return a reservation of whole hosts."""
    sizes = {"min": least, "max": least + more}
    return {
        "resource_type": "physical:host",
        **sizes,
        "hypervisor_properties": "",
        "resource_properties": required,
    }


def slots(cpus: int, memory: int, amount: int, affinity: bool | None, text: str) -> dict[str, Any]:
    """Return a reservation of slots."""
    return {
        "resource_type": "virtual:instance",
        "vcpus": cpus,
        "memory_mb": 1024 * memory,
        "disk_gb": 1,
        "amount": amount,
        "affinity": affinity,
        "resource_properties": text,
    }


RESERVATIONS = st.one_of(
    st.builds(whole, st.integers(1, 3), st.integers(0, 2), REQUIRED),
    st.builds(slots, COUNTS, COUNTS, COUNTS, st.sampled_from([None, True, False]), REQUIRED),
)
STARTS = st.one_of(st.just(0), st.integers(0, HORIZON))
LENGTHS = st.integers(1, HORIZON // 2)


def fits_all(
    plain: Minutes, demand: Demand, windows: Sequence[tuple[int, int]], cleaning: int
) -> bool:
    """Return whether a demand fits in each of these windows."""
    return all(plain.fits(demand, *each, cleaning) >= demand.units_min for each in windows)


class Leasing(RuleBasedStateMachine):
    """A freepool, and everything that may happen to its leases."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="innkeeper-leases-"))
        self.world: LeaseWorld
        self.refusal: NotEnough | None = None

    @initialize(cleaning=st.sampled_from([0, 0, 5]))
    def open(self, cleaning: int) -> None:
        self.world = LeaseWorld(self.folder, cleaning)

    def teardown(self) -> None:
        if hasattr(self, "world"):
            self.rest()
            self.world.movers.close()
        shutil.rmtree(self.folder)

    # -- steps -----------------------------------------------------------------------------

    @rule(body=RESERVATIONS, after=STARTS, length=LENGTHS, who=st.sampled_from(PROJECTS))
    def lease_one(self, body: dict[str, Any], after: int, length: int, who: str) -> None:
        """A lease with a single reservation is accepted exactly if it fits."""
        world = self.world
        start, demand = world.minute + after, demand_of(body)
        fits = world.minutes().fits(demand, start, start + length, world.cleaning)
        made = self.attempt(lambda: world.create([body], start, start + length, who))
        assert (made is not None) == (fits >= demand.units_min), (demand, fits)
        if made is None:
            self.judge_nearest(world.minutes(), demand, [(start, start + length)])
        else:
            held = world.held(made.reservations[0].id)
            assert sum(held.values()) == min(fits, demand.units_max)

    @rule(body=RESERVATIONS, after=STARTS, length=st.integers(1, 10), count=st.integers(2, 4))
    def lease_again_and_again(
        self, body: dict[str, Any], after: int, length: int, count: int
    ) -> None:
        """A series of leases is accepted exactly if each fits."""
        world, demand = self.world, demand_of(body)
        starts = [world.minute + after + place * PERIOD for place in range(count)]
        windows = [(start, start + length) for start in starts]
        before = world.minutes()
        made = self.attempt(lambda: world.repeat(body, windows, "project")[0])
        fit = [fits_all(before, demand, [each], world.cleaning) for each in windows]
        assert (made is not None) == all(fit)
        if made is None:
            assert self.refusal is not None
            assert self.refusal.details["lease"] == fit.index(False) + 1
            self.judge_nearest(before, demand, windows)

    @rule(
        bodies=st.lists(RESERVATIONS, min_size=2, max_size=3),
        after=STARTS,
        length=LENGTHS,
        who=st.sampled_from(PROJECTS),
    )
    def lease_many(self, bodies: list[dict[str, Any]], after: int, length: int, who: str) -> None:
        """Either all reservations of a lease are made, or none."""
        world = self.world
        start, demands = world.minute + after, [demand_of(each) for each in bodies]
        made = self.attempt(lambda: world.create(bodies, start, start + length, who))
        if world.cleaning == 0 and all(each.is_whole for each in demands) and made is None:
            assert world.minutes().best_wholes(demands, start, start + length) is None
        if made is not None:
            assert len(made.reservations) == len(bodies)

    @precondition(lambda self: self.world.present())
    @rule(
        data=st.data(),
        later=st.integers(-30, 30),
        longer=st.integers(-30, HORIZON),
        least=COUNTS,
        more=st.integers(0, 2),
    )
    def change_one(self, data: Any, later: int, longer: int, least: int, more: int) -> None:
        """A change of dates and size is accepted exactly if the changed lease fits."""
        world = self.world
        lease = data.draw(st.sampled_from(self.singles() or world.present()))
        is_pending = lease.start_event.state == LeaseEventState.WAITING
        start = world.minute_of(lease.start_at) + (later if is_pending else 0)
        end = world.minute_of(lease.end_at) + longer
        sizes = {each.uuid: size_of(each.is_whole, least, more) for each in lease.reservations[:1]}
        wanted = LeaseChange(
            start_at=world.at(start) if is_pending and later else None,
            end_at=world.at(end),
            reservations=sizes,
        )
        expected = self.expected(lease, start, end, least, more)
        made = self.attempt(lambda: world.change(lease.uuid, wanted))
        if expected is None:
            return
        assert (made is not None) == (expected > 0), expected
        if self.refusal is not None and is_pending:
            self.judge_nearest(*self.changed(lease, least, more), [(start, end)])
        elif self.refusal is not None:
            self.judge_end(lease, end, least, more)
        if made is not None and made.ended_at is None:
            assert sum(world.held(made.reservations[0].id).values()) == expected

    def expected(self, lease: Lease, start: int, end: int, least: int, more: int) -> int | None:
        """Return the units of a changed reservation: 0 if refused, ``None`` if not predicted."""
        world, now = self.world, self.world.minute
        is_removed = any(
            each.state not in ReservationState.PRESENT for each in lease.reservations[:1]
        )
        if is_removed or lease.status in (LeaseStatus.ENDING, LeaseStatus.ENDED):
            return 0
        if was_healed(lease):
            return None
        if end <= start or end < now or (start < now and start != world.minute_of(lease.start_at)):
            return 0
        if len(lease.reservations) != 1 or end == now:
            return None
        (part,) = lease.reservations
        held = world.held(part.id)
        has = sum(held.values())
        plain, demand = self.changed(lease, least, more)
        most = demand.units_max
        free = [plain.units(row, demand, start, end, world.cleaning) for row in range(len(SIZES))]
        if part.is_live:
            if most < has or any(free[list(SIZES).index(name)] < held[name] for name in held):
                return 0
            if part.affinity and not part.is_whole:
                free = [units * (name in held) for name, units in zip(SIZES, free, strict=True)]
        fits = joined(demand, free)
        return min(fits, most) if fits >= max(least, has if part.is_live else 0) else 0

    def changed(self, lease: Lease, least: int, more: int) -> tuple[Minutes, Demand]:
        """Return the timeline without a lease's single reservation, and its new demand."""
        (part,) = lease.reservations
        most = least + more if part.is_whole else least
        required = tuple(each for each in (part.parameters.get("resource_properties", ""),) if each)
        demand = Demand(least, most, part.unit_amounts, part.affinity, required)
        forced = list(self.world.held(part.id)) if part.is_live else ()
        return self.world.minutes([part.id], forced), demand

    def judge_nearest(
        self, plain: Minutes, demand: Demand, windows: Sequence[tuple[int, int]]
    ) -> None:
        """Assert that the last refusal names the least delay with which all windows fit."""
        cleaning = self.world.cleaning
        ends = {each.end + cleaning for each in plain.holds}
        moves = sorted({0} | {end - start for end in ends for start, _ in windows if end > start})
        found = next(
            (
                each
                for each in moves
                if fits_all(plain, demand, [(s + each, e + each) for s, e in windows], cleaning)
            ),
            None,
        )
        start, end = windows[0]
        assert self.refusal is not None
        said = [self.refusal.details[f"earliest_{name}_date"] for name in ("start", "end")]
        assert said == [None if found is None else self.text(at + found) for at in (start, end)]

    def judge_end(self, lease: Lease, end: int, least: int, more: int) -> None:
        """Assert that the last refusal names the last minute at which the lease could end."""
        start, first = self.world.minute_of(lease.start_at), self.world.minute + 1
        fits = [
            each for each in range(first, end) if self.expected(lease, start, each, least, more)
        ]
        assert self.refusal is not None
        assert self.refusal.details["latest_end_date"] == (self.text(fits[-1]) if fits else None)

    def text(self, minute: int) -> str:
        """Return a minute as errors say it."""
        return self.world.at(minute).strftime(DATE)

    @precondition(lambda self: self.world.present())
    @rule(data=st.data(), body=RESERVATIONS)
    def add_reservation(self, data: Any, body: dict[str, Any]) -> None:
        lease = data.draw(st.sampled_from(self.world.present()))
        uuid = self.world.cloud.ids.uuid()
        wanted = LeaseChange(added=[body], added_uuids=[uuid])
        made = self.attempt(lambda: self.world.change(lease.uuid, wanted))
        if made is not None:
            assert uuid in {each.uuid for each in made.reservations}

    @precondition(lambda self: any(each.reservations for each in self.world.present()))
    @rule(data=st.data())
    def remove_reservation(self, data: Any) -> None:
        some = [each for each in self.world.present() if each.reservations]
        lease = data.draw(st.sampled_from(some))
        part = data.draw(st.sampled_from(lease.reservations))
        wanted = LeaseChange(removed=frozenset({part.uuid}))
        self.attempt(lambda: self.world.change(lease.uuid, wanted))

    @precondition(lambda self: self.world.present())
    @rule(data=st.data())
    def delete(self, data: Any) -> None:
        self.world.delete(data.draw(st.sampled_from(self.world.present())).uuid)

    @rule(name=st.sampled_from(list(SIZES)))
    def fail_or_return(self, name: str) -> None:
        self.world.switch(name)

    @rule(name=st.sampled_from(list(SIZES)))
    def fail_and_heal(self, name: str) -> None:
        """A host fails, and failed hosts are replaced as far as other hosts are free."""
        if name not in self.world.closed:
            self.world.switch(name)
        self.heal()

    @rule()
    def heal(self) -> None:
        for uuid, failed in self.world.operator.failed_hosts().items():
            lease = self.world.lease(uuid)
            expected = self.healed(lease)
            self.world.operator.heal_one(uuid, failed)
            if expected is not None:
                (part,) = self.world.lease(uuid).reservations
                held = self.world.held(part.id)
                usable = sum(held[each] for each in held.keys() - self.world.closed)
                assert usable == expected, (held, self.world.closed)
                (before,) = lease.reservations
                has = sum(self.world.held(before.id).values())
                assert part.is_missing == (expected < min(has, before.units_max))

    def healed(self, lease: Lease) -> int | None:
        """Return the units that a lease can have on usable hosts; ``None`` if not predicted."""
        world = self.world
        if len(lease.reservations) != 1 or was_healed(lease):
            return None
        (part,) = lease.reservations
        held = world.held(part.id)
        has = sum(held.values())
        if 0 in held.values():
            return None
        required = tuple(each for each in (part.parameters.get("resource_properties", ""),) if each)
        demand = Demand(1, has, part.unit_amounts, part.affinity, required)
        plain, start = world.minutes([part.id]), max(world.minute_of(lease.start_at), world.minute)
        end = world.minute_of(lease.end_at)
        free = [plain.units(row, demand, start, end, world.cleaning) for row in range(len(SIZES))]
        kept = [0 if name in world.closed else held.get(name, 0) for name in SIZES]
        if demand.is_whole or demand.affinity is not True:
            most = [max(pair) for pair in zip(free, kept, strict=True)]
            return min(has, joined(demand, most))
        return has if any(kept) or max(free) >= has else 0

    @rule(minutes=st.one_of(st.integers(1, 10), st.integers(1, HORIZON)))
    def wait(self, minutes: int) -> None:
        """Time passes; then all leases have the statuses of their windows."""
        self.world.advance(minutes)

    @rule(minutes=st.one_of(st.integers(-30, -1), st.integers(HORIZON, 20 * HORIZON)))
    def jump(self, minutes: int) -> None:
        """The clock is set back, or far ahead."""
        self.world.advance(minutes)

    @precondition(lambda self: self.world.present())
    @rule(data=st.data())
    def end_now(self, data: Any) -> None:
        """A lease ends early: its end is changed to the present minute."""
        world = self.world
        lease = data.draw(st.sampled_from(world.present()))
        wanted = LeaseChange(end_at=world.at(world.minute))
        made = self.attempt(lambda: world.change(lease.uuid, wanted))
        is_running = lease.start_at < world.operator.now and lease.ended_at is None
        assert (made is not None) == is_running
        if made is not None:
            assert made.status in (LeaseStatus.ENDING, LeaseStatus.ENDED)
            assert not any(each.is_live for each in made.reservations)

    @precondition(lambda self: any(each.reservations for each in self.world.present()))
    @rule(data=st.data(), who=st.sampled_from([None, None, *PROJECTS]), told=st.booleans())
    def boot(self, data: Any, who: str | None, told: bool) -> None:
        """A server gets a host only in the window, for the right project, and if there is room."""
        world = self.world
        some = [each for each in world.present() if each.reservations]
        lease = data.draw(st.sampled_from(some))
        part = data.draw(st.sampled_from(lease.reservations))
        row = {"uuid": part.uuid, "unit_amounts": part.unit_amounts}
        project = who or lease.project_id
        is_due = project == lease.project_id and self.has_room(lease, part)
        home = world.boot(row, project)
        assert home is not None or not is_due
        if home is not None:
            assert project == lease.project_id
            assert lease.start_at <= world.latest
            assert world.operator.now < lease.end_at
            assert home in world.held(part.id)
            assert home not in world.closed
        if told:
            world.movers.finish()

    def has_room(self, lease: Lease, part: Reservation) -> bool:
        """Return whether slots of a running reservation are free, on a host that is up."""
        world = self.world
        if part.is_whole or not part.is_live or lease.ended_at is not None:
            return False
        active = {each["host_id"] for each in world.rows(holds) if each["is_active"]}
        there = [e for e in world.rows(servers) if e["deleted_at"] is None and e["host"]]
        used = Counter(each["host"] for each in there if each["flavor_id"] == part.uuid)
        return any(
            used[name] < units and name not in world.closed and world.host_ids[name] in active
            for name, units in world.held(part.id).items()
        )

    # -- checks ----------------------------------------------------------------------------

    def singles(self) -> list[Lease]:
        """Return the leases with one reservation that are not over."""
        over = (LeaseStatus.ENDING, LeaseStatus.ENDED)
        present = self.world.present()
        return [e for e in present if len(e.reservations) == 1 and e.status not in over]

    def attempt(self, act: Callable[[], Lease]) -> Lease | None:
        """Act, or check that a refusal left every table as it was."""
        before = self.world.everything()
        self.refusal = None
        try:
            return act()
        except Refusal as refusal:
            assert self.world.everything() == before
            self.refusal = refusal if isinstance(refusal, NotEnough) else None
            return None

    @invariant()
    def all_is_well(self) -> None:
        if hasattr(self, "world"):
            self.world.judge()

    def rest(self) -> None:
        """After all agents answered, each lease has the status of its window."""
        world = self.world
        for name in list(world.closed):
            world.switch(name)
        world.movers.now = world.latest
        world.come_to_rest()
        world.judge()
        for each in world.present():
            now = world.operator.now
            expected = LeaseStatus.PENDING
            if each.start_at <= now:
                expected = LeaseStatus.ACTIVE if now < each.end_at else LeaseStatus.ENDED
            assert each.status == expected
        world.movers.now += timedelta(days=2)
        world.movers.wait(1)
        world.come_to_rest()
        assert {each.status for each in world.present()} <= {LeaseStatus.ENDED}
        world.judge()


def was_healed(lease: Lease) -> bool:
    """Return whether a lease has lost or replaced hosts. It may have leftover rows then."""
    return lease.is_degraded or any(each.is_missing for each in lease.reservations)


def size_of(is_whole: bool, least: int, more: int) -> Mapping[str, Any]:
    """Return a change of a reservation's size."""
    return {"min": least, "max": least + more} if is_whole else {"amount": least}


TestLeasing = Leasing.TestCase
TestLeasing.settings = settings(
    max_examples=10, stateful_step_count=15, deadline=None, suppress_health_check=list(HealthCheck)
)
