"""Plants defects of servers in child zones, in addition to those of the other rooms."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from innkeeper.domain.ids import ServerId
from innkeeper.domain.zone_tree import ChildState, ChildZone, ZoneServer, ZoneServerState
from innkeeper.store.queries.compute import quota_usages
from innkeeper.store.queries.zones import children, remote
from innkeeper.store.tables.ordering import periodic_tasks
from innkeeper.store.transactions import Tx
from innkeeper.systems.zones.audit import REPAIR_TASK
from tests.support.clouds import NOW

CHILD = "c0000000-0000-4000-8000-000000000001"
BELOW = "c0000000-0000-4000-8000-000000000002"
PROJECT = "project"
Plant = Callable[[Tx, Any], object]


def add_child(tx: Tx, uuid: str = CHILD, name: str = "kid") -> ChildZone:
    """Add a child zone that was just polled."""
    url, state = "http://kid.example/v2.1", ChildState(is_active=True, last_seen_at=NOW)
    children.add(tx, ChildZone(0, uuid, name, url, "up", 0.0, 1.0, True, False, NOW, NOW, state))
    found = children.by_uuid(tx, uuid)
    assert found is not None
    return found


def server_below(child: ChildZone, uuid: str = BELOW, **more: Any) -> ZoneServer:
    """Return a server in a child zone, with these fields."""
    usual = {
        "batch_id": "r-1",
        "project_id": PROJECT,
        "user_id": "user",
        "vcpus": 2,
        "memory_mb": 512,
        "state": ZoneServerState.BUILT,
        "batch_min": 0,
        "created_at": NOW,
        "updated_at": NOW,
    }
    return ZoneServer(ServerId(uuid), child.id, **{**usual, **more})


def add_server(tx: Tx, server: ZoneServer) -> None:
    """Add a server in a child zone, and count it in its project's quota usage."""
    remote.add(tx, [server])
    quota_usages.add_usage(tx, server.project_id, 1, server.vcpus, server.memory_mb)


def _twice(tx: Tx, it: Any) -> None:
    add_server(tx, server_below(add_child(tx), it.first))


def _undecided(tx: Tx, _: Any) -> None:
    add_server(tx, server_below(add_child(tx), state=ZoneServerState.UNDOING))
    late = NOW + timedelta(hours=2)
    tx.execute(periodic_tasks.insert().values(name=REPAIR_TASK, last_at=late))


PLANTS: Mapping[str, Plant] = {"in-two-zones": _twice, "undecided-below": _undecided}
