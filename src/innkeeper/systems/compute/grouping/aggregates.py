"""Manage aggregates, which are operators' sets of hosts. Some aggregates define availability zones.

Always true: the aggregates of a host name at most one availability zone. The column
``hosts.availability_zone`` has this zone. If the aggregates name no zone, the column has the zone
that the host's agent reports. No change moves a host with servers to another zone. Every membership
is also in Placement, under the aggregate's uuid. A change of an aggregate's hosts or metadata adds
change rows for the hosts' providers in the same transaction. An owned aggregate belongs to a
pcloud, a host flavor or a lease pool. Only the owner applies changes to an owned aggregate.

Operators may add other memberships to these aggregates in Placement. For owned aggregates, the
owner's audit reports such memberships.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from innkeeper.domain.compute import Host
from innkeeper.domain.errors import AlreadyExists, Conflict, Invalid, NotFound
from innkeeper.domain.grouping import ZONE_KEY, Aggregate
from innkeeper.domain.moves import OPEN, MigrationStatus
from innkeeper.store import changes
from innkeeper.store.queries.compute import aggregates, hosts, migrations
from innkeeper.store.queries.compute.aggregates import Member
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.grouping import owned_aggregates
from innkeeper.systems.compute.grouping.owned_aggregates import NO_OWNERS, Owners
from innkeeper.systems.placement import aggregates as placement_aggregates

ZONE_NAME = re.compile(r"(?!\s)[^:\x00-\x1f\x7f-\x9f]{1,255}(?<!\s)")
"""Names must not contain a colon, because clients write ``ZONE:HOST``."""
MetadataEdit = Mapping[str, str | None]
"""An edit of metadata: new values by key. ``None`` removes a key."""


def listing(tx: Tx, owners: Owners = NO_OWNERS) -> list[Aggregate]:
    """Return all aggregates in the order of their creation, with their owners' metadata."""
    return _with_owners_metadata(tx, aggregates.listing(tx), owners)


def get(tx: Tx, row: int, owners: Owners = NO_OWNERS) -> Aggregate:
    """Return the aggregate with this row id and its owner's metadata. Raises :class:`NotFound`."""
    found = aggregates.by_row(tx, row)
    if found is None:
        raise NotFound(f"Aggregate {row} could not be found.")
    return _with_owners_metadata(tx, [found], owners)[0]


def _with_owners_metadata(tx: Tx, found: Sequence[Aggregate], owners: Owners) -> list[Aggregate]:
    more: dict[int, Mapping[str, str]] = {}
    for kind, owner in owners.items():
        more |= owner.metadata(tx, [each for each in found if each.kind == kind])
    return [
        replace(each, metadata={**each.metadata, **more[each.id]}) if each.id in more else each
        for each in found
    ]


def create(tx: Tx, uuid: str, name: str, zone: str | None, now: datetime) -> Aggregate:
    """Create an aggregate without hosts. Raises :class:`AlreadyExists` for a name in use."""
    _demand_free_name(tx, name)
    if name.startswith(owned_aggregates.NAME_PREFIX):
        raise Invalid(
            f"Names that begin with {owned_aggregates.NAME_PREFIX} are reserved for host "
            "flavors and pclouds, which have an API of their own."
        )
    metadata = {} if zone is None else {ZONE_KEY: zone}
    return get(tx, aggregates.add(tx, uuid, name, metadata, now))


def _demand_free_name(tx: Tx, name: str, but_by: int | None = None) -> None:
    if aggregates.is_name_taken(tx, name, but_by):
        raise AlreadyExists(f"Aggregate {name} already exists.")


def rename(
    tx: Tx, row: int, name: str | None, now: datetime, owners: Owners = NO_OWNERS
) -> Aggregate:
    """Rename an aggregate. A ``name`` of ``None`` leaves its name unchanged."""
    aggregate = get(tx, row)
    if name is not None and name != aggregate.name:
        if aggregate.kind is not None or name.startswith(owned_aggregates.NAME_PREFIX):
            raise Invalid(
                f"Cannot rename aggregate {row}. Reason: names that begin with "
                f"{owned_aggregates.NAME_PREFIX} belong to host flavors and pclouds, and cannot "
                "be changed."
            )
        _demand_free_name(tx, name, but_by=row)
        aggregates.change(tx, row, name, aggregate.metadata, now)
    return get(tx, row, owners)


def set_metadata(
    tx: Tx,
    row: int,
    wanted: MetadataEdit,
    now: datetime,
    owners: Owners = NO_OWNERS,
    *,
    deed: str = "update metadata of",
) -> Aggregate:
    """Set some keys of an aggregate's metadata, and remove the keys whose value is ``None``.

    The key that names an availability zone cannot be removed or emptied. The value of this key
    cannot change if a host with servers would move to another zone. ``deed`` is the verb in the
    messages of refusals.
    """
    aggregate = get(tx, row)
    wanted = _apply_owners_keys(tx, aggregate, wanted, now, owners)
    members = aggregates.members(tx, row)
    zone = _wanted_zone(tx, aggregate, wanted, members, f"Cannot {deed} aggregate {row}")
    kept = {key: value for key, value in aggregate.metadata.items() if key not in wanted}
    given = {key: value for key, value in wanted.items() if value is not None}
    if {**kept, **given} != aggregate.metadata:
        changes.add_always_read(tx, sorted(each.provider_id for each in members), now)
    aggregates.change(tx, row, aggregate.name, {**kept, **given}, now)
    if zone is not None:
        moved = [each.host_id for each in members if each.availability_zone != zone]
        hosts.put_into_zone(tx, moved, zone, now)
    return get(tx, row, owners)


def _apply_owners_keys(
    tx: Tx, aggregate: Aggregate, wanted: MetadataEdit, now: datetime, owners: Owners
) -> MetadataEdit:
    """Let the owner apply the edit of the owner's keys. Return the edit of all other keys."""
    owner = owned_aggregates.of(owners, aggregate)
    if owner is None:
        reserved = sorted(key for key in wanted if key.startswith(owned_aggregates.KEY_PREFIX))
        if reserved:
            raise Invalid(
                f"Keys that begin with {owned_aggregates.KEY_PREFIX} are reserved for host "
                f"flavors and pclouds. Aggregate {aggregate.id} cannot have the key {reserved[0]}."
            )
        return wanted
    if ZONE_KEY in wanted:
        raise Invalid(
            f"Aggregate {aggregate.name} cannot define an availability zone: other aggregates "
            "define the zones of its hosts."
        )
    owned = {key: text for key, text in wanted.items() if owner.keeps_key(key)}
    if owned:
        owner.set_metadata(tx, aggregate, owned, now)
    return {key: text for key, text in wanted.items() if key not in owned}


def _wanted_zone(
    tx: Tx, aggregate: Aggregate, wanted: MetadataEdit, members: Sequence[Member], cannot: str
) -> str | None:
    """Return the new availability zone of the hosts, or ``None`` if the zone does not change."""
    if ZONE_KEY not in wanted:
        return None
    zone = wanted[ZONE_KEY]
    if not zone:
        raise Invalid(
            f"{cannot}. Reason: Aggregate {aggregate.name} does not support empty named "
            "availability zone."
        )
    if ZONE_NAME.fullmatch(zone) is None:
        raise Invalid(f"{cannot}. Reason: {zone} is not a valid name of an availability zone.")
    others = _other_zones(tx, aggregate, [each.host_id for each in members], zone)
    if others:
        raise Invalid(f"{cannot}. Reason: {_already(others)}")
    moved = {each.name for each in members if each.availability_zone != zone}
    if moved and (hosts.server_counts(tx, moved) or moved & _move_targets(tx)):
        raise Invalid(f"{cannot}. Reason: One or more hosts contain instances in this zone.")
    return zone


def _other_zones(tx: Tx, aggregate: Aggregate, host_ids: Collection[int], zone: str) -> list[str]:
    others = {
        each.availability_zone
        for _, each in aggregates.of_hosts(tx, host_ids)
        if each.id != aggregate.id
    }
    return sorted(each for each in others if each is not None and each != zone)


def _already(zones: list[str]) -> str:
    return f"One or more hosts already in availability zone(s) {zones}."


def delete(tx: Tx, row: int, now: datetime, owners: Owners = NO_OWNERS) -> None:
    """Delete an aggregate. Raises :class:`Invalid` if it has hosts."""
    aggregate = get(tx, row)
    owner = owned_aggregates.of(owners, aggregate)
    if aggregate.hosts:
        # This is Nova's message, although it is about the removal of hosts.
        raise Invalid(
            f"Cannot remove host from aggregate {row}. Reason: Host aggregate is not empty."
        )
    if owner is not None:
        owner.delete(tx, aggregate, now)
    else:
        aggregates.remove(tx, row)


def add_host(tx: Tx, row: int, name: str, now: datetime, owners: Owners = NO_OWNERS) -> Aggregate:
    """Add a host to an aggregate, and thus to its availability zone.

    Raises :class:`NotFound` for an unknown host or aggregate. Raises :class:`Conflict` in three
    cases: the host is already a member, the host is in an aggregate with a different zone, or the
    host has servers and would move to another zone.
    """
    host = hosts.by_names(tx, [name]).get(name)
    if host is None:
        raise NotFound(f"Compute host {name} could not be found.")
    aggregate = get(tx, row)
    cannot = f"Cannot add host to aggregate {row}"
    zone = aggregate.availability_zone
    if zone is not None:
        others = _other_zones(tx, aggregate, [host.id], zone)
        if others:
            raise Conflict(f"{cannot}. Reason: {_already(others)}")
        _demand_same_zone(tx, host, zone, f"{cannot}. Reason: The host cannot be added to the")
    if name in aggregate.hosts:
        raise Conflict(f"Aggregate {row} already has host {name}.")
    owner = owned_aggregates.of(owners, aggregate)
    if owner is not None:
        owner.add_host(tx, aggregate, host, now)
        return get(tx, row, owners)
    if zone is not None:
        hosts.put_into_zone(tx, [host.id], zone, now)
    owned_aggregates.add_host(tx, row, aggregate.uuid, host, now)
    return get(tx, row)


def _move_targets(tx: Tx) -> set[str]:
    """Return the names of the hosts to which an open migration may bring a server."""
    return migrations.hosts_of(tx, OPEN - {MigrationStatus.DONE})


def _demand_same_zone(tx: Tx, host: Host, zone: str, cannot: str) -> None:
    if host.availability_zone == zone:
        return
    change = (
        f"{cannot} aggregate as the availability zone of the host would change from "
        f"'{host.availability_zone}' to '{zone}'"
    )
    count, _ = hosts.server_counts(tx, [host.name]).get(host.name, (0, 0))
    if count:
        raise Conflict(
            f"{change} but the host already has {count} server(s). Changing the AZ of an "
            "existing server is not supported by this action. Move the servers away from this "
            "host then try again. If you need to move the servers between AZs then you can use "
            "shelve_offload and unshelve to achieve this."
        )
    if host.name in _move_targets(tx):
        raise Conflict(f"{change} but a server that is being moved may end up on the host.")


def remove_host(
    tx: Tx, row: int, name: str, now: datetime, owners: Owners = NO_OWNERS
) -> Aggregate:
    """Remove a host from an aggregate.

    The host is then in the zone of its other aggregates. If they name no zone, the host is in the
    zone that its agent reports. Raises :class:`NotFound` if the host is not a member. Raises
    :class:`Conflict` if the host has servers and would move to another zone.
    """
    host = hosts.by_names(tx, [name]).get(name)
    aggregate = aggregates.by_row(tx, row)
    if host is None or aggregate is None or name not in aggregate.hosts:
        raise NotFound(f"Cannot remove host {name} in aggregate {row}")
    owner = owned_aggregates.of(owners, aggregate)
    if owner is not None:
        owner.remove_host(tx, aggregate, host, now)
        return get(tx, row, owners)
    zones = (
        each.availability_zone
        for _, each in aggregates.of_hosts(tx, [host.id])
        if each.id != row and each.availability_zone is not None
    )
    zone = next(zones, None) or host.reported_zone
    cannot = f"Cannot remove host from aggregate {row}. Reason: The host cannot be removed from the"
    _demand_same_zone(tx, host, zone, cannot)
    hosts.put_into_zone(tx, [host.id], zone, now)
    owned_aggregates.remove_host(tx, row, aggregate.uuid, host, now)
    return get(tx, row)


def zones_by_host(tx: Tx, host_ids: Collection[int]) -> dict[int, str]:
    """Return the availability zones that the aggregates of these hosts name, by host row id."""
    return {
        host_id: aggregate.availability_zone
        for host_id, aggregate in aggregates.of_hosts(tx, host_ids)
        if aggregate.availability_zone is not None
    }


def forget_host(tx: Tx, host: Host, now: datetime) -> None:
    """Remove a host from all of its aggregates, because the host is being deleted.

    The host has no servers, so its availability zone does not matter.
    """
    for _, aggregate in aggregates.of_hosts(tx, [host.id]):
        aggregates.remove_hosts(tx, aggregate.id, [host.id])
        placement_aggregates.leave(tx, host.provider_uuid, aggregate.uuid, now)
