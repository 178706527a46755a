"""Queries of pclouds, on every database."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import alembic.command
import pytest
import sqlalchemy as sa

from innkeeper.domain.moves import Initiator
from innkeeper.domain.orders import OrderKind, OrderStatus
from innkeeper.domain.pclouds import SizePolicy
from innkeeper.domain.slices import Dedicating
from innkeeper.store import schema
from innkeeper.store.migrations import running
from innkeeper.store.queries.compute import agents, dedications, servers
from innkeeper.store.queries.pclouds import host_flavors as host_flavor_rows
from innkeeper.store.queries.pclouds import pclouds
from innkeeper.store.tables import compute
from innkeeper.store.tables import pclouds as pcloud_tables
from innkeeper.store.tables.compute import migrations, work_orders
from innkeeper.store.transactions import Store, Tx
from innkeeper.systems.compute.hosts import hosts
from innkeeper.systems.pclouds import host_flavors
from innkeeper.systems.pclouds import pclouds as pcloud_rules
from innkeeper.systems.pclouds.context import PcloudContext
from tests.support import server_rows
from tests.support.clouds import AGENT, DEFAULTS, Numbers, cloud_in, reported
from tests.support.stores import NOW

IDS = Numbers()
CONTEXT = PcloudContext(Dedicating(), 60.0, Initiator("req-1", "project", "user"), NOW)
FEW, MANY = 3, 60
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
    """Write an agent's order, and when it was last updated."""
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
    """Write a migration away from a host, and when it was last updated."""
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


def test_the_last_departure_from_a_host_is_the_latest_event(furnished: Store) -> None:
    with furnished.write() as tx:
        assert dedications.left_at(tx, ["a", "b"]) == {"a": NEVER, "b": NEVER}
        servers.insert_many(
            tx,
            [
                server_rows.row(number, host=host, deleted_at=gone_at)
                for number, (host, gone_at) in enumerate([("a", None), ("a", at(1)), ("b", at(1))])
            ],
        )
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


# -- absent policies ---------------------------------------------------------------------------


def sized(tx: Tx) -> list[str]:
    """The pclouds with a policy; the query reads no others."""
    there = pcloud_tables.pclouds.c.size.is_not(sa.null())
    read = list(tx.execute(sa.select(pcloud_tables.pclouds.c.uuid).where(there)).scalars())
    found = [each.uuid for each in pclouds.with_size(tx)]
    assert set(found) <= set(read)
    return read


def write_json_null(tx: Tx) -> None:
    """Write empty values as older releases did."""
    tx.execute(pcloud_tables.pclouds.update().values(size=sa.JSON.NULL))
    tx.execute(compute.hosts.update().values(kept_ratios=sa.JSON.NULL))


def test_no_size_policy_is_null_in_the_database(furnished: Store) -> None:
    with furnished.write() as tx:
        made = [
            pcloud_rules.create(tx, IDS.uuid(), "project", {"name": n}, CONTEXT) for n in ("p", "q")
        ]
        assert sized(tx) == []
        size = SizePolicy(0, 1, "gold")
        pclouds.change(tx, made[0].id, {"size": size}, NOW)
        assert sized(tx) == [made[0].uuid]
        assert [each.size for each in pclouds.with_size(tx)] == [size]
        pclouds.change(tx, made[0].id, {"size": None}, NOW)
        assert sized(tx) == []


def test_a_json_null_of_an_older_release_is_no_policy(furnished: Store) -> None:
    with furnished.write() as tx:
        made = pcloud_rules.create(tx, IDS.uuid(), "project", {"name": "p"}, CONTEXT)
        write_json_null(tx)
        assert sized(tx) == [made.uuid]
        assert pclouds.with_size(tx) == []
        found = pclouds.by_uuid(tx, made.uuid)
        assert found is not None and found.size is None
        assert hosts.by_name(tx, "a").kept_ratios is None


def test_a_migration_replaces_json_null(furnished: Store) -> None:
    size = SizePolicy(0, 1, "gold")
    with furnished.write() as tx:
        kept = pcloud_rules.create(tx, IDS.uuid(), "project", {"name": "p", "size": None}, CONTEXT)
        alembic.command.downgrade(running.config(tx), "0011")
        write_json_null(tx)
        pcloud_rules.create(tx, IDS.uuid(), "project", {"name": "q"}, CONTEXT)
        pclouds.change(tx, kept.id, {"size": size}, NOW)
        pcloud_rules.create(tx, IDS.uuid(), "project", {"name": "r"}, CONTEXT)
        tx.execute(
            pcloud_tables.pclouds.update()
            .where(pcloud_tables.pclouds.c.name == "r")
            .values(size=sa.JSON.NULL)
        )
    assert schema.upgrade(furnished, NOW)
    with furnished.read() as tx:
        assert sized(tx) == [kept.uuid]
        assert [each.size for each in pclouds.with_size(tx)] == [size]
        written = sa.select(compute.hosts.c.id).where(compute.hosts.c.kept_ratios.is_not(None))
        assert tx.execute(written).all() == []
        (index,) = sa.inspect(tx).get_indexes("pool_hosts")
        assert index["column_names"] == ["host_flavor_id", "host_id"]


# -- pools -------------------------------------------------------------------------------------


def fill_pool(tx: Tx, name: str, host_ids: Iterable[int]) -> int:
    """A pool with hosts; return its flavor's row."""
    flavor = host_flavors.create(tx, IDS.uuid(), name, "", 1, NOW)
    for host_id in host_ids:
        host_flavor_rows.add_host(tx, flavor.id, host_id, NOW)
    return flavor.id


def test_row_bounds_are_those_of_one_pool(furnished: Store) -> None:
    with furnished.write() as tx:
        a, b, c = (hosts.by_name(tx, name).id for name in "abc")
        wide, narrow, empty = (
            fill_pool(tx, name, ids) for name, ids in (("w", [a, c]), ("n", [b]), ("e", []))
        )
        found = [host_flavor_rows.bounds(tx, each) for each in (wide, narrow, empty)]
        assert found == [(a, c), (b, b), None]


def test_row_bounds_of_a_large_pool_take_no_more_steps(tmp_path: Path) -> None:
    cloud = cloud_in(tmp_path, *(reported(f"m{number:03}") for number in range(FEW + MANY)))
    with cloud.store.write() as tx:
        ids = list(tx.execute(sa.select(compute.hosts.c.id)).scalars())
        made = [fill_pool(tx, "few", ids[:FEW]), fill_pool(tx, "many", ids[FEW:])]
        few, many = (steps_of(tx, partial(host_flavor_rows.bounds, tx, each)) for each in made)
    cloud.close()
    assert many == few


def steps_of(tx: Tx, work: Callable[[], object]) -> int:
    """How many steps SQLite takes for this."""
    raw: Any = tx.connection.driver_connection
    steps = 0

    def count() -> None:
        nonlocal steps
        steps += 1

    raw.set_progress_handler(count, 1)
    work()
    raw.set_progress_handler(None, 0)
    return steps
