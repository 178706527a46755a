"""What pclouds' queries say, on every database."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from innkeeper.domain.compute import OrderKind, OrderStatus
from innkeeper.store.queries import agents, dedications, servers
from innkeeper.store.tables.compute import migrations, work_orders
from innkeeper.store.transactions import Store, Tx
from innkeeper.systems.compute import hosts
from tests.store.conftest import NOW
from tests.support import server_rows
from tests.support.clouds import AGENT, DEFAULTS, Numbers, reported

IDS = Numbers()
NEVER = datetime.min  # noqa: DTZ901 - the store's moments are naive, in UTC


def at(minutes: float) -> datetime:
    return NOW + timedelta(minutes=minutes)


@pytest.fixture
def furnished(store: Store) -> Store:
    """Three hosts."""
    with store.write() as tx:
        agents.add(tx, AGENT)
        reports = [reported(each) for each in ("a", "b", "c")]
        hosts.report(tx, AGENT, reports, DEFAULTS, ids=IDS, now=NOW)
    return store


def end_order(tx: Tx, host: str, status: str, minutes: float) -> None:
    """Write an order that an agent had, and when something last happened to it."""
    order = {
        "agent_id": AGENT.id,
        "host": host,
        "server_uuid": IDS.uuid(),
        "kind": OrderKind.DESTROY,
        "body": {},
        "status": status,
        "created_at": NOW,
        "updated_at": at(minutes),
    }
    tx.execute(work_orders.insert(), order)


def move_away(tx: Tx, host: str, minutes: float) -> None:
    """Write a migration away from a host, and when something last happened to it."""
    move = {
        "uuid": IDS.uuid(),
        "server_uuid": IDS.uuid(),
        "kind": "migration",
        "status": "done",
        "source_host": host,
        "source_provider_id": 1,
        "old_flavor": {},
        "new_flavor": {},
        "old_state": {},
        "project_id": "project",
        "user_id": "user",
        "created_at": NOW,
        "updated_at": at(minutes),
    }
    tx.execute(migrations.insert(), move)


def test_when_the_last_server_left_is_what_happened_last(furnished: Store) -> None:
    with furnished.write() as tx:
        assert dedications.left_at(tx, ["a", "b"]) == {"a": NEVER, "b": NEVER}
        there = {"host": "a", "deleted_at": None}
        gone = [{"host": host, "deleted_at": at(1)} for host in ("a", "b")]
        servers.insert_many(tx, [server_rows.row(n, **e) for n, e in enumerate([there, *gone])])
        assert dedications.left_at(tx, ["a", "c"]) == {"a": at(1), "c": NEVER}
        move_away(tx, "a", 2)
        move_away(tx, "c", 3)
        assert dedications.left_at(tx, ["a", "c"]) == {"a": at(2), "c": at(3)}
        end_order(tx, "a", OrderStatus.DONE, 4)
        end_order(tx, "a", OrderStatus.WAITING, 9)
        end_order(tx, "b", OrderStatus.FAILED, 5)
        left = {"a": at(4), "b": at(5), "c": at(3)}
        assert dedications.left_at(tx, ["a", "b", "c"]) == left
        assert dedications.left_at(tx, []) == {}
