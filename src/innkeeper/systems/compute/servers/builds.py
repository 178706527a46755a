"""Apply the results of build orders. After a failure, the next alternate host is tried.

The alternates of a server are further hosts that the scheduler chose at the boot.

Always true: the transaction that applies a failed result moves the server's allocations to the
alternate host, or releases them. If the first host may have a part of the server, the first host
gets an order to destroy it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from innkeeper.domain.compute import Host, Status, Task
from innkeeper.domain.grouping import GroupState
from innkeeper.domain.ids import ConsumerUuid, ServerId
from innkeeper.domain.orders import OrderKind
from innkeeper.domain.placing import GroupPolicy
from innkeeper.store.queries.compute import hosts, orders
from innkeeper.store.queries.compute import servers as server_rows
from innkeeper.store.queries.compute.orders import NewOrder, OpenOrder
from innkeeper.store.queries.compute.servers import Alive
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.grouping import dedications, groups
from innkeeper.systems.compute.grouping.dedications import Wanted
from innkeeper.systems.compute.servers import servers
from innkeeper.systems.compute.servers.results import Ended, Result, ResultSettings
from innkeeper.systems.compute.servers.servers import Failed
from innkeeper.systems.placement import transfers
from innkeeper.systems.placement.transfers import Relocation

Joined = Counter[tuple[int | None, str]]
"""The number of servers that this transaction placed on a host, by (group's row id, host name)."""


def apply(tx: Tx, reported: Sequence[Ended], settings: ResultSettings, now: datetime) -> None:
    """Apply the results of build orders."""
    servers.finish_builds(tx, {o.server_uuid: o.host for o, r in reported if r.is_ok}, now)
    failed = [each for each in reported if not each[1].is_ok]
    retried = [
        order
        for order, _ in failed
        if order.alternates and order.attempt < settings.build_attempts_max
    ]
    moved = _try_alternates(tx, retried, settings, now)
    ended = servers.fail_builds(
        tx, [_failed(*each) for each in failed if each[0].server_uuid not in moved], now
    )
    # The agent may have built the server despite the timeout, or may have failed halfway.
    leftovers = [
        NewOrder(order.agent_id, order.host, order.server_uuid, OrderKind.DESTROY)
        for order, result in failed
        if order.server_uuid in moved or (result.is_late and order.server_uuid in ended)
    ]
    orders.add(tx, leftovers, now)


def _failed(order: OpenOrder, result: Result) -> Failed:
    # Owners must not learn the host's name, and the agent's message may contain it.
    message = "The host could not build the server."
    if order.attempt > 1:
        message = f"None of {order.attempt} hosts built the server."
    return Failed(order.server_uuid, order.host, message, f"{order.host}: {result.message}")


@dataclass(slots=True)
class _Retry:
    """A server to build on another host, and the alternates that have not been tried yet."""

    order: OpenOrder
    server: Alive
    alternates: list[str]
    group: GroupState | None
    wanted: Wanted

    @property
    def group_id(self) -> int | None:
        return None if self.group is None else self.group.group_id


def _try_alternates(
    tx: Tx, failed: Sequence[OpenOrder], settings: ResultSettings, now: datetime
) -> set[ServerId]:
    """Move servers to their next alternate hosts with enough free capacity.

    Return the servers that were moved.
    """
    retries = _retries(tx, failed)
    known = hosts.by_names(tx, sorted({name for each in retries for name in each.alternates}))
    open_hosts = {
        name: host
        for name, host in known.items()
        if not host.is_disabled and host.is_up(now, settings.service_down_time_s)
    }
    joined: Joined = Counter()
    moved: dict[ServerId, tuple[_Retry, Host]] = {}
    while retries:
        round_ = [(each, host) for each in retries if (host := _next(each, open_hosts, joined))]
        wanted = [
            Relocation(ConsumerUuid(each.server.uuid), each.server.provider_id, host.provider_id)
            for each, host in round_
            if each.server.provider_id is not None
        ]
        refusals = transfers.relocate_together(tx, wanted, now)
        retries = []
        for (each, host), refusal in zip(round_, refusals, strict=True):
            if refusal is None:
                moved[each.server.uuid] = (each, host)
            else:
                joined[each.group_id, host.name] -= 1
                retries.append(each)
    _order_builds(tx, list(moved.values()), now)
    return set(moved)


def _retries(tx: Tx, failed: Sequence[OpenOrder]) -> list[_Retry]:
    orders_of = {order.server_uuid: order for order in failed}
    retries: list[_Retry] = []
    hints = server_rows.hints_of(tx, list(orders_of))
    alive = server_rows.alive(tx, orders_of)
    wanted_by = dedications.wanted_by(
        tx, [(hints.get(server.uuid, {}), server.project_id) for server in alive]
    )
    for server, wanted in zip(alive, wanted_by, strict=True):
        order = orders_of[server.uuid]
        is_building = server.status == Status.BUILD and server.task_state != Task.DELETING
        if not is_building or server.host != order.host or server.provider_id is None:
            continue
        group = groups.rule_of(tx, server.uuid)
        alternates = [name for name in order.alternates or () if name != order.host]
        if wanted is not None:
            retries.append(_Retry(order, server, alternates, group, wanted))
    return retries


def _next(each: _Retry, open_hosts: Mapping[str, Host], joined: Joined) -> Host | None:
    """Return the next alternate in ``open_hosts`` that the dedication and the group allow.

    The server is added to the count of this host in ``joined``.
    """
    while each.alternates:
        host = open_hosts.get(each.alternates.pop(0))
        if host is None or not dedications.takes(host, each.wanted):
            continue
        if each.group is None or _allows(each.group, host.name, joined):
            joined[each.group_id, host.name] += 1
            return host
    return None


def _allows(group: GroupState, host: str, joined: Joined) -> bool:
    rule = group.rule
    if rule.policy == GroupPolicy.ANTI_AFFINITY:
        count = rule.members.get(host, 0) + joined[group.group_id, host]
        return count < rule.servers_per_host_max
    if rule.policy == GroupPolicy.AFFINITY:
        others = {name for name, count in rule.members.items() if count}
        others |= {name for (row, name), n in joined.items() if row == group.group_id and n}
        return others <= {host}
    return True


def _order_builds(tx: Tx, moved: Sequence[tuple[_Retry, Host]], now: datetime) -> None:
    if not moved:
        return
    places = [
        {
            "server": each.server.uuid,
            "to_host": host.name,
            "to_provider": host.provider_id,
            "now": now,
        }
        for each, host in moved
    ]
    server_rows.place_elsewhere(tx, places)
    bodies = orders.bodies(tx, [each.order.id for each, _ in moved])
    builds = [
        NewOrder(
            host.agent_id,
            host.name,
            each.server.uuid,
            OrderKind.BUILD,
            bodies[each.order.id],
            attempt=each.order.attempt + 1,
            alternates=each.alternates,
            request_id=each.order.request_id,
        )
        for each, host in moved
    ]
    orders.add(tx, builds, now)
