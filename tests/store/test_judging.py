"""The checks of a measured run give the same result on every database."""

from __future__ import annotations

import uuid

import pytest
import sqlalchemy as sa

from benchmarks import fleet, judging
from benchmarks.fleet import Fleet
from innkeeper.store.tables import placement
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
    """The problems that are found if these were acknowledged."""
    return list(judging.problems(store, {judging.SERVERS: [], judging.CONSUMERS: claims}))


def test_acknowledged_and_present_is_no_problem(filled: Store) -> None:
    assert found(filled, CLAIM) == []


def test_what_is_there_and_was_not_acknowledged_is_found(filled: Store) -> None:
    assert found(filled) == ["1 consumers exist without an acknowledgement."]


def test_acknowledged_and_missing_is_found(filled: Store) -> None:
    lost = str(uuid.UUID(int=2, version=4))
    assert found(filled, CLAIM, lost) == [f"The consumer {lost} was acknowledged, and holds None."]


def test_a_partial_claim_is_found(filled: Store) -> None:
    with filled.write() as tx:
        mine = placement.allocations.c.consumer_id == CLAIM
        first = tx.execute(sa.select(sa.func.min(placement.allocations.c.id)).where(mine))
        gone = placement.allocations.c.id == first.scalar_one()
        tx.execute(placement.allocations.delete().where(gone))
    assert found(filled, CLAIM) == [f"The consumer {CLAIM} was acknowledged, and holds (2, 1)."]


def test_an_overcommitted_provider_is_found(filled: Store) -> None:
    with filled.write() as tx:
        mine = placement.allocations.c.consumer_id == CLAIM
        tx.execute(placement.allocations.update().where(mine).values(used=10_000_000))
    problems = found(filled, CLAIM)
    assert len(problems) == 3
    assert all(each.startswith("host-000000 has sold ") for each in problems)
