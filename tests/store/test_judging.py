"""The checks of a measured run give the same result on every database."""

from __future__ import annotations

import itertools
import uuid

import pytest
import sqlalchemy as sa

from benchmarks import fleet, judging, leased_fleet
from benchmarks.fleet import Fleet
from benchmarks.leased_fleet import Leased
from innkeeper.store.tables import leases, placement
from innkeeper.store.transactions import Store
from tests.support.stores import NOW

CLAIM = str(uuid.UUID(int=1, version=4))


@pytest.fixture
def filled(store: Store) -> Store:
    """Two hosts with allocations, and one claim."""
    fleet.fill(store, Fleet(2, allocations=6), NOW)
    held = {"resource_provider_id": 1, "consumer_id": CLAIM, "used": 1, "created_at": NOW}
    with store.write() as tx:
        classes = tx.execute(sa.select(placement.inventories.c.resource_class_id).distinct())
        rows = [{**held, "resource_class_id": each} for each in classes.scalars()]
        owned = {"project_id": "p", "user_id": "u", "generation": 1, "consumer_type": "INSTANCE"}
        owned |= {"uuid": CLAIM, "created_at": NOW, "updated_at": NOW}
        tx.execute(placement.consumers.insert(), owned)
        tx.execute(placement.allocations.insert(), rows)
    return store


def found(store: Store, *claims: str) -> list[str]:
    """Return the problems that are found if these claims were acknowledged."""
    return list(judging.problems(store, {judging.SERVERS: [], judging.CONSUMERS: claims}))


def test_acknowledged_and_present_is_no_problem(filled: Store) -> None:
    assert found(filled, CLAIM) == []


def test_what_is_there_and_was_not_acknowledged_is_found(filled: Store) -> None:
    assert found(filled) == ["1 consumers exist without an acknowledgement."]


def test_acknowledged_and_missing_is_found(filled: Store) -> None:
    lost = str(uuid.UUID(int=2, version=4))
    assert found(filled, CLAIM, lost) == [
        f"The consumer {lost} was acknowledged, but its row is None."
    ]


def test_a_partial_claim_is_found(filled: Store) -> None:
    with filled.write() as tx:
        mine = placement.allocations.c.consumer_id == CLAIM
        first = tx.execute(sa.select(sa.func.min(placement.allocations.c.id)).where(mine))
        gone = placement.allocations.c.id == first.scalar_one()
        tx.execute(placement.allocations.delete().where(gone))
    assert found(filled, CLAIM) == [
        f"The consumer {CLAIM} was acknowledged, but its row is (2, 1)."
    ]


def test_an_overcommitted_provider_is_found(filled: Store) -> None:
    with filled.write() as tx:
        mine = placement.allocations.c.consumer_id == CLAIM
        tx.execute(placement.allocations.update().where(mine).values(used=10_000_000))
    problems = found(filled, CLAIM)
    assert len(problems) == 3
    assert all(each.startswith("Host host-000000 has allocations of ") for each in problems)


def test_leases_are_judged_by_what_they_hold(store: Store) -> None:
    size = Leased(hosts=16, leases=12, rush=2)
    fleet.fill(store, Fleet(18, allocations=0), NOW)
    leased_fleet.fill(store, size, "mine", NOW)
    assert list(judging.problems(store, {judging.LEASES: []})) == []
    assert leased_fleet.starts_in(store, leased_fleet.rush_at(NOW)) == {"waiting": 2}
    lost = str(uuid.UUID(int=2, version=4))
    assert list(judging.problems(store, {judging.LEASES: [lost]})) == [
        f"The lease {lost} was acknowledged, but its row is None."
    ]
    with store.write() as tx:
        tx.execute(leases.leases.update().values(user_id="me"))
        uuids = list(tx.execute(sa.select(leases.leases.c.uuid)).scalars())
    assert list(judging.problems(store, {judging.LEASES: uuids})) == []
    with store.write() as tx:
        tx.execute(leases.holds.delete().where(leases.holds.c.reservation_id == 1))
    assert len(list(judging.problems(store, {judging.LEASES: uuids}))) == 1


def test_leases_of_a_fleet_hold_no_host_twice() -> None:
    made = list(leased_fleet.planned(Leased(hosts=16, leases=60, rush=4), NOW))
    starts = [each.start for each in made[:4]]
    assert starts == [leased_fleet.rush_at(NOW)] * 4
    for one, other in itertools.combinations((each for each in made if each.is_whole), 2):
        is_apart = one.end <= other.start or other.end <= one.start
        assert is_apart or not set(one.hosts) & set(other.hosts)
