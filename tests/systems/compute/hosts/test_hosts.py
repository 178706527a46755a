"""Reports of hosts, and the reconciliation of their servers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
import sqlalchemy as sa
from structlog.testing import capture_logs

from innkeeper.domain.compute import Agent, Host
from innkeeper.domain.errors import Conflict, Invalid
from innkeeper.domain.hosts import HostDefaults, HostReport, InventoryReport, Reported
from innkeeper.domain.identity import RequestContext
from innkeeper.domain.ids import AgentId, ConsumerUuid, ProviderUuid, ServerId
from innkeeper.domain.orders import OrderKind, WorkOrder
from innkeeper.domain.placement import ConsumerClaim
from innkeeper.store import changes, transactions
from innkeeper.store.queries.compute import agents as agent_rows
from innkeeper.store.queries.compute import hosts as host_rows
from innkeeper.store.queries.compute import orders, servers
from innkeeper.store.queries.compute.orders import NewOrder
from innkeeper.store.queries.placement import capacity, names
from innkeeper.store.tables.compute import work_orders
from innkeeper.store.transactions import Store, Tx
from innkeeper.systems.compute.hosts import agents, hosts, reconcile, work
from innkeeper.systems.compute.hosts.agents import AgentHeartbeat
from innkeeper.systems.compute.hosts.hosts import ServiceChange
from innkeeper.systems.compute.servers.results import Result
from innkeeper.systems.placement import claims
from tests.support.change_feed import changes_since
from tests.support.server_rows import row
from tests.support.stores import NOW

ADMIN = RequestContext("req-1", user_id="admin", roles=frozenset({"admin"}))
DEFAULTS = HostDefaults("nova", {"VCPU": 4.0}, 60.0)
STRAY = ServerId("7d9f1c34-1f0a-4a87-8f0e-6b2d54c3e210")


class CountingIds:
    """Ids that are the same in every run."""

    def __init__(self) -> None:
        self.given = 0

    def uuid(self) -> str:
        self.given += 1
        return f"00000000-0000-4000-8000-{self.given:012x}"

    def seed(self) -> int:
        return 1


IDS = CountingIds()


def host(name: str = "h1", **more: Any) -> HostReport:
    has = {
        "VCPU": InventoryReport(8),
        "MEMORY_MB": InventoryReport(8192),
        "DISK_GB": InventoryReport(100),
    }
    return HostReport(name, more.pop("inventories", has), **more)


def registered(tx: Tx, name: str = "a1", now: datetime = NOW) -> Agent:
    return agents.register(tx, ADMIN, name, "fake", new_id=IDS.uuid(), now=now)


def tell(
    tx: Tx, agent: Agent, reports: Sequence[HostReport], now: datetime = NOW
) -> list[Reported]:
    return hosts.report(tx, agent, reports, DEFAULTS, ids=IDS, now=now)


def seen(tx: Tx, name: str = "h1") -> tuple[Host, Any]:
    found = hosts.by_name(tx, name)
    return found, capacity.views(tx, [found.provider_id])[found.provider_id]


def test_an_unchanged_report_writes_nothing(store: Store) -> None:
    with store.write() as tx:
        agent = registered(tx)
        tell(tx, agent, [host(), host("h2", traits=frozenset({"CUSTOM_A"}))])
        newest = changes.newest(tx)
        tell(tx, agent, [host(), host("h2", traits=frozenset({"CUSTOM_A"}))])
        assert changes.newest(tx) == newest
        assert seen(tx)[1].generation == 0


def test_many_hosts_are_reported_at_once(store: Store) -> None:
    with store.write() as tx:
        agent = registered(tx)
        answers = tell(tx, agent, [host(f"h{number}") for number in range(500)])
        assert len({each.provider_uuid for each in answers}) == 500
        assert len(host_rows.rows_for_snapshot(tx, None)) == 500


def test_a_total_below_the_usage_is_accepted(store: Store) -> None:
    with store.write() as tx:
        agent = registered(tx)
        tell(tx, agent, [host()])
        found, _ = seen(tx)
        vcpu = names.class_ids(tx)["VCPU"]
        wanted = ConsumerClaim(ConsumerUuid("c1"), "p", "u", {found.provider_id: {vcpu: 8}}, None)
        claims.replace(tx, [wanted], NOW)
        tell(tx, agent, [host(inventories={"VCPU": InventoryReport(1, allocation_ratio=1.0)})])
        _, view = seen(tx)
        assert (view.inventories[vcpu].total, view.used[vcpu]) == (1, 8)
        assert set(view.inventories) == {vcpu}
        # The report lowers the total. Present servers keep their allocations, but no new server
        # fits.
        tell(tx, agent, [host(inventories={"DISK_GB": InventoryReport(1)})])
        _, view = seen(tx)
        assert view.inventories[vcpu].capacity_units == 0


def test_an_operators_settings_survive_reports(store: Store) -> None:
    first = {"VCPU": InventoryReport(8, reserved=2, max_unit=4, allocation_ratio=2.0)}
    with store.write() as tx:
        agent = registered(tx)
        tell(tx, agent, [host(inventories=first)])
        tell(tx, agent, [host(inventories={"VCPU": InventoryReport(16)})])
        vcpu = names.class_ids(tx)["VCPU"]
        kept = seen(tx)[1].inventories[vcpu]
        assert (kept.total, kept.reserved, kept.max_unit, kept.allocation_ratio) == (16, 2, 4, 2.0)


def test_facts_of_the_host_table_add_change_rows(store: Store) -> None:
    with store.write() as tx:
        agent = registered(tx)
        tell(tx, agent, [host()])
        found, _ = seen(tx)
        for changed in (
            host(capabilities={"cpu_mhz": 1}),
            host(capabilities={"cpu_mhz": 1}, availability_zone="north"),
            host(capabilities={"cpu_mhz": 1}, availability_zone="north", host_version=2),
        ):
            newest = changes.newest(tx)
            tell(tx, agent, [changed])
            assert changes_since(tx, newest) == [(found.provider_id, -1)]
        newest = changes.newest(tx)
        hosts.change_service(tx, found, ServiceChange(is_disabled=True), NOW)
        assert [pid for pid, _ in changes_since(tx, newest)] == [found.provider_id]


def test_other_facts_add_no_change_rows(store: Store) -> None:
    with store.write() as tx:
        agent = registered(tx)
        tell(tx, agent, [host(cpu_facts={"model": "old"})])
        newest = changes.newest(tx)
        tell(tx, agent, [host(cpu_facts={"model": "new"})])
        assert hosts.by_name(tx, "h1").cpu_facts == {"model": "new"}
        assert changes.newest(tx) == newest


def test_another_agent_takes_over_a_host_of_a_silent_one(store: Store) -> None:
    with store.write() as tx:
        first, second = registered(tx, "a1"), registered(tx, "a2")
        servers.insert_many(tx, [row(1, uuid=STRAY, deleted_at=NOW)])
        tell(tx, first, [host(servers=(STRAY,))])
        with pytest.raises(Conflict):
            tell(tx, second, [host()])
        later = NOW + timedelta(seconds=61)
        tell(tx, second, [host()], later)
        assert hosts.by_name(tx, "h1").agent_id == second.id
        # Pending orders for the host move with it.
        assert [each.host for each in work.waiting(tx, second.id, 0, 9)] == ["h1"]
        assert work.waiting(tx, first.id, 0, 9) == []


def test_an_existing_provider_becomes_the_hosts(store: Store) -> None:
    uuid = ProviderUuid("0f6e2a8c-5b21-4a9c-9c0e-2a6c5b9d7e11")
    with store.write() as tx:
        agent = registered(tx)
        (answer,) = tell(tx, agent, [host(provider_uuid=uuid)])
        assert answer.provider_uuid == uuid
        with pytest.raises(Conflict):
            tell(tx, agent, [host(provider_uuid=ProviderUuid(IDS.uuid()))])
        with pytest.raises(Conflict):
            tell(tx, agent, [host("h2", provider_uuid=uuid)])
        host_rows.remove(tx, hosts.by_name(tx, "h1").id)
        (again,) = tell(tx, agent, [host()])
        assert again.provider_uuid == uuid


def test_unknown_names_are_rejected(store: Store) -> None:
    with store.write() as tx:
        agent = registered(tx)
        with pytest.raises(Invalid):
            tell(tx, agent, [host(traits=frozenset({"GREEN"}))])
        with pytest.raises(Invalid):
            tell(tx, agent, [host(inventories={"PAPER": InventoryReport(1)})])


def test_deleted_servers_are_ordered_destroyed_once(store: Store) -> None:
    with store.write() as tx:
        agent = registered(tx)
        servers.insert_many(tx, [row(1, uuid=STRAY, deleted_at=NOW)])
        for _ in range(2):
            tell(tx, agent, [host(servers=(STRAY,))])
        (order,) = work.waiting(tx, agent.id, 0, 9)
        assert (order.kind, order.server_uuid) == (OrderKind.DESTROY, STRAY)


def test_orders_of_a_removed_host_go_to_the_agent_that_reports_it(store: Store) -> None:
    with store.write() as tx:
        first, second = registered(tx, "a1"), registered(tx, "a2")
        servers.insert_many(tx, [row(1, uuid=STRAY, deleted_at=NOW)])
        tell(tx, first, [host(servers=(STRAY,)), host("h2")])
        orders.add(tx, [NewOrder(first.id, "h2", STRAY, OrderKind.DESTROY, {})], NOW)
        later = NOW + timedelta(seconds=61)
        hosts.remove_service(tx, hosts.by_name(tx, "h1"), later)
        for _ in range(2):
            tell(tx, second, [host(servers=(STRAY,))], later)
        assert [each.host for each in work.waiting(tx, second.id, 0, 9)] == ["h1"]
        assert [each.host for each in work.waiting(tx, first.id, 0, 9)] == ["h2"]


def test_only_orders_of_its_agent_count_for_a_stray(store: Store) -> None:
    with store.write() as tx:
        first, second = registered(tx, "a1"), registered(tx, "a2")
        servers.insert_many(tx, [row(1, uuid=STRAY, deleted_at=NOW)])
        tell(tx, second, [host()])
        orders.add(tx, [NewOrder(first.id, "h1", STRAY, OrderKind.DESTROY, {})], NOW)
        reconcile.servers(tx, second.id, [host(servers=(STRAY,))], NOW)
        assert [each.host for each in work.waiting(tx, second.id, 0, 9)] == ["h1"]


def test_unknown_servers_are_left_alone(store: Store) -> None:
    with store.write() as tx:
        agent = registered(tx)
        with capture_logs() as logs:
            answers = tell(tx, agent, [host(servers=(STRAY,)), host("h2", servers=())])
        assert work.waiting(tx, agent.id, 0, 9) == []
    assert [each.unknown_servers for each in answers] == [(STRAY,), ()]
    # Only the caller logs the findings. It does so after the commit, because the transaction may be
    # rolled back before that.
    assert logs == []


def test_a_report_without_servers_compares_nothing(store: Store) -> None:
    with store.write() as tx:
        agent = registered(tx)
        tell(tx, agent, [replace(host(), servers=None)])
        assert work.waiting(tx, agent.id, 0, 9) == []


def test_a_build_without_confirmation_times_out(store: Store) -> None:
    with store.write() as tx:
        agent = registered(tx)
        tell(tx, agent, [host()])
        orders.add(tx, [NewOrder(agent.id, "h1", STRAY, OrderKind.BUILD, {})], NOW)
        orders.add(tx, [NewOrder(agent.id, "h1", STRAY, OrderKind.DESTROY, {})], NOW)
        assert work.sweep(tx, 600.0, NOW + timedelta(seconds=599)) == 0
        assert work.sweep(tx, 600.0, NOW + timedelta(seconds=601)) == 1
        (left,) = work.waiting(tx, agent.id, 0, 9)
        assert left.kind == OrderKind.DESTROY


def test_old_orders_are_deleted_unless_they_are_pending(store: Store) -> None:
    with store.write() as tx:
        agent = registered(tx)
        for _ in range(3):
            orders.add(tx, [NewOrder(agent.id, "h1", STRAY, OrderKind.DESTROY, {})], NOW)
        one, _, _ = work.waiting(tx, agent.id, 0, 9)
        assert work.record(tx, agent.id, [Result(one.id, True)], NOW) == [(one.id, True)]
        assert work.prune(tx, NOW + timedelta(days=2)) == 1
        assert one.id not in tx.execute(sa.select(work_orders.c.id)).scalars().all()
        assert len(work.waiting(tx, agent.id, 0, 9)) == 2


def test_listeners_are_notified_of_orders_after_the_commit(store: Store) -> None:
    heard: list[tuple[str, frozenset[str], list[WorkOrder]]] = []

    def listener(topic: str, names: frozenset[str]) -> None:
        with store.read() as tx:
            (name,) = names
            heard.append((topic, names, work.waiting(tx, AgentId(name), 0, 9)))

    store.listen(listener)
    with store.write() as tx:
        agent = registered(tx)
        orders.add(tx, [NewOrder(agent.id, "h1", STRAY, OrderKind.DESTROY, {})], NOW)
        assert heard == []
    ((topic, names, waiting),) = heard
    assert (topic, names, len(waiting)) == (work.TOPIC, frozenset({agent.id}), 1)


def test_listeners_are_not_notified_after_a_rollback(store: Store) -> None:
    heard: list[str] = []
    store.listen(lambda topic, _: heard.append(topic))
    with pytest.raises(Conflict), store.write() as tx:
        transactions.note(tx, work.TOPIC, {"a1"})
        raise Conflict("Not this time.")
    with store.write() as tx:
        registered(tx)
    assert heard == []


def test_only_a_heartbeat_brings_hosts_up_again(store: Store) -> None:
    later = NOW + timedelta(seconds=90)
    with store.write() as tx:
        agent = registered(tx)
        tell(tx, agent, [host()])
        again = registered(tx, now=later)
        assert again == agent
        tell(tx, again, [host()], later)
        assert not hosts.by_name(tx, "h1").is_up(later, 60.0)
        assert agents.heartbeats(tx, [AgentHeartbeat(ADMIN, agent.id, later)]) == [None]
        assert hosts.by_name(tx, "h1").is_up(later, 60.0)


def test_heartbeats_are_one_row_per_agent(store: Store) -> None:
    later = NOW + timedelta(seconds=90)
    with store.write() as tx:
        agent = registered(tx)
        tell(tx, agent, [host(), host("h2")])
        assert not hosts.by_name(tx, "h1").is_up(later, 60.0)
        newest = changes.newest(tx)
        assert agents.heartbeats(tx, [AgentHeartbeat(ADMIN, agent.id, later)]) == [None]
        assert agent_rows.last_seen(tx) == [(agent.id, later)]
        assert all(each.is_up(later, 60.0) for each in hosts.page(tx))
        assert changes.newest(tx) == newest
