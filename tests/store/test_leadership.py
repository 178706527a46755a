"""The leader's row on every backend: only one process begins a term, and only its holder renews."""

from __future__ import annotations

from collections.abc import Callable

from innkeeper.store import leadership
from innkeeper.store.leadership import Leader
from innkeeper.store.transactions import Store


def took(store: Store, seen: Leader | None, holder: str) -> Leader | None:
    with store.write() as tx:
        return leadership.take_over(tx, seen, holder, f"address of {holder}")


def renewed(store: Store, mine: Leader) -> Leader | None:
    with store.write() as tx:
        return leadership.renew(tx, mine)


def now(store: Store) -> Leader | None:
    with store.read() as tx:
        return leadership.current(tx)


def test_a_term_has_one_leader(opened: Callable[[], Store]) -> None:
    one, other = opened(), opened()
    assert now(one) is None
    first = took(one, None, "one")
    assert first == now(other) == Leader(1, 0, "one", "address of one")
    # Both processes had found no leader.
    assert took(other, None, "other") is None
    beaten = renewed(one, first)
    assert beaten == now(other) == Leader(1, 1, "one", "address of one")
    # The other process took the leader for dead, but the leader then renewed its term.
    assert took(other, first, "other") is None
    second = took(other, beaten, "other")
    assert second == now(one) == Leader(2, 0, "other", "address of other")
    assert renewed(one, beaten) is None
    assert now(one) == second


def test_a_leader_resigns_only_from_its_own_term(opened: Callable[[], Store]) -> None:
    one, other = opened(), opened()
    first = took(one, None, "one")
    assert first is not None
    with one.write() as tx:
        leadership.resign(tx, first)
    resigned = now(other)
    assert resigned is not None
    assert resigned.has_resigned
    second = took(other, resigned, "other")
    with one.write() as tx:
        leadership.resign(tx, first)
    assert now(one) == second
    assert second is not None
    assert not second.has_resigned
