"""Old rows are deleted in batches, so that no other writer waits long for a transaction."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from innkeeper.domain.ids import ProviderId
from innkeeper.domain.orders import OrderStatus
from innkeeper.domain.zone_tree import PREFIX_END
from innkeeper.store import changes
from innkeeper.store.pruning import ROWS_MAX
from innkeeper.store.queries.compute import orders, server_groups
from innkeeper.store.queries.identity import agent_credentials, identity, login_failures
from innkeeper.store.queries.pclouds import actions, pclouds
from innkeeper.store.queries.pods import measurements
from innkeeper.store.queries.zones import parents, remote
from innkeeper.store.tables.metadata import METADATA
from innkeeper.store.transactions import Store, Tx
from tests.support.foreign_keys import loosen, tighten
from tests.support.stores import NOW

LATER = NOW + timedelta(hours=1)
COUNT = ROWS_MAX + 3
PRUNES: dict[str, Callable[[Tx, datetime], int]] = {
    "agent_credentials": agent_credentials.prune,
    "hop_ids": parents.prune,
    "login_failures": login_failures.prune,
    "pcloud_actions": actions.prune,
    "pcloud_tokens": pclouds.forget_before,
    "pod_measurements": measurements.prune,
    "revoked_tokens": identity.prune_revoked_tokens,
    "server_groups": server_groups.prune_of_parents,
    "used_entries": remote.prune_entries,
    "work_orders": orders.prune,
}
"""The functions that delete old rows, by the name of the table."""
DUE: dict[str, dict[str, Any]] = {
    "server_groups": {"project_id": f"parent{PREFIX_END}project"},
    "work_orders": {"status": OrderStatus.DONE},
}
"""The values that a row needs, besides its time, to be old."""


def row(table: sa.Table, number: int) -> dict[str, Any]:
    """Return a row with any values, of an old time."""
    found: dict[str, Any] = {}
    for column in table.columns:
        kind = column.type.python_type
        if kind is datetime:
            found[column.name] = NOW
        elif column.nullable or column.server_default is not None:
            continue
        elif kind is str:
            found[column.name] = f"{number:016}"
        else:
            found[column.name] = number + 1 if kind is int else {}
    return {**found, **DUE.get(table.name, {})}


@pytest.mark.parametrize("name", sorted(PRUNES))
def test_one_call_deletes_a_bounded_number(store: Store, name: str) -> None:
    table, prune = METADATA.tables[name], PRUNES[name]
    with store.write() as tx:
        loosen(tx)
        tx.execute(table.insert(), [row(table, number) for number in range(COUNT)])
        assert prune(tx, NOW) in (0, ROWS_MAX), "some are due at their time, and some only later"
        deleted = [prune(tx, LATER) for _ in range(3)]
        assert sorted(deleted, reverse=True) == deleted
        assert max(deleted) <= ROWS_MAX
        assert deleted[-1] == 0
        assert tx.execute(sa.select(sa.func.count()).select_from(table)).scalar() == 0
        tighten(tx)


def test_one_call_deletes_a_bounded_range_of_the_feed(store: Store) -> None:
    with store.write() as tx:
        changes.add_always_read(tx, [ProviderId(1)] * (changes.PRUNED_MAX + 3), NOW)
    with store.write() as tx:
        deleted = [changes.prune(tx, LATER, 0) for _ in range(3)]
    assert deleted == [changes.PRUNED_MAX + 1, 1, 0]
