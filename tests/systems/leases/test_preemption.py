"""Preemptible servers use the freepool until a lease needs their host; a warning comes first."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from innkeeper.domain.compute import Booted, Status, Task
from innkeeper.domain.errors import Conflict
from innkeeper.domain.hosts import Dedication
from innkeeper.domain.ids import ServerId
from innkeeper.domain.leases import Demand, Lease, LeaseStatus, Window
from innkeeper.domain.preemption import EXTRA_SPEC, LEAD_S
from innkeeper.domain.slices import Leasing
from innkeeper.store.queries.compute import server_actions
from innkeeper.store.queries.leases import holds, notifications, preemptions
from innkeeper.store.tables import compute
from innkeeper.store.transactions import Tx
from innkeeper.systems.leases import draining, freepool
from innkeeper.systems.leases.freepool import HostChange
from innkeeper.systems.leases.preemption import METADATA
from tests.support.clouds import reported
from tests.support.lease_operator import LeaseOperator
from tests.support.moves import Movers

GRACE_S, HOUR_S = 120.0, 3600.0
REACH_S = GRACE_S + LEAD_S
SLOT = {"VCPU": 1, "MEMORY_MB": 1024, "DISK_GB": 10}
SETTINGS = Leasing(
    allow_preemptible_servers=True,
    preemption_grace_s=int(GRACE_S),
    lease_webhook_url="http://receiver",
)
CHEAP = "cheap"
WARNING, STOPPED = "server.preemption_warning", "server.preemption_warning.stop"
PREEMPTED = "server.preempted"


@pytest.fixture
def operator(tmp_path: Path) -> Iterator[LeaseOperator]:
    """Two hosts in the freepool, a1 and a2, and an ordinary host, b1."""
    made = LeaseOperator(Movers(tmp_path, *map(reported, ("a1", "a2", "b1")), leasing=SETTINGS))
    made.keep("a1", "a2")
    made.cloud.add_flavor(CHEAP, extra_specs={EXTRA_SPEC: "true"})
    yield made
    made.turn()
    assert made.broken() == []
    made.cloud.judge()
    made.movers.close()


def boot(operator: LeaseOperator, host: str | None = None) -> ServerId:
    """Create a running preemptible server."""
    return operator.movers.boot(host, flavor_id=CHEAP)


def fault_of(operator: LeaseOperator, **more: Any) -> str | None:
    """Boot another preemptible server. Return its fault, or ``None`` if it has a host."""
    request = operator.cloud.request(**{"now": operator.now, "flavor_id": CHEAP, **more})
    (booted,) = operator.cloud.boot(request)
    assert isinstance(booted, Booted)
    return booted.fault


def told(operator: LeaseOperator) -> list[str]:
    """The notifications about servers, oldest first."""
    rows = operator.cloud.read(lambda tx: notifications.due(tx, operator.now, 1000))
    return [each.event_type for each in rows if each.event_type.startswith("server.")]


def actions(operator: LeaseOperator, uuid: ServerId) -> list[str]:
    found = operator.cloud.read(lambda tx: server_actions.of_server(tx, uuid))
    return [each.action for each in found]


def both(operator: LeaseOperator, start: float) -> Lease:
    """A lease of both hosts, which starts so many seconds from now."""
    return operator.lease((2, 2), start=start, end=start + HOUR_S)


def test_they_use_the_freepool_only(operator: LeaseOperator) -> None:
    servers = [boot(operator) for _ in range(8)]
    assert {operator.movers.server(each).host for each in servers} == {"a1", "a2"}
    assert "No valid host" in str(fault_of(operator))
    assert "No valid host" in str(fault_of(operator, forced_host="b1"))
    assert operator.movers.server(operator.movers.boot(None)).host == "b1"


def test_without_the_setting_they_are_ordinary_servers(tmp_path: Path) -> None:
    made = LeaseOperator(Movers(tmp_path, *map(reported, ("a1", "b1"))))
    made.keep("a1")
    made.cloud.add_flavor(CHEAP, extra_specs={EXTRA_SPEC: "true"})
    assert made.movers.server(boot(made)).host == "b1"
    made.movers.close()


def test_what_a_request_names_comes_first(operator: LeaseOperator) -> None:
    lease = operator.lease((1, 1), end=HOUR_S)
    hints = {"reservation": lease.reservations[0].uuid}
    server = operator.movers.boot(None, flavor_id=CHEAP, hints=hints)
    assert {operator.movers.server(server).host} == operator.held(lease)


def test_they_are_warned_and_deleted_before_the_lease_starts(operator: LeaseOperator) -> None:
    lease = both(operator, 2 * HOUR_S)
    server = boot(operator, "a1")
    operator.wait(2 * HOUR_S - REACH_S - 1)
    assert told(operator) == []
    assert fault_of(operator) is None
    operator.movers.finish()
    operator.wait(1)
    assert told(operator) == [WARNING, WARNING]
    until = operator.now + timedelta(seconds=GRACE_S)
    shown = operator.movers.server(server)
    assert shown.metadata[METADATA] == until.isoformat(timespec="seconds")
    assert shown.status == Status.ACTIVE
    assert actions(operator, server)[-1] == "preemptionWarning"
    assert "No valid host" in str(fault_of(operator)), "a lease needs all hosts soon"
    operator.wait(GRACE_S - 1)
    assert operator.movers.waiting("destroy") == []
    assert len(told(operator)) == 2, "a warning comes once"
    operator.wait(1)
    assert operator.movers.server(server).task_state == Task.DELETING
    assert told(operator) == [WARNING, WARNING, PREEMPTED, PREEMPTED]
    assert operator.preempt() == 0
    operator.movers.finish()
    assert operator.movers.server(server).status == Status.DELETED
    operator.wait(LEAD_S)
    assert operator.status(lease) == LeaseStatus.ACTIVE
    assert operator.cloud.read(preemptions.warned) == {}


def test_the_payload_says_which_server_and_until_when(operator: LeaseOperator) -> None:
    server = boot(operator, "a1")
    both(operator, 0)
    operator.turn()
    rows = operator.cloud.read(lambda tx: notifications.due(tx, operator.now, 1000))
    (warning,) = (json.loads(each.payload) for each in rows if each.event_type == WARNING)
    assert warning["server"] == {
        "id": server,
        "name": "web",
        "project_id": "project",
        "user_id": "user",
        "host": "a1",
        "delete_at": "2026-01-01T00:02:00.000000",
    }


@pytest.mark.parametrize("demand", [Demand(2, 2), Demand(8, 8, SLOT)])
def test_a_lease_that_starts_now_waits_for_their_grace(
    operator: LeaseOperator, demand: Demand
) -> None:
    server = boot(operator, "a1")
    window = Window(operator.now, operator.now + timedelta(hours=1))
    lease = operator.make(window, [demand])
    operator.turn()
    assert operator.status(lease) == LeaseStatus.STARTING
    assert "No valid host" in str(fault_of(operator))
    operator.wait(GRACE_S - 1)
    assert operator.movers.server(server).task_state is None
    operator.wait(1)
    assert operator.movers.server(server).task_state == Task.DELETING
    assert operator.status(lease) == LeaseStatus.STARTING
    operator.movers.finish()
    operator.turn()
    assert operator.status(lease) == LeaseStatus.ACTIVE


def test_leases_prefer_hosts_without_them(operator: LeaseOperator) -> None:
    for name in ("a1", "a2"):
        server = boot(operator, name)
        lease = operator.lease((1, 1), end=HOUR_S)
        assert operator.status(lease) == LeaseStatus.ACTIVE
        assert operator.held(lease) == {"a1", "a2"} - {name}
        operator.delete(lease)
        operator.movers.delete(server)
        operator.movers.finish()
        operator.turn()


def test_slots_are_never_shared_with_them(operator: LeaseOperator) -> None:
    now = operator.now
    lease = operator.make(Window(now, now + timedelta(hours=1)), [Demand(8, 8, SLOT)])
    assert operator.status(lease) == LeaseStatus.ACTIVE
    assert "No valid host" in str(fault_of(operator))
    early = now - timedelta(days=1)
    assert "No valid host" in str(fault_of(operator, now=early)), "a request that waited for long"
    other = operator.cloud.beside()
    (booted,) = other.boot(other.request(flavor_id=CHEAP, now=early))
    assert isinstance(booted, Booted)
    assert "No valid host" in str(booted.fault)
    other.close()
    flavor = lease.reservations[0].uuid
    assert operator.movers.server(operator.movers.boot(None, flavor_id=flavor)).host is not None


def test_another_process_sees_a_lease_that_was_just_made(operator: LeaseOperator) -> None:
    other = operator.cloud.beside()
    both(operator, REACH_S)
    (booted,) = other.boot(other.request(flavor_id=CHEAP, now=operator.now))
    assert isinstance(booted, Booted)
    assert "No valid host" in str(booted.fault)
    other.close()


def test_a_lease_that_is_deleted_ends_the_warning(operator: LeaseOperator) -> None:
    server = boot(operator, "a1")
    lease = both(operator, REACH_S)
    operator.turn()
    assert METADATA in operator.movers.server(server).metadata
    operator.delete(lease)
    operator.turn()
    assert told(operator) == [WARNING, STOPPED]
    assert operator.movers.server(server).metadata == {}
    operator.wait(HOUR_S)
    assert operator.movers.server(server).status == Status.ACTIVE
    both(operator, 0)
    operator.turn()
    assert told(operator) == [WARNING, STOPPED, WARNING]
    operator.movers.delete(server)
    operator.movers.finish()
    operator.turn()
    assert told(operator)[2:] == [WARNING], "nothing is said of servers that are gone"


def test_a_host_that_leaves_the_freepool_is_needed_too(operator: LeaseOperator) -> None:
    server, host_id = boot(operator, "a1"), operator.cloud.host("a1").id
    leaves_at = operator.now + timedelta(seconds=REACH_S)
    wanted = HostChange({}, changes_leaving=True, leaves_at=leaves_at)
    operator.cloud.write(lambda tx: freepool.change(tx, host_id, wanted, operator.now))
    assert "No valid host" in str(fault_of(operator, forced_host="a1"))
    operator.turn()
    operator.wait(GRACE_S)
    assert operator.movers.server(server).task_state == Task.DELETING
    operator.movers.finish()
    operator.wait(LEAD_S)
    assert operator.cloud.write(lambda tx: draining.let_leave(tx, operator.now)) == 1
    assert operator.said("a1") == [(None, None)]


def test_a_host_with_them_is_not_removed(operator: LeaseOperator) -> None:
    server = boot(operator, "a1")
    with pytest.raises(Conflict, match="found for host a1"):
        operator.let_go("a1")
    operator.movers.delete(server)
    operator.movers.finish()
    operator.let_go("a1")
    assert operator.said("a1") == [(None, None)]


def test_moves_keep_them_in_the_freepool(operator: LeaseOperator) -> None:
    server = boot(operator, "a1")
    assert operator.movers.migrate(server).fault is None
    operator.movers.finish()
    assert operator.movers.server(server).host == "a2"
    assert operator.movers.server(server).status == Status.VERIFY_RESIZE
    lease = operator.lease((1, 1), end=HOUR_S)
    assert operator.status(lease) == LeaseStatus.STARTING, "something is left on each host"
    operator.turn()
    operator.wait(GRACE_S)
    operator.movers.finish()
    operator.turn()
    operator.movers.finish()
    operator.turn()
    assert operator.status(lease) == LeaseStatus.ACTIVE


def test_a_resize_to_an_ordinary_flavor_leaves_the_freepool(operator: LeaseOperator) -> None:
    server = boot(operator, "a1")
    assert operator.movers.resize(server, "big").fault is None
    operator.movers.finish()
    assert operator.movers.server(server).host == "b1"
    lease = both(operator, HOUR_S)
    operator.wait(HOUR_S - LEAD_S)
    assert operator.movers.server(server).status == Status.ACTIVE, "the resize is confirmed"
    operator.movers.finish()
    operator.wait(LEAD_S)
    assert operator.status(lease) == LeaseStatus.ACTIVE
    assert operator.movers.server(server).host == "b1"
    assert told(operator) == []


def test_a_lease_waits_for_the_agent_of_a_host_that_is_down(operator: LeaseOperator) -> None:
    server = boot(operator, "a1")
    lease = both(operator, 0)
    operator.turn()
    operator.movers.wait(GRACE_S, silent="a")
    operator.turn()
    assert operator.movers.server(server).status == Status.DELETED
    assert operator.status(lease) == LeaseStatus.STARTING
    operator.movers.wait(1)
    operator.movers.finish()
    operator.turn()
    assert operator.status(lease) == LeaseStatus.ACTIVE


def test_the_audit_knows_them(operator: LeaseOperator) -> None:
    boot(operator, "a1")
    assert operator.broken() == []
    table, cloud = compute.servers, operator.cloud
    facts = cloud.read(lambda tx: tx.execute(table.select()).one().flavor)
    cloud.write(lambda tx: tx.execute(table.update().values(flavor={**facts, "extra_specs": {}})))
    (finding,) = operator.broken()
    assert "is on host a1 of the freepool" in finding
    cloud.write(lambda tx: tx.execute(table.update().values(flavor=facts)))
    now = operator.now
    lease = operator.make(Window(now, now + timedelta(hours=1)), [Demand(8, 8, SLOT)])
    row = lease.reservations[0].id

    def hand_over(tx: Tx) -> None:
        holds.activate(tx, row, [cloud.host("a1").id])

    cloud.write(hand_over)
    assert any("is on host a1 of the freepool" in each for each in operator.broken())
    operator.delete(lease)
    for _ in range(3):
        operator.wait(GRACE_S)
        operator.movers.finish()
    assert operator.said("a1") == [(Dedication.FREEPOOL, None)]
