"""Which hosts are free in a window, and which of them a lease gets."""

from __future__ import annotations

from collections.abc import Sequence

from innkeeper.domain.hosts import Dedication
from innkeeper.domain.ids import ProviderUuid
from innkeeper.domain.leases import AvailableHost, HostReservationRequest
from innkeeper.systems.leases import calendar


def candidate(row: int, dedication: str = Dedication.FREEPOOL) -> AvailableHost:
    return AvailableHost(row, ProviderUuid(f"provider-{row}"), dedication)


SIX = [*map(candidate, range(5)), candidate(5, Dedication.LEASED)]
"""The last one still has another reservation."""


def dealt(
    held: set[int], *wanted: tuple[int, int], seed: int = 1, of: Sequence[AvailableHost] = SIX
) -> list[set[int]] | None:
    """The rows that each request with these minimums and maximums gets."""
    requests = [
        HostReservationRequest(f"wish-{number}", *each) for number, each in enumerate(wanted)
    ]
    found = calendar.deal(of, held, requests, seed)
    if found is None:
        return None
    rows = [each.host_id for hosts in found for each in hosts]
    assert len(set(rows)) == len(rows)
    assert held.isdisjoint(rows)
    return [{each.host_id for each in hosts} for hosts in found]


def chosen(held: set[int], hosts_min: int, hosts_max: int, seed: int = 1) -> set[int] | None:
    found = dealt(held, (hosts_min, hosts_max), seed=seed)
    return None if found is None else found[0]


def counts(held: set[int], *wanted: tuple[int, int]) -> list[int] | None:
    found = dealt(held, *wanted)
    return None if found is None else [len(each) for each in found]


def test_up_to_the_maximum_of_hosts_is_chosen() -> None:
    assert chosen(set(), 1, 9) == {0, 1, 2, 3, 4, 5}
    assert counts(set(), (2, 3)) == [3]
    assert chosen({0, 1, 2, 3}, 1, 9) == {4, 5}


def test_too_few_hosts_give_no_result() -> None:
    assert chosen({0, 1, 2, 3}, 3, 9) is None
    assert chosen({0, 1, 2, 3, 4, 5}, 1, 1) is None
    assert counts({0, 1}, (2, 2), (3, 3)) is None


def test_unused_hosts_go_first() -> None:
    assert all(5 not in (chosen(set(), 5, 5, seed) or {5}) for seed in range(20))
    assert dealt({0, 1, 2, 3}, (1, 1), (1, 1)) == [{4}, {5}]


def test_the_seed_draws() -> None:
    assert chosen(set(), 2, 2, seed=7) == chosen(set(), 2, 2, seed=7)
    assert len({frozenset(chosen(set(), 2, 2, seed) or ()) for seed in range(50)}) == 10
    taken = [candidate(row, Dedication.LEASED) for row in range(5)]
    pairs = {
        frozenset((dealt(set(), (2, 2), seed=seed, of=taken) or [set()])[0]) for seed in range(50)
    }
    assert len(pairs) == 10


def test_all_minimums_come_before_any_extra_host() -> None:
    assert counts(set(), (1, 9), (1, 9), (1, 9)) == [4, 1, 1]
    assert counts(set(), (1, 2), (1, 9), (1, 9)) == [2, 3, 1]
    assert counts({0, 1, 2}, (1, 9), (2, 9)) == [1, 2]
