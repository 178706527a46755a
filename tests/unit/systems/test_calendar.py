"""Which hosts are free in a window, and which of them a lease is given."""

from __future__ import annotations

from innkeeper.domain.hosts import Dedication
from innkeeper.domain.ids import ProviderUuid
from innkeeper.domain.leases import Lendable
from innkeeper.systems.leases import calendar


def candidate(row: int, dedication: str = Dedication.FREEPOOL) -> Lendable:
    return Lendable(row, ProviderUuid(f"provider-{row}"), dedication)


def chosen(held: set[int], hosts_min: int, hosts_max: int, seed: int = 1) -> set[int]:
    """The rows that are chosen of six, of which the last one is still another lease's."""
    there = [*map(candidate, range(5)), candidate(5, Dedication.LEASED)]
    found = calendar.choose(there, held, hosts_min=hosts_min, hosts_max=hosts_max, seed=seed)
    assert len({each.host_id for each in found}) == len(found)
    return {each.host_id for each in found}


def test_as_many_as_can_be_had_are_chosen_and_no_more_than_wanted() -> None:
    assert chosen(set(), 1, 9) == {0, 1, 2, 3, 4, 5}
    assert len(chosen(set(), 2, 3)) == 3
    assert chosen({0, 1, 2, 3}, 1, 9) == {4, 5}


def test_too_few_are_none() -> None:
    assert chosen({0, 1, 2, 3}, 3, 9) == set()
    assert chosen({0, 1, 2, 3, 4, 5}, 1, 1) == set()


def test_what_nobody_has_goes_first() -> None:
    assert all(5 not in chosen(set(), 5, 5, seed) for seed in range(20))


def test_the_seed_draws() -> None:
    assert chosen(set(), 2, 2, seed=7) == chosen(set(), 2, 2, seed=7)
    assert len({frozenset(chosen(set(), 2, 2, seed)) for seed in range(50)}) == 10


def test_what_is_spare_is_left_when_each_has_the_least() -> None:
    there = [*map(candidate, range(5))]
    assert calendar.spare(there, set(), [1, 2]) == 2
    assert calendar.spare(there, {0, 1}, [1, 2]) == 0
    assert calendar.spare(there, {0, 1}, [2, 2]) == -1
