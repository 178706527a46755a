"""Aggregates: operators' sets of hosts, and the availability zones that some of them make.

Always true: a host is in at most one zone by its aggregates, and ``hosts.availability_zone`` is
that zone, or the one its agent reports where no aggregate names any; no aggregate moves a host
with servers to another zone. Placement knows every membership by the aggregate's uuid. Whoever
changes what hosts are in, or what is said of it, adds change rows for their providers in the
same transaction. What is done to an aggregate of a kind, its keeper does.

May be false: that Placement has nothing else. An operator may put providers into the same
aggregates there, or take hosts out, which says nothing here; of the hosts in aggregates of a
kind their room's audit tells it.
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
from innkeeper.systems.compute.grouping.owned_aggregates import NOBODY, Keepers
from innkeeper.systems.placement import aggregates as placement_aggregates

ZONE_NAME = re.compile(r"(?!\s)[^:\x00-\x1f\x7f-\x9f]{1,255}(?<!\s)")
"""A colon would end the zone where somebody names it together with a host."""


def listing(tx: Tx, kept_by: Keepers = NOBODY) -> list[Aggregate]:
    """All aggregates, in the order in which they were made, with what their keepers say."""
    return _told(tx, aggregates.listing(tx), kept_by)


def get(tx: Tx, row: int, kept_by: Keepers = NOBODY) -> Aggregate:
    """The aggregate in this row, with what its keeper says; else :class:`NotFound`."""
    found = aggregates.by_row(tx, row)
    if found is None:
        raise unknown(row)
    (told,) = _told(tx, [found], kept_by)
    return told


def _told(tx: Tx, found: Sequence[Aggregate], kept_by: Keepers) -> list[Aggregate]:
    said: dict[int, Mapping[str, str]] = {}
    for kind, owner in kept_by.items():
        said |= owner.metadata(tx, [each for each in found if each.kind == kind])
    return [
        replace(each, metadata={**each.metadata, **said[each.id]}) if each.id in said else each
        for each in found
    ]


def unknown(named: object) -> NotFound:
    """What is said of an aggregate that is not there."""
    return NotFound(f"Aggregate {named} could not be found.")


def create(tx: Tx, uuid: str, name: str, zone: str | None, now: datetime) -> Aggregate:
    """Make an aggregate without hosts. Raises :class:`AlreadyExists` for a name in use."""
    _demand_free_name(tx, name)
    if name.startswith(owned_aggregates.NAME_PREFIX):
        raise Invalid(
            f"Names that begin with {owned_aggregates.NAME_PREFIX} are those of host flavors "
            "and pclouds, which have an API of their own."
        )
    metadata = {} if zone is None else {ZONE_KEY: zone}
    return get(tx, aggregates.add(tx, uuid, name, metadata, now))


def _demand_free_name(tx: Tx, name: str, but_by: int | None = None) -> None:
    if aggregates.is_name_taken(tx, name, but_by):
        raise AlreadyExists(f"Aggregate {name} already exists.")


def rename(
    tx: Tx, row: int, name: str | None, now: datetime, kept_by: Keepers = NOBODY
) -> Aggregate:
    """Give an aggregate another name, or, with none, leave it as it is."""
    aggregate = get(tx, row)
    if name is not None and name != aggregate.name:
        if aggregate.kind is not None or name.startswith(owned_aggregates.NAME_PREFIX):
            raise Invalid(
                f"Cannot rename aggregate {row}. Reason: names that begin with "
                f"{owned_aggregates.NAME_PREFIX} are those of host flavors and pclouds, and "
                "stay."
            )
        _demand_free_name(tx, name, but_by=row)
        aggregates.change(tx, row, name, aggregate.metadata, now)
    return get(tx, row, kept_by)


def set_metadata(
    tx: Tx,
    row: int,
    wanted: Mapping[str, str | None],
    now: datetime,
    kept_by: Keepers = NOBODY,
    *,
    deed: str = "update metadata of",
) -> Aggregate:
    """Set some keys of an aggregate's metadata, and forget those that are ``None``.

    The key that names a zone can be neither forgotten nor emptied, nor changed while servers
    are on the hosts. ``deed`` is what a refusal says was to be done to the aggregate.
    """
    aggregate = get(tx, row)
    wanted = _by_owner(tx, aggregate, wanted, now, kept_by)
    there = aggregates.members(tx, row)
    zone = _wanted_zone(tx, aggregate, wanted, there, f"Cannot {deed} aggregate {row}")
    kept = {key: value for key, value in aggregate.metadata.items() if key not in wanted}
    given = {key: value for key, value in wanted.items() if value is not None}
    if {**kept, **given} != aggregate.metadata:
        changes.add_always_read(tx, sorted(each.provider_id for each in there), now)
    aggregates.change(tx, row, aggregate.name, {**kept, **given}, now)
    if zone is not None:
        moved = [each.host_id for each in there if each.availability_zone != zone]
        hosts.put_into_zone(tx, moved, zone, now)
    return get(tx, row, kept_by)


def _by_owner(
    tx: Tx, aggregate: Aggregate, wanted: Mapping[str, str | None], now: datetime, kept_by: Keepers
) -> Mapping[str, str | None]:
    """Have the keeper carry out what is his; give what is anybody's."""
    owner = owned_aggregates.of(kept_by, aggregate)
    if owner is None:
        strange = sorted(key for key in wanted if key.startswith(owned_aggregates.KEY_PREFIX))
        if strange:
            raise Invalid(
                f"Keys that begin with {owned_aggregates.KEY_PREFIX} are those of host flavors "
                f"and pclouds, and aggregate {aggregate.id} is neither: {strange[0]}."
            )
        return wanted
    if ZONE_KEY in wanted:
        raise Invalid(
            f"Aggregate {aggregate.name} makes no availability zone; its hosts are in one by "
            "other aggregates."
        )
    mine = {key: text for key, text in wanted.items() if owner.keeps_key(key)}
    if mine:
        owner.set_metadata(tx, aggregate, mine, now)
    return {key: text for key, text in wanted.items() if key not in mine}


def _wanted_zone(
    tx: Tx,
    aggregate: Aggregate,
    wanted: Mapping[str, str | None],
    there: Sequence[Member],
    cannot: str,
) -> str | None:
    """The zone that hosts are to be in from now on; ``None`` if nothing is said of it."""
    if ZONE_KEY not in wanted:
        return None
    zone = wanted[ZONE_KEY]
    if not zone:
        raise Invalid(
            f"{cannot}. Reason: Aggregate {aggregate.name} does not support empty named "
            "availability zone."
        )
    if ZONE_NAME.fullmatch(zone) is None:
        raise Invalid(f"{cannot}. Reason: {zone} is no name of an availability zone.")
    others = _other_zones(tx, aggregate, [each.host_id for each in there], zone)
    if others:
        raise Invalid(f"{cannot}. Reason: {_already(others)}")
    moved = {each.name for each in there if each.availability_zone != zone}
    if moved and (hosts.server_counts(tx, moved) or moved & _expecting(tx)):
        raise Invalid(f"{cannot}. Reason: One or more hosts contain instances in this zone.")
    return zone


def _other_zones(tx: Tx, aggregate: Aggregate, host_ids: Collection[int], zone: str) -> list[str]:
    """Zones, other than this one, that hosts are in because of other aggregates."""
    others = {
        each.availability_zone
        for _, each in aggregates.of_hosts(tx, host_ids)
        if each.id != aggregate.id
    }
    return sorted(each for each in others if each is not None and each != zone)


def _already(zones: list[str]) -> str:
    return f"One or more hosts already in availability zone(s) {zones}."


def delete(tx: Tx, row: int, now: datetime, kept_by: Keepers = NOBODY) -> None:
    """Forget an aggregate; raises :class:`Invalid` while hosts are in it."""
    aggregate = get(tx, row)
    owner = owned_aggregates.of(kept_by, aggregate)
    if aggregate.hosts:
        # The sentence is about hosts, and clients know it so.
        raise Invalid(
            f"Cannot remove host from aggregate {row}. Reason: Host aggregate is not empty."
        )
    if owner is not None:
        owner.delete(tx, aggregate, now)
    else:
        aggregates.remove(tx, row)


def add_host(tx: Tx, row: int, name: str, now: datetime, kept_by: Keepers = NOBODY) -> Aggregate:
    """Put a host into an aggregate, and into its zone.

    Raises :class:`NotFound` for a host or an aggregate that is not there, and
    :class:`Conflict` where it is in already, or its servers would come into another zone.
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
    owner = owned_aggregates.of(kept_by, aggregate)
    if owner is not None:
        owner.add_host(tx, aggregate, host, now)
        return get(tx, row, kept_by)
    if zone is not None:
        hosts.put_into_zone(tx, [host.id], zone, now)
    owned_aggregates.put_in(tx, row, aggregate.uuid, host, now)
    return get(tx, row)


def _expecting(tx: Tx) -> set[str]:
    """Hosts to which a server may come, or come back, that is on none or another one now."""
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
    if host.name in _expecting(tx):
        raise Conflict(f"{change} but a server that is being moved may come to the host.")


def remove_host(tx: Tx, row: int, name: str, now: datetime, kept_by: Keepers = NOBODY) -> Aggregate:
    """Take a host out of an aggregate; where that made its zone, it is in another one then.

    Raises :class:`NotFound` unless it is in, and :class:`Conflict` where its servers would
    come into another zone.
    """
    host = hosts.by_names(tx, [name]).get(name)
    aggregate = aggregates.by_row(tx, row)
    if host is None or aggregate is None or name not in aggregate.hosts:
        raise NotFound(f"Cannot remove host {name} in aggregate {row}")
    owner = owned_aggregates.of(kept_by, aggregate)
    if owner is not None:
        owner.remove_host(tx, aggregate, host, now)
        return get(tx, row, kept_by)
    others = [each for _, each in aggregates.of_hosts(tx, [host.id]) if each.id != row]
    zone = _zone_by(others) or host.reported_zone
    _demand_same_zone(
        tx,
        host,
        zone,
        f"Cannot remove host from aggregate {row}. Reason: The host cannot be removed from the",
    )
    hosts.put_into_zone(tx, [host.id], zone, now)
    owned_aggregates.take_out(tx, row, aggregate.uuid, host, now)
    return get(tx, row)


def _zone_by(several: Collection[Aggregate]) -> str | None:
    """The zone that a host is in by its aggregates: there is one at most."""
    zones = (each.availability_zone for each in several)
    return next((zone for zone in zones if zone is not None), None)


def zones_by_host(tx: Tx, host_ids: Collection[int]) -> dict[int, str]:
    """The zones of these hosts that aggregates decide; the others are left out."""
    return {
        host_id: aggregate.availability_zone
        for host_id, aggregate in aggregates.of_hosts(tx, host_ids)
        if aggregate.availability_zone is not None
    }


def forget_host(tx: Tx, host: Host, now: datetime) -> None:
    """Take a host that goes, and so has no servers, out of all its aggregates."""
    for _, aggregate in aggregates.of_hosts(tx, [host.id]):
        aggregates.remove_host(tx, aggregate.id, host.id)
        placement_aggregates.leave(tx, host.provider_uuid, aggregate.uuid, now)
