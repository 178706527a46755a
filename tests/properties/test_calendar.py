"""The calendar against a timeline in plain Python, minute by minute.

A single demand is met exactly if that is possible, and so are several demands of whole hosts. In no
minute is a host overbooked. The calendar's other answers about time equal those of the plain
timeline.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from innkeeper.domain.leases import Demand
from innkeeper.scheduling.leases.availability import earliest, free_units, latest_end
from innkeeper.scheduling.leases.choosing import ChosenUnits, Constraints, choose
from innkeeper.scheduling.leases.lacks import Lack
from innkeeper.scheduling.leases.stepping import Starts
from innkeeper.scheduling.leases.timeline import use
from tests.support.minutes import MINUTE, Minutes, Pairs, PlainHold, PlainHost, at, joined

DAY = 10
"""Minutes in the days of this test."""
CLASSES = ("VCPU", "MEMORY_MB")
AFFINITIES = (None, None, True, False)
REQUIREMENTS = ((), (), (), ('["=", "$kind", "a"]',), ('["==", "$kind", "b"]',))
OWN = 9
"""The reservation of the lease that changes."""
TURNS = 20
"""Worlds per generated seed: to generate a seed takes longer than to test a world."""

Window = tuple[int, int]
on_seeds = given(st.integers(0, 2**32))
quick = settings(max_examples=20, deadline=None)


class Dice(random.Random):
    """Worlds, windows and demands from one seed."""

    def window(self) -> Window:
        start = self.randrange(DAY)
        return start, self.randint(start + 1, DAY)

    def amounts(self) -> dict[str, int]:
        names = self.sample(CLASSES, self.randint(1, 2))
        return {name: self.randint(1, 4) for name in names}

    def host(self) -> PlainHost:
        has = {name: self.randint(2, 8) for name in self.choice((CLASSES, CLASSES, CLASSES[:1]))}
        leaves = self.randint(1, DAY) if self.random() < 0.2 else None
        return PlainHost(has, self.choice("ab"), leaves, self.random() < 0.85)

    def world(self) -> Minutes:
        hosts = [self.host() for _ in range(self.randint(1, 5))]
        holds = [
            held(
                self.randrange(len(hosts)),
                self.window(),
                self.randint(1, 2),
                None if self.random() < 0.25 else self.amounts(),
                self.randint(1, 3),
            )
            for _ in range(self.randint(0, 2 * len(hosts)))
        ]
        return Minutes(hosts, holds, frozenset({1} if self.random() < 0.3 else ()))

    def whole(self) -> Demand:
        least = self.randint(1, 2)
        more = self.randint(0, 2)
        return Demand(least, least + more, requirements=self.choice(REQUIREMENTS))

    def demand(self) -> Demand:
        if self.random() < 0.3:
            return self.whole()
        least, more = self.randint(1, 5), self.randint(0, 3)
        affinity, required = self.choice(AFFINITIES), self.choice(REQUIREMENTS)
        return Demand(least, least + more, self.amounts(), affinity, required)

    def cleaning(self) -> int:
        return self.choice((0, 0, 1, 2))


def held(
    row: int, window: Window, units: int, unit_amounts: Mapping[str, int] | None, reservation: int
) -> PlainHold:
    return PlainHold(row, *window, units, unit_amounts, reservation)


def chosen(
    world: Minutes, wanted: Sequence[Demand], window: Window, seed: int, constraints: Constraints
) -> ChosenUnits | Lack:
    usable = world.usable()
    return choose(
        world.calendar(),
        wanted,
        at(window[0]),
        at(window[1]),
        usable=usable,
        preferred=usable,
        seed=seed,
        constraints=constraints,
    )


@quick
@on_seeds
def test_use_is_that_of_each_minute(seed: int) -> None:
    dice = Dice(seed)
    for _ in range(TURNS):
        world, window = dice.world(), dice.window()
        found = use(world.calendar(), at(window[0]), at(window[1]), ignored=world.ignored)
        for row in range(len(world.hosts)):
            others = [each for minute in range(*window) for each in world.others(row, minute)]
            assert found.is_whole[row] == any(each.amounts is None for each in others)
            assert found.is_shared[row] == any(each.amounts is not None for each in others)
            for name, peaks in found.peaks.items():
                assert peaks[row] == max(world.used(row, minute, name) for minute in range(*window))


@quick
@on_seeds
def test_a_single_demand_is_met_exactly_if_it_fits(seed: int) -> None:
    dice = Dice(seed)
    for _ in range(2 * TURNS):
        world, demand, window, cleaning = (
            dice.world(),
            dice.demand(),
            dice.window(),
            dice.cleaning(),
        )
        fits = world.fits(demand, *window, cleaning)
        constraints = Constraints(cleaning * MINUTE, world.ignored)
        found = chosen(world, [demand], window, seed, constraints)
        if isinstance(found, Lack):
            assert found.fits == fits < demand.units_min
            counted = found.unusable + found.unsuitable + found.too_small
            counted += found.held_whole + found.in_use + found.taken
            assert counted <= len(world.hosts)
        else:
            assert found.by_demand[0][:, 1].sum() == min(fits, demand.units_max)
            world.assert_fits([demand], found.by_demand, *window)


@quick
@on_seeds
def test_demands_of_whole_hosts_are_met_exactly_if_they_fit(seed: int) -> None:
    dice = Dice(seed)
    for _ in range(TURNS):
        world, window = dice.world(), dice.window()
        wanted = [dice.whole() for _ in range(dice.randint(2, 3))]
        # There are few holds. Otherwise hardly any host would be free.
        world = replace(world, holds=world.holds[:2])
        found = chosen(world, wanted, window, seed, Constraints(ignored=world.ignored))
        best = world.best_wholes(wanted, *window)
        if isinstance(found, Lack):
            assert best is None
            failed = wanted[found.demand]
            earlier = [replace(each, units_max=each.units_min) for each in wanted[: found.demand]]
            rest = world.best_wholes([*earlier, replace(failed, units_min=0)], *window)
            assert rest is not None
            assert rest[-1] == found.fits < failed.units_min
        else:
            assert [int(each[:, 1].sum()) for each in found.by_demand] == best
            world.assert_fits(wanted, found.by_demand, *window)


@quick
@on_seeds
def test_nothing_is_overbooked_by_demands_of_both_kinds(seed: int) -> None:
    dice = Dice(seed)
    for _ in range(TURNS):
        world, window = dice.world(), dice.window()
        wanted = [dice.demand() for _ in range(dice.randint(2, 4))]
        found = chosen(world, wanted, window, seed, Constraints(ignored=world.ignored))
        if isinstance(found, ChosenUnits):
            world.assert_fits(wanted, found.by_demand, *window)
            assert_nothing_is_left(world, wanted, found.by_demand, window)


def assert_nothing_is_left(
    world: Minutes, wanted: Sequence[Demand], made: Sequence[Pairs], window: Window
) -> None:
    """Assert that no demand could get more units, given what the other demands hold."""
    mine = [
        held(row, window, units, demand.unit_amounts, OWN)
        for demand, pairs in zip(wanted, made, strict=True)
        for row, units in pairs.tolist()
    ]
    world = replace(world, holds=[*world.holds, *mine])
    for demand, pairs in zip(wanted, made, strict=True):
        left = [world.units(row, demand, *window) for row in range(len(world.hosts))]
        rows = set(pairs[:, 0].tolist())
        if demand.affinity and not demand.is_whole:
            left = [left[row] for row in rows]
        elif demand.affinity is False:
            left = [each for row, each in enumerate(left) if row not in rows]
        assert pairs[:, 1].sum() == demand.units_max or not any(left)


@quick
@on_seeds
def test_a_change_keeps_what_it_must(seed: int) -> None:
    """A lease is made in a window, and then moved to another one."""
    dice = Dice(seed)
    for _ in range(TURNS):
        world, demand, first, second = dice.world(), dice.demand(), dice.window(), dice.window()
        made = chosen(world, [demand], first, seed, Constraints(ignored=world.ignored))
        if isinstance(made, Lack):
            continue
        kept = dict(made.by_demand[0].tolist())
        mine = [held(row, first, units, demand.unit_amounts, OWN) for row, units in kept.items()]
        others = [each for each in world.holds if each.reservation not in world.ignored]
        world = Minutes(world.hosts, [*others, *mine], frozenset({OWN}))
        room = [world.units(row, demand, *second) for row in range(len(world.hosts))]
        stays = all(units <= room[row] for row, units in kept.items())
        for must_keep in (False, True):
            constraints = Constraints(0, (OWN,), (kept,), (must_keep,))
            found = chosen(world, [demand], second, seed + 1, constraints)
            is_possible = stays if must_keep else joined(demand, room) >= demand.units_min
            assert isinstance(found, ChosenUnits) == is_possible
            if isinstance(found, ChosenUnits):
                world.assert_fits([demand], found.by_demand, *second)
                now = dict(found.by_demand[0].tolist())
                assert not stays or all(now.get(row, 0) >= each for row, each in kept.items())


@quick
@on_seeds
def test_free_units_are_those_of_each_minute(seed: int) -> None:
    dice = Dice(seed)
    for _ in range(TURNS):
        world, demand, window, cleaning = (
            dice.world(),
            dice.demand(),
            dice.window(),
            dice.cleaning(),
        )
        start, end = at(window[0]), at(window[1])
        found = free_units(
            world.calendar(), demand, start, end, world.usable(), cleaning * MINUTE, world.ignored
        )
        assert [each[0] for each in found] == [start, *(each[1] for each in found[:-1])]
        assert found[-1][1] == end
        assert all(one[2] != other[2] for one, other in itertools.pairwise(found))
        for minute in range(*window):
            fits = world.at_moment(demand, minute, cleaning)
            for moment in (at(minute), at(minute) + 1, at(minute + 1) - 1):
                assert [units for since, to, units in found if since <= moment < to] == [fits]


@quick
@on_seeds
def test_the_earliest_start_is_the_first_minute_that_fits(seed: int) -> None:
    dice = Dice(seed)
    for _ in range(TURNS):
        world, demand, window, cleaning = (
            dice.world(),
            dice.demand(),
            dice.window(),
            dice.cleaning(),
        )
        length = dice.randint(1, DAY // 2)
        found = earliest(
            world.calendar(),
            demand,
            Starts(at(window[0]), at(window[1]), length * MINUTE, cleaning * MINUTE),
            world.usable(),
            world.ignored,
        )
        possible = (
            at(start)
            for start in range(*window)
            if world.fits(demand, start, start + length, cleaning) >= demand.units_min
        )
        assert found == next(possible, None)


@quick
@on_seeds
def test_the_latest_end_is_the_last_minute_that_fits(seed: int) -> None:
    dice = Dice(seed)
    for _ in range(TURNS):
        world, window, cleaning = dice.world(), dice.window(), dice.cleaning()
        wanted = [dice.demand() for _ in range(dice.randint(1, 2))]
        made = chosen(world, wanted, window, seed, Constraints(ignored=world.ignored))
        if isinstance(made, Lack):
            continue
        own = list(zip(wanted, made.by_demand, strict=True))
        end, limit = window[1], 2 * DAY
        found = latest_end(
            world.calendar(), own, at(end), at(limit), cleaning * MINUTE, world.ignored
        )
        for _, pairs in own:
            leaving = [world.hosts[row].leaves for row in pairs[:, 0].tolist()]
            limit = min([limit, *(each for each in leaving if each is not None)])
        while end < limit and all(
            is_free(world, own, minute) for minute in range(window[1], end + 1 + cleaning)
        ):
            end += 1
        assert found == at(end)


def is_free(world: Minutes, own: Sequence[tuple[Demand, Pairs]], minute: int) -> bool:
    """Return whether all other leases leave room, in a minute, for what a lease holds."""
    mine: dict[tuple[int, str], int] = {}
    for demand, pairs in own:
        for row, units in pairs.tolist():
            others = list(world.others(row, minute))
            if any(demand.is_whole or each.amounts is None for each in others):
                return False
            for name, amount in (demand.unit_amounts or {}).items():
                mine[row, name] = mine.get((row, name), 0) + units * amount
    return all(
        world.used(row, minute, name) + amount <= world.hosts[row].capacities[name]
        for (row, name), amount in mine.items()
    )
