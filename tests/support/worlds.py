"""Owners of dedicated hosts and the requests they admit, read straight from the tables.

Nothing here calls the pclouds room: its rules are written a second time, as plain loops over
plain rows, for any database.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from innkeeper.store.tables import compute, pclouds, placement
from innkeeper.store.transactions import Tx

ENDED = frozenset({"confirmed", "reverted", "completed", "cancelled", "failed", "error"})
"""The Compute API's statuses of migrations that are over and have left nothing behind."""
LEFT_AT_SOURCE = frozenset({"confirming", "done"})
LEFT_AT_DESTINATION = frozenset({"reverting", "cancelling", "failing"})
"""Statuses of migrations that have left remains at their destination, to be cleaned up."""
Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Line:
    """One inventory, and how much of it is in use."""

    total: int
    reserved: int
    max_unit: int
    ratio: float
    used: int

    def takes(self, amount: int) -> bool:
        """Whether this amount still fits."""
        room = (self.total - self.reserved) * self.ratio - self.used
        return amount <= room and amount <= self.max_unit


@dataclass(frozen=True, slots=True)
class World:
    """All rows about dedicated hosts, at one moment.

    Hosts, their pool rows and their pcloud rows are keyed by the hosts' row ids, pclouds by
    their own. ``accepted`` are the projects that accept plain requests into a pcloud.
    ``alternates`` are the hosts where a server being built is retried. ``sets`` are the hosts
    of each kept aggregate, and ``mirrored`` the providers, by its uuid.
    """

    hosts: Mapping[int, Row]
    flavors: Mapping[int, Row]
    pooled: Mapping[int, Row]
    members: Mapping[int, Row]
    pclouds: Mapping[int, Row]
    projects: Mapping[int, frozenset[str]]
    accepted: Mapping[int, frozenset[str]]
    aggregates: Mapping[int, Row]
    sets: Mapping[str, frozenset[int]]
    mirrored: Mapping[str, frozenset[int]]
    servers: Mapping[str, Row]
    moves: tuple[Row, ...]
    orders: Mapping[str, int]
    alternates: Mapping[str, tuple[str, ...]]
    lines: Mapping[int, Mapping[str, Line]]
    billing_periods: tuple[Row, ...]

    def by_name(self, name: str) -> Row:
        """Return the host with this name."""
        return next(each for each in self.hosts.values() if each["name"] == name)

    def pcloud(self, uuid: str) -> Row | None:
        """Return the pcloud with this id."""
        return next((each for each in self.pclouds.values() if each["uuid"] == uuid), None)

    def pcloud_of(self, host_id: int) -> Row | None:
        """Return the pcloud that a host is in."""
        member = self.members.get(host_id)
        return None if member is None else self.pclouds.get(member["pcloud_id"])

    def members_of(self, uuid: str) -> list[Row]:
        """Return the hosts of a pcloud."""
        found = self.pcloud(uuid)
        mine = [e for e in self.members.values() if found and e["pcloud_id"] == found["id"]]
        return sorted(mine, key=lambda each: str(each["name"]))

    def units(self) -> Counter[str]:
        """Return the units of each project's hosts."""
        held: Counter[str] = Counter()
        for each in self.members.values():
            held[self.pclouds[each["pcloud_id"]]["project_id"]] += each["units"]
        return held

    def is_open(self, host_id: int) -> bool:
        """Whether a host is in a pcloud and enabled there."""
        member, pooled = self.members.get(host_id), self.pooled.get(host_id)
        if member is None or pooled is None:
            return False
        is_enabled = member["is_enabled"] and not member["is_replaced"]
        return bool(is_enabled and pooled["maintenance"] is None)

    def is_empty(self, host_id: int) -> bool:
        """Whether a host has no present or incoming servers, and no allocations.

        Remains on a host that is forced down do not prevent its release.
        """
        host = self.hosts[host_id]
        name, is_lost = host["name"], host["is_forced_down"]
        if any(each["host"] == name for each in self.servers.values()):
            return False
        moves = [e for e in self.moves if name in (e["source_host"], e["dest_host"])]
        going = [each for each in moves if each["status"] not in ENDED]
        left = [each for each in going if is_lost and left_on(each) == name]
        if len(left) < len(going) or (self.orders.get(name) and not is_lost):
            return False
        lines = self.lines.get(host["provider_id"], {}).values()
        return bool(left) or not any(line.used for line in lines)


def left_on(move: Row) -> str | None:
    """Return the host with remains of a server that has left it for good, if any."""
    if move["status"] in LEFT_AT_SOURCE:
        return str(move["source_host"])
    return str(move["dest_host"]) if move["status"] in LEFT_AT_DESTINATION else None


def stranded_without(seen: World, uuid: str) -> set[str]:
    """Return the shelved servers that are on no host and could return only to this pcloud."""
    found = set()
    for server in seen.servers.values():
        hints, is_shelved = server["hints"], server["status"] == "SHELVED_OFFLOADED"
        wanted = named(hints)
        if not is_shelved or server["host"] is not None or uuid not in wanted:
            continue
        others = [seen.pcloud(each) for each in wanted if each != uuid]
        users = [seen.projects.get(each["id"], ()) for each in others if each is not None]
        if not hints.get("pcloud_unasked") and not any(
            server["project_id"] in each for each in users
        ):
            found.add(str(server["uuid"]))
    return found


def world(tx: Tx) -> World:
    """Read everything."""
    members = _rows(tx, pclouds.pcloud_hosts)
    kept = [e for e in _rows(tx, compute.aggregates) if e["kind"] is not None]
    uuids = {each["id"]: each["uuid"] for each in kept}
    sets: dict[str, set[int]] = {uuid: set() for uuid in uuids.values()}
    mirrored: dict[str, set[int]] = {uuid: set() for uuid in uuids.values()}
    for each in _rows(tx, compute.aggregate_hosts):
        if each["aggregate_id"] in uuids:
            sets[uuids[each["aggregate_id"]]].add(each["host_id"])
    for each in _rows(tx, placement.resource_provider_aggregates):
        if each["aggregate_uuid"] in mirrored:
            mirrored[each["aggregate_uuid"]].add(each["resource_provider_id"])
    projects: dict[int, set[str]] = {}
    accepted: dict[int, set[str]] = {}
    for each in _rows(tx, pclouds.pcloud_projects):
        projects.setdefault(each["pcloud_id"], set()).add(each["project_id"])
        if each["has_accepted"]:
            accepted.setdefault(each["pcloud_id"], set()).add(each["project_id"])
    seen = {each["id"]: each["last_seen_at"] for each in _rows(tx, compute.agents)}
    waiting = [e for e in _rows(tx, compute.work_orders) if e["status"] == "waiting"]
    return World(
        hosts={
            each["id"]: {**each, "last_seen_at": seen[each["agent_id"]]}
            for each in _rows(tx, compute.hosts)
        },
        flavors={each["id"]: each for each in _rows(tx, pclouds.host_flavors)},
        pooled={each["host_id"]: each for each in _rows(tx, pclouds.pool_hosts)},
        members={each["host_id"]: each for each in members},
        pclouds={each["id"]: each for each in _rows(tx, pclouds.pclouds)},
        projects={row: frozenset(each) for row, each in projects.items()},
        accepted={row: frozenset(each) for row, each in accepted.items()},
        aggregates={each["id"]: each for each in kept},
        sets={uuid: frozenset(each) for uuid, each in sets.items()},
        mirrored={uuid: frozenset(each) for uuid, each in mirrored.items()},
        servers={
            each["uuid"]: each for each in _rows(tx, compute.servers) if each["deleted_at"] is None
        },
        moves=tuple(_rows(tx, compute.migrations)),
        orders=Counter(each["host"] for each in waiting),
        alternates={
            each["server_uuid"]: tuple(each["alternates"] or ())
            for each in waiting
            if each["kind"] == "build"
        },
        lines=_lines(tx),
        billing_periods=tuple(_rows(tx, pclouds.billing_periods)),
    )


def _rows(tx: Tx, table: sa.Table) -> list[Row]:
    return [dict(each) for each in tx.execute(sa.select(table)).mappings()]


def _lines(tx: Tx) -> dict[int, dict[str, Line]]:
    names = {each["id"]: each["name"] for each in _rows(tx, placement.resource_classes)}
    used: Counter[tuple[int, int]] = Counter()
    for each in _rows(tx, placement.allocations):
        used[each["resource_provider_id"], each["resource_class_id"]] += each["used"]
    found: dict[int, dict[str, Line]] = {}
    for each in _rows(tx, placement.inventories):
        key = (each["resource_provider_id"], each["resource_class_id"])
        found.setdefault(key[0], {})[names[key[1]]] = Line(
            each["total"], each["reserved"], each["max_unit"], each["allocation_ratio"], used[key]
        )
    return found


def named(hints: Mapping[str, Any] | None) -> frozenset[str]:
    """Return the pclouds that hints name."""
    given = (hints or {}).get("pcloud") or ()
    return frozenset([given] if isinstance(given, str) else given)


def takes_unasked(seen: World, pcloud: Row, project_id: str) -> bool:
    """Whether new servers of a project may use a pcloud that they do not name."""
    may_use = project_id in seen.projects.get(pcloud["id"], ())
    is_willing = project_id in {pcloud["project_id"], *seen.accepted.get(pcloud["id"], ())}
    return bool(pcloud["is_automatic"] and may_use and is_willing)


def may_take(
    seen: World, host_id: int, project_id: str, hints: Mapping[str, Any], *, is_boot: bool
) -> bool:
    """Whether a host admits this request, by the rule of dedicated hosts."""
    mine = seen.pcloud_of(host_id)
    if mine is None:
        return host_id not in seen.pooled and not named(hints)
    if not named(hints):
        return is_boot and seen.is_open(host_id) and takes_unasked(seen, mine, project_id)
    is_mine = project_id in seen.projects.get(mine["id"], ()) and seen.is_open(host_id)
    wanted = hints.get("pcloud_host")
    is_called_so = not is_boot or wanted in (None, seen.members[host_id]["name"])
    return mine["uuid"] in named(hints) and is_mine and is_called_so
