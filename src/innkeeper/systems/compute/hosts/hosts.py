"""Apply agents' reports about hosts, and operators' changes to compute services.

Always true: if a fact in the host table changes, a change row for the provider is added in the same
transaction. Such facts are the availability zone, the capabilities, the agent, and the flags for
disabled and forced-down hosts. In the calendar of leases, the reported type and version of a host
are such facts, too. The zone that an agent reports is stored. The reported zone applies if no
aggregate of the host names a zone.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from innkeeper.domain.compute import Agent, Host, HostStatus
from innkeeper.domain.errors import Conflict, Forbidden, InUse, Invalid, NotFound
from innkeeper.domain.hosts import HostDefaults, HostReport, ProviderReport, Registered, Reported
from innkeeper.domain.identity import AgentIdentity
from innkeeper.domain.ids import AgentId, IdSource, ProviderId, ProviderUuid, ServerId
from innkeeper.store import changes
from innkeeper.store.queries.compute import availability_zones, hosts, orders
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.grouping import aggregates, dedications
from innkeeper.systems.compute.hosts import reconcile
from innkeeper.systems.compute.moves import cleanup
from innkeeper.systems.placement import providers, registration
from innkeeper.systems.volumes import volumes

# Queries that are re-exported unchanged.
by_row, by_rows = hosts.by_row, hosts.by_rows
page = hosts.page


def report(
    tx: Tx,
    agent: Agent,
    reports: Sequence[HostReport],
    defaults: HostDefaults,
    *,
    agent_identity: AgentIdentity | None = None,
    ids: IdSource,
    now: datetime,
) -> list[Reported]:
    """Apply an agent's report. Hosts that are missing from the report stay unchanged.

    A report without changes writes only the time of the report. Raises :class:`Conflict` for a host
    of another agent, if that agent is up. Raises :class:`Forbidden` for a host that
    ``agent_identity`` may not report.
    """
    names = [each.name for each in reports]
    if len(set(names)) != len(names):
        raise Invalid("A host is reported twice.")
    known = hosts.by_names(tx, names)
    if agent_identity is not None:
        _must_be_allowed(agent, agent_identity, names, known)
    _must_be_ours(agent, known, defaults, now)
    apply(tx, reports, known, dict.fromkeys(names, agent.id), defaults, ids=ids, now=now)
    unknown = reconcile.servers(tx, agent.id, reports, now)
    services = hosts.by_names(tx, names)
    return [
        Reported(
            name, services[name].provider_uuid, services[name].service_uuid, unknown.get(name, ())
        )
        for name in names
    ]


def apply(
    tx: Tx,
    reports: Sequence[HostReport],
    known: Mapping[str, Host],
    agent_of: Mapping[str, AgentId],
    defaults: HostDefaults,
    *,
    ids: IdSource,
    now: datetime,
) -> None:
    """Apply reports about different hosts. The servers in the reports are ignored.

    The caller has checked that the agents may report these hosts. ``known`` has the existing hosts
    by name. ``agent_of`` has the agent of each host by name.
    """
    before = hosts.reported(tx, [each.id for each in known.values()])
    registered = registration.register(
        tx,
        [
            _of_provider(
                dedications.reported(tx, each, known.get(each.name), defaults.allocation_ratios),
                known.get(each.name),
                before,
            )
            for each in reports
        ],
        defaults.allocation_ratios,
        ids=ids,
        now=now,
    )
    fresh = [each for each in reports if each.name not in known]
    _add(tx, agent_of, fresh, registered, defaults, ids, now)
    again = [(each, known[each.name]) for each in reports if each.name in known]
    _change(tx, agent_of, again, before, defaults, now)
    # New hosts are included, because a host that was removed earlier may have left orders.
    orders.move(tx, agent_of)


def _must_be_allowed(
    agent: Agent, agent_identity: AgentIdentity, names: Sequence[str], known: Mapping[str, Host]
) -> None:
    for name in names:
        if not agent_identity.may_report(name):
            raise Forbidden(f"The agent's credential is not for the host {name}.")
        host = known.get(name)
        # An agent cannot take over hosts of another agent, even if the other agent is down. An
        # administrator can allow the takeover with a credential that names the hosts.
        if host is not None and host.agent_id != agent.id and not agent_identity.hosts:
            raise Forbidden(
                f"Host {name} belongs to another agent, and the credential does not name it."
            )


def _must_be_ours(
    agent: Agent, known: Mapping[str, Host], defaults: HostDefaults, now: datetime
) -> None:
    for host in known.values():
        silent_s = (now - host.last_seen_at).total_seconds()
        if host.agent_id != agent.id and silent_s <= defaults.service_down_time_s:
            raise Conflict(
                f"Host {host.name} belongs to another agent, whose last heartbeat was "
                f"{silent_s:.0f} s ago. It can be taken over when that agent is down."
            )


def _of_provider(
    each: HostReport, host: Host | None, before: Mapping[int, Mapping[str, list[str]]]
) -> ProviderReport:
    last: Mapping[str, list[str]] = {} if host is None else before[host.id]
    return ProviderReport(
        name=each.name,
        provider_id=None if host is None else host.provider_id,
        provider_uuid=each.provider_uuid,
        inventories=each.inventories,
        traits=each.traits,
        gone_classes=frozenset(last.get("classes", ())) - each.inventories.keys(),
        gone_traits=frozenset(last.get("traits", ())) - each.traits,
    )


def _names_reported(each: HostReport) -> dict[str, list[str]]:
    return {"classes": sorted(each.inventories), "traits": sorted(each.traits)}


def _add(
    tx: Tx,
    agent_of: Mapping[str, AgentId],
    fresh: Sequence[HostReport],
    registered: Mapping[str, Registered],
    defaults: HostDefaults,
    ids: IdSource,
    now: datetime,
) -> None:
    taken = hosts.rows_for_snapshot(tx, [registered[each.name].provider_id for each in fresh])
    if taken:
        raise Conflict(
            f"Resource provider {taken[0].provider_uuid} belongs to host {taken[0].name}."
        )
    hosts.add(
        tx,
        [
            {
                "service_uuid": ids.uuid(),
                "name": each.name,
                "provider_id": registered[each.name].provider_id,
                "agent_id": agent_of[each.name],
                "availability_zone": each.availability_zone or defaults.availability_zone,
                "reported_zone": each.availability_zone or defaults.availability_zone,
                "is_disabled": False,
                "disabled_reason": None,
                "is_forced_down": False,
                "hypervisor_type": each.host_type,
                "hypervisor_version": each.host_version,
                "host_ip": each.host_ip,
                "cpu_facts": dict(each.cpu_facts),
                "capabilities": dict(each.capabilities),
                "reported": _names_reported(each),
                "booted_at": each.booted_at,
                "reported_at": now,
                "created_at": now,
                "updated_at": now,
            }
            for each in fresh
        ],
    )
    # If a provider existed before its host, only this call adds a change row for the provider.
    providers_of = [registered[each.name] for each in fresh]
    changes.add_always_read(tx, [each.provider_id for each in providers_of if not each.is_new], now)


def _change(
    tx: Tx,
    agent_of: Mapping[str, AgentId],
    again: Sequence[tuple[HostReport, Host]],
    before: Mapping[int, Mapping[str, list[str]]],
    defaults: HostDefaults,
    now: datetime,
) -> None:
    hosts.mark_reported(tx, [host.id for _, host in again], now)
    rows: list[dict[str, Any]] = []
    shown: list[ProviderId] = []
    moved = [
        host.id
        for each, host in again
        if each.availability_zone not in (None, "", host.reported_zone)
    ]
    zones = aggregates.zones_by_host(tx, moved)
    for each, host in again:
        reported_zone = each.availability_zone or host.reported_zone
        zone = host.availability_zone
        if reported_zone != host.reported_zone:
            zone = zones.get(host.id, reported_zone)
        new = {
            "agent": agent_of[each.name],
            "zone": zone,
            "zone_said": reported_zone,
            "type": each.host_type,
            "version": each.host_version,
            "ip": each.host_ip,
            "cpu": dict(each.cpu_facts),
            "facts": dict(each.capabilities),
            "what": _names_reported(each),
            "booted": each.booted_at,
        }
        old = {
            "agent": host.agent_id,
            "zone": host.availability_zone,
            "zone_said": host.reported_zone,
            "type": host.hypervisor_type,
            "version": host.hypervisor_version,
            "ip": host.host_ip,
            "cpu": host.cpu_facts,
            "facts": host.capabilities,
            "what": before[host.id],
            "booted": host.booted_at,
        }
        if any(new[name] != old[name] for name in _SHOWN) or _had_expired(host, defaults, now):
            shown.append(host.provider_id)
        if new != old:
            rows.append({**new, "host": host.id, "now": now})
    hosts.change_reported(tx, rows)
    changes.add_always_read(tx, sorted(shown), now)


_SHOWN = ("agent", "zone", "ip", "facts", "type", "version")
"""The reported facts that are in the host table or in its calendar of leases."""


def _had_expired(host: Host, defaults: HostDefaults, now: datetime) -> bool:
    """Return True if a host's capabilities had expired before this report.

    The report makes the capabilities valid again, and must add a change row. Without a change row,
    the host table would learn this late, because it reads the times of reports only periodically.
    """
    if host.reported_at is None:
        return True
    return (now - host.reported_at).total_seconds() > defaults.capabilities_max_age_s


@dataclass(frozen=True, slots=True)
class ServiceChange:
    """An operator's change of a host's compute service. ``None`` leaves a field unchanged."""

    is_disabled: bool | None = None
    disabled_reason: str | None = None
    is_forced_down: bool | None = None


def change_service(tx: Tx, host: Host, wanted: ServiceChange, now: datetime) -> Host:
    """Change a host's compute service, and return the host.

    If the service is enabled, the reason why it was disabled is deleted.
    """
    is_disabled = host.is_disabled if wanted.is_disabled is None else wanted.is_disabled
    reason = host.disabled_reason if wanted.is_disabled is None else wanted.disabled_reason
    is_down = host.is_forced_down if wanted.is_forced_down is None else wanted.is_forced_down
    hosts.change_service(
        tx,
        host.id,
        is_disabled=is_disabled,
        disabled_reason=reason if is_disabled else None,
        is_forced_down=is_down,
        now=now,
    )
    if (is_disabled, is_down) != (host.is_disabled, host.is_forced_down):
        changes.add_always_read(tx, [host.provider_id], now)
    changed = hosts.by_row(tx, host.id)
    assert changed is not None, "the host was just written"
    return changed


def remove_service(tx: Tx, host: Host, now: datetime) -> None:
    """Remove a host and its memberships in aggregates.

    The host's provider is removed if it is unused. Copies of moved servers that are left on the
    host count as destroyed. Raises :class:`InUse` if the host is dedicated, has servers or volumes,
    or is the source or destination of a move. If an agent still has the host, the agent's next
    registration creates the host again.
    """
    reason = dedications.why_not_free(host)
    if reason is not None:
        raise InUse(
            f"Unable to delete compute service of host {host.name}: {reason}. Remove the "
            "host from there first."
        )
    if hosts.server_counts(tx, [host.name]):
        raise InUse(
            "Unable to delete compute service that is hosting instances. Migrate or delete "
            "the instances first."
        )
    if volumes.are_on(tx, host.provider_id):
        raise InUse(
            "Unable to delete compute service of a host that has volumes on its disks. Delete the "
            "volumes first."
        )
    cleanup.abandon(tx, host.name, now)
    aggregates.forget_host(tx, host, now)
    hosts.remove(tx, host.id)
    registration.retire(tx, host.provider_id)
    changes.add_always_read(tx, [host.provider_id], now)
    with contextlib.suppress(InUse):
        # The provider is kept if other consumers have or had allocations on it.
        providers.delete(tx, host.provider_uuid, now)


def by_service(tx: Tx, service_uuid: str) -> Host:
    """Return the host of the compute service with this uuid. Raises :class:`NotFound`."""
    found = hosts.by_service(tx, service_uuid)
    if found is None:
        raise NotFound(f"Service {service_uuid} could not be found.")
    return found


def by_name(tx: Tx, name: str) -> Host:
    """Return the host with this name. Raises :class:`NotFound`."""
    found = hosts.by_names(tx, [name]).get(name)
    if found is None:
        raise NotFound(f"Could not find binary nova-compute on host {name}.")
    return found


def by_name_or_none(tx: Tx, name: str) -> Host | None:
    """Return the host with this name, or ``None``."""
    return hosts.by_names(tx, [name]).get(name)


def by_provider(tx: Tx, uuid: str) -> Host | None:
    """Return the host on this provider, or ``None``."""
    return hosts.by_provider(tx, ProviderUuid(uuid))


def servers_on(tx: Tx, names: Collection[str]) -> dict[str, list[tuple[str, str]]]:
    """Return the servers on each of these hosts, as pairs of (uuid, name)."""
    found: dict[str, list[tuple[str, str]]] = {}
    for host, uuid, name, *_ in hosts.servers_on(tx, names):
        found.setdefault(host, []).append((uuid, name))
    return found


def residents(tx: Tx, names: Collection[str]) -> dict[str, list[tuple[ServerId, str]]]:
    """Return the servers on each of these hosts, as pairs of (uuid, project id)."""
    found: dict[str, list[tuple[ServerId, str]]] = {}
    for host, uuid, project_id in hosts.residents(tx, names):
        found.setdefault(host, []).append((ServerId(uuid), project_id))
    return found


def usable_zones(tx: Tx, service_down_time_s: float, *, now: datetime) -> dict[str, bool]:
    """Return all availability zones, with True for zones in which a host takes servers now."""
    return availability_zones.usable(tx, now - timedelta(seconds=service_down_time_s))


def by_zone(tx: Tx) -> dict[str, list[HostStatus]]:
    """Return all availability zones in order, with their hosts."""
    zones: dict[str, list[HostStatus]] = {}
    for zone, host in availability_zones.host_states(tx):
        zones.setdefault(zone, []).append(host)
    return zones
