"""What follows when agents have built servers, or could not: the next best host is tried.

Always true: a server whose build failed holds its next host, or nothing, from the transaction
on in which the failure is told; what the failed host may have of it is destroyed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from innkeeper.domain.compute import Host, OrderKind, Status, Task
from innkeeper.domain.ids import ConsumerUuid, ServerId
from innkeeper.domain.placing import GroupPolicy, GroupRule
from innkeeper.store.queries.compute import hosts, orders
from innkeeper.store.queries.compute import servers as server_rows
from innkeeper.store.queries.compute.orders import NewOrder, OpenOrder
from innkeeper.store.queries.compute.servers import Alive
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.grouping import dedications, groups
from innkeeper.systems.compute.grouping.dedications import Wanted
from innkeeper.systems.compute.servers import servers
from innkeeper.systems.compute.servers.results import News, Result, ResultSettings
from innkeeper.systems.compute.servers.servers import Failed
from innkeeper.systems.placement import transfers
from innkeeper.systems.placement.transfers import Relocation


def follow(tx: Tx, reported: Sequence[News], settings: ResultSettings, now: datetime) -> None:
    """Take what agents say of orders to build."""
    servers.finish_builds(tx, {o.server_uuid: o.host for o, r in reported if r.is_ok}, now)
    failed = [each for each in reported if not each[1].is_ok]
    moved = _try_others(
        tx, [each for each in failed if _may_go_on(each[0], settings)], settings, now
    )
    ended = servers.fail_builds(
        tx, [_told(*each) for each in failed if each[0].server_uuid not in moved], now
    )
    # Its agent may have built it all the same, or failed halfway.
    leftovers = [
        order
        for order, result in failed
        if order.server_uuid in moved or (result.is_late and order.server_uuid in ended)
    ]
    undo = [
        NewOrder(each.agent_id, each.host, each.server_uuid, OrderKind.DESTROY)
        for each in leftovers
    ]
    orders.add(tx, undo, now)


def _may_go_on(order: OpenOrder, settings: ResultSettings) -> bool:
    return bool(order.alternates) and order.attempt < settings.build_attempts_max


def _told(order: OpenOrder, result: Result) -> Failed:
    # Owners are told of no host, and what its agent says may name it.
    message = "The host could not build the server."
    if order.attempt > 1:
        message = f"None of {order.attempt} hosts built the server."
    return Failed(order.server_uuid, order.host, message, f"{order.host}: {result.message}")


@dataclass(slots=True)
class _Try:
    """A server that looks for another host among those that are left."""

    order: OpenOrder
    server: Alive
    left: list[str]
    rule: GroupRule | None
    group_id: int | None
    wanted: Wanted


def _try_others(
    tx: Tx, failed: Sequence[News], settings: ResultSettings, now: datetime
) -> set[ServerId]:
    """Give servers to their next hosts, as far as those will have them; gives which went."""
    tries = _tries(tx, failed)
    known = hosts.by_names(tx, sorted({name for each in tries for name in each.left}))
    open_hosts = {
        name: host
        for name, host in known.items()
        if not host.is_disabled and host.is_up(now, settings.service_down_time_s)
    }
    # How many members of a group came to a host by what is done here.
    joined: dict[tuple[int | None, str], int] = {}
    went: dict[ServerId, tuple[_Try, Host]] = {}
    while tries:
        round_ = [(each, host) for each in tries if (host := _next(each, open_hosts, joined))]
        wanted = [
            Relocation(ConsumerUuid(each.server.uuid), each.server.provider_id, host.provider_id)
            for each, host in round_
            if each.server.provider_id is not None
        ]
        refusals = transfers.relocate_together(tx, wanted, now)
        tries = []
        for (each, host), refusal in zip(round_, refusals, strict=True):
            if refusal is None:
                went[each.server.uuid] = (each, host)
            else:
                joined[each.group_id, host.name] -= 1
                tries.append(each)
    _send_on(tx, list(went.values()), now)
    return set(went)


def _tries(tx: Tx, failed: Sequence[News]) -> list[_Try]:
    orders_of = {order.server_uuid: order for order, _ in failed}
    tries: list[_Try] = []
    given = server_rows.hints_of(tx, list(orders_of))
    alive = server_rows.alive(tx, orders_of)
    wanted_by = dedications.wanted_by(
        tx, [(given.get(server.uuid, {}), server.project_id) for server in alive]
    )
    for server, wanted in zip(alive, wanted_by, strict=True):
        order = orders_of[server.uuid]
        is_wanted = server.status == Status.BUILD and server.task_state != Task.DELETING
        if not is_wanted or server.host != order.host or server.provider_id is None:
            continue
        group_state = groups.rule_of(tx, server.uuid)
        left = [name for name in order.alternates or () if name != order.host]
        rule = None if group_state is None else group_state.rule
        group_id = None if group_state is None else group_state.group_id
        if wanted is not None:
            tries.append(_Try(order, server, left, rule, group_id, wanted))
    return tries


def _next(
    each: _Try, open_hosts: Mapping[str, Host], joined: dict[tuple[int | None, str], int]
) -> Host | None:
    """The next host that is open, for whom it is and for the group; it counts as joined."""
    while each.left:
        host = open_hosts.get(each.left.pop(0))
        if host is None or not dedications.takes(host, each.wanted):
            continue
        key = (each.group_id, host.name)
        more = joined.get(key, 0)
        if each.rule is None or _allows(each.rule, host.name, more, joined, each.group_id):
            joined[key] = more + 1
            return host
    return None


def _allows(
    rule: GroupRule,
    host: str,
    more: int,
    joined: Mapping[tuple[int | None, str], int],
    group_id: int | None,
) -> bool:
    if rule.policy == GroupPolicy.ANTI_AFFINITY:
        return rule.members.get(host, 0) + more < rule.servers_per_host_max
    if rule.policy == GroupPolicy.AFFINITY:
        others = {name for name, count in rule.members.items() if count}
        others |= {name for (group, name), n in joined.items() if group == group_id and n}
        return others <= {host}
    return True


def _send_on(tx: Tx, went: Sequence[tuple[_Try, Host]], now: datetime) -> None:
    if not went:
        return
    server_rows.place_elsewhere(
        tx,
        [
            {
                "server": each.server.uuid,
                "to_host": host.name,
                "to_provider": host.provider_id,
                "now": now,
            }
            for each, host in went
        ],
    )
    bodies = orders.bodies(tx, [each.order.id for each, _ in went])
    orders.add(
        tx,
        [
            NewOrder(
                host.agent_id,
                host.name,
                each.server.uuid,
                OrderKind.BUILD,
                bodies[each.order.id],
                attempt=each.order.attempt + 1,
                alternates=each.left,
                request_id=each.order.request_id,
            )
            for each, host in went
        ],
        now,
    )
