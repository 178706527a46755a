"""Whole hosts for several demands, compared with a plain search for augmenting paths."""

from __future__ import annotations

import random

import numpy as np
import numpy.typing as npt

from innkeeper.scheduling.dice import ranks
from innkeeper.scheduling.leases.flows import NO_DEMAND, Flow, Hosts


def hosts_of(
    suits: npt.ArrayLike, tiers: list[int] | None = None, kept_by: list[int] | None = None
) -> Hosts:
    mask = np.array(suits, dtype=np.bool_)
    count = mask.shape[1]
    return Hosts(
        mask,
        np.array(kept_by or [NO_DEMAND] * count),
        np.array(tiers or [0] * count),
        ranks(1, count),
    )


def matched(suits: npt.NDArray[np.bool_], wanted: list[int]) -> int:
    """Return how many hosts can serve that many units of each demand, unit by unit."""
    units = [demand for demand, count in enumerate(wanted) for _ in range(count)]
    owner: dict[int, int] = {}

    def serve(unit: int, seen: set[int]) -> bool:
        for host in np.flatnonzero(suits[units[unit]]).tolist():
            if host not in seen:
                seen.add(host)
                if host not in owner or serve(owner[host], seen):
                    owner[host] = unit
                    return True
        return False

    return sum(serve(unit, set()) for unit in range(len(units)))


def test_demands_get_as_many_hosts_as_any_distribution_allows() -> None:
    dice = random.Random(7)  # noqa: S311 - no secret
    for _ in range(400):
        demands, count = dice.randint(1, 5), dice.randint(1, 10)
        chance = dice.choice((0.2, 0.4, 0.7))
        suits = np.array([[dice.random() < chance for _ in range(count)] for _ in range(demands)])
        kept_by = [dice.choice((NO_DEMAND, *range(demands))) for _ in range(count)]
        kept_by = [by if suits[by, host] else NO_DEMAND for host, by in enumerate(kept_by)]
        flow = Flow(hosts_of(suits, [dice.randint(0, 1) for _ in range(count)], kept_by))
        wanted: list[int] = []
        for demand in range(demands):
            amount = dice.randint(0, 4)
            got = flow.raise_to(demand, amount)
            assert got == matched(suits, [*wanted, amount]) - sum(wanted)
            wanted.append(got)
        given = flow.hosts()
        assert [int((given == demand).sum()) for demand in range(demands)] == wanted
        assert all(suits[demand, host] for host, demand in enumerate(given) if demand >= 0)


def test_as_many_hosts_of_the_first_tier_as_possible_are_taken() -> None:
    dice = random.Random(8)  # noqa: S311 - no secret
    for _ in range(200):
        demands, count = dice.randint(1, 3), dice.randint(2, 6)
        suits = np.array([[dice.random() < 0.6 for _ in range(count)] for _ in range(demands)])
        tiers = np.array([dice.randint(0, 1) for _ in range(count)])
        flow = Flow(hosts_of(suits, tiers.tolist()))
        wanted = [flow.raise_to(demand, dice.randint(1, 2)) for demand in range(demands)]
        taken = int(((flow.hosts() != NO_DEMAND) & (tiers == 0)).sum())
        assert taken == matched(suits & (tiers == 0), wanted)


def test_hosts_that_suit_fewer_demands_are_taken_first() -> None:
    flow = Flow(hosts_of([[True, True, True], [True, True, False]]))
    flow.raise_to(0, 1)
    assert flow.hosts().tolist() == [NO_DEMAND, NO_DEMAND, 0]


def test_demands_keep_what_they_have() -> None:
    flow = Flow(hosts_of([[True] * 4] * 2, [0, 0, 1, 1], [NO_DEMAND, 0, 1, 0]))
    flow.raise_to(0, 2)
    flow.raise_to(1, 2)
    assert flow.hosts().tolist() == [1, 0, 1, 0]


def test_a_demand_takes_what_another_one_keeps_only_if_it_must() -> None:
    flow = Flow(hosts_of([[True, True], [True, False]], None, [0, NO_DEMAND]))
    assert (flow.raise_to(0, 1), flow.hosts().tolist()) == (1, [0, NO_DEMAND])
    assert (flow.raise_to(1, 1), flow.hosts().tolist()) == (1, [1, 0])


def test_more_demands_than_bits_are_told_apart() -> None:
    count = 100
    flow = Flow(hosts_of(np.eye(count, dtype=np.bool_)))
    assert [flow.raise_to(each, 1) for each in range(count)] == [1] * count
    assert flow.hosts().tolist() == list(range(count))
