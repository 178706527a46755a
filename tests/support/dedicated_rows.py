"""Rows of pclouds and leases with the columns that lookups by name need."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from innkeeper.store.tables.compute import aggregates
from innkeeper.store.tables.leases import leases, reservations
from innkeeper.store.tables.pclouds import pcloud_projects, pclouds
from innkeeper.store.transactions import Tx
from tests.support.server_rows import NOON, uuid

LATER, EARLIER = NOON + timedelta(hours=1), NOON - timedelta(hours=1)


def add_pcloud(tx: Tx, number: int, name: str, owner: str, *users: str) -> None:
    """Write a pcloud whose id is :func:`uuid` of the number."""
    moments: dict[str, Any] = {"created_at": NOON, "updated_at": NOON}
    about = {"id": number, "uuid": uuid(100 + number), "name": f"Pcloud:{number}"}
    tx.execute(aggregates.insert(), {**about, "metadata": {}, **moments})
    own = {"id": number, "uuid": uuid(number), "aggregate_id": number, "name": name}
    facts = {**own, "project_id": owner, "is_automatic": False}
    tx.execute(pclouds.insert(), {**facts, **moments})
    for each in users:
        tx.execute(pcloud_projects.insert(), {"pcloud_id": number, "project_id": each})


def add_lease(
    tx: Tx,
    number: int,
    name: str,
    *uuids: str,
    owner: str = "red",
    end_at: datetime = LATER,
    ended_at: datetime | None = None,
    is_deleted: bool = False,
) -> None:
    """Write a lease with reservations of these ids."""
    facts: dict[str, Any] = {
        "id": number,
        "uuid": uuid(200 + number),
        "name": name,
        "project_id": owner,
        "user_id": "ann",
        "start_at": EARLIER,
        "end_at": end_at,
        "ended_at": ended_at,
        "is_deleted": is_deleted,
        "created_at": EARLIER,
        "updated_at": EARLIER,
    }
    tx.execute(leases.insert(), facts)
    for each in uuids:
        row = {"uuid": each, "lease_id": number, "hosts_min": 1, "hosts_max": 1}
        tx.execute(reservations.insert(), row)
