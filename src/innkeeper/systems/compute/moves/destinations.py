"""Choose the destinations of moves: a host named in the request, or else the best host.

Always true: the scheduler has accepted the destination, unless the destination is a forced host.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from innkeeper.domain.compute import Host, Server
from innkeeper.domain.errors import Conflict, Invalid
from innkeeper.domain.ids import ClassId, ProviderId
from innkeeper.domain.placement import Amounts
from innkeeper.domain.placing import RequestSpec
from innkeeper.scheduling import reasons
from innkeeper.scheduling.facts import masks
from innkeeper.store.queries.compute import hosts, migrations
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.boot import request_resolver
from innkeeper.systems.compute.boot.context import DecisionContext
from innkeeper.systems.compute.servers import servers


class UnknownHost(Invalid):
    """The request names a host that does not exist."""


@dataclass(frozen=True, slots=True)
class Place:
    """The host to which a server moves, and the amounts to claim from each provider."""

    host: str
    provider_id: ProviderId
    amounts: Amounts


@dataclass(frozen=True, slots=True)
class NoValidHost:
    """The reason why no host is valid. ``counted`` is the message that only administrators see."""

    message: str
    counted: str


def elsewhere(
    tx: Tx,
    context: DecisionContext,
    server: Server,
    wanted: Host | None,
    *,
    seed: int,
    now: datetime,
    is_forced: bool = False,
) -> Place | NoValidHost:
    """Return another host for a server: the host ``wanted``, or else the best host.

    If no host is valid, return the reason. The scheduler does not check a forced host. Raises
    :class:`Conflict` if a forced host is down, or is dedicated and does not take the server.
    """
    spec = request_resolver.spec_of_server(
        tx,
        context,
        server,
        now=now,
        seed=seed,
        refused_hosts=refused_hosts(tx, server),
        forced_host=None if wanted is None else wanted.name,
    )
    if wanted is None or not is_forced:
        return find(context, spec)
    if not wanted.is_up(now, context.computing.service_down_time_s):
        raise Conflict(f"Compute service of {wanted.name} is unavailable at this time.")
    if context.is_others(spec, wanted.name):
        raise Conflict(
            f"Compute host {wanted.name} cannot take this server: the host is dedicated to others, "
            "or does not belong to the pcloud or reservation that the server requires."
        )
    # The claim checks whether the host has enough free capacity.
    amounts = {wanted.provider_id: _by_class(context, spec)}
    return Place(wanted.name, wanted.provider_id, amounts)


def find(context: DecisionContext, spec: RequestSpec) -> Place | NoValidHost:
    """Return the best destination for a server, or the reason why there is none."""
    plan = context.plan(spec)
    if not plan.entries:
        has_dedicated = masks.has_dedicated(context.follower.table)
        return NoValidHost(
            reasons.sentence(plan, 1, has_dedicated=has_dedicated), reasons.counted(plan, 1)
        )
    entry = plan.entries[0]
    amounts: dict[ProviderId, dict[ClassId, int]] = {entry.provider_id: _by_class(context, spec)}
    for each in entry.loans:
        class_id = context.follower.table.class_ids[each.class_name]
        lent = amounts.setdefault(each.provider_id, {})
        lent[class_id] = amounts[entry.provider_id].pop(class_id)
    return Place(entry.host, entry.provider_id, amounts)


def _by_class(context: DecisionContext, spec: RequestSpec) -> dict[ClassId, int]:
    class_ids = context.follower.table.class_ids
    for name in spec.amounts:
        if name not in class_ids:
            raise Invalid(f"No host has any {name}.")
    return {class_ids[name]: amount for name, amount in spec.amounts.items()}


def demand_other(tx: Tx, server: Server, name: str | None) -> Host | None:
    """Return the host that a request names as the destination, or ``None``.

    Raises :class:`UnknownHost` for an unknown host, and :class:`Invalid` for the server's present
    host.
    """
    if name is None:
        return None
    host = hosts.by_names(tx, [name]).get(name)
    if host is None:
        raise UnknownHost(f"Compute host {name} could not be found.")
    if name == server.host:
        raise Invalid(f"Server {server.uuid} cannot move to {name}: it is there already.")
    return host


def refused_hosts(tx: Tx, server: Server) -> frozenset[str]:
    """Return the hosts that may have the server or a copy of the server.

    These are the server's host, and the hosts of its open migrations.
    """
    named = {server.host}
    for each in migrations.open_ones(tx, [server.uuid]):
        named |= {each.source_host, each.dest_host}
    return frozenset(name for name in named if name is not None)


def demand_up(tx: Tx, context: DecisionContext, server: Server, now: datetime) -> None:
    """Raise :class:`Conflict` if the server's host is down."""
    home = servers.homes(tx, [server]).get(servers.demand_host(server))
    if home is None or not home.is_up(now, context.computing.service_down_time_s):
        raise Conflict("Service is unavailable at this time.")
