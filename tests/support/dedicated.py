"""Whose hosts are whose, read straight from the tables, and what must always be so of it.

Nothing here asks the room that keeps pclouds: what it should have done is said a second time,
in plain loops over plain rows, on whichever database. The invariants are those of the seed
*Whole Host Allocation* and of the tables' own docstrings.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

from innkeeper.store.tables import compute, pclouds, placement
from innkeeper.store.transactions import Tx

RATIOS = {"VCPU": "cpu_ratio", "MEMORY_MB": "ram_ratio"}
ENDED = frozenset({"confirmed", "reverted", "completed", "cancelled", "failed", "error"})
"""What the Compute API calls migrations of which nothing is left."""
LEFT_AT_SOURCE = frozenset({"confirming", "done"})
LEFT_AT_DESTINATION = frozenset({"reverting", "cancelling", "failing"})
"""Those after which the server is elsewhere, and something of it is to be cleared away."""
NEVER = datetime(9999, 1, 1, tzinfo=UTC).replace(tzinfo=None)
Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Line:
    """One inventory, and how much of it is held."""

    total: int
    reserved: int
    max_unit: int
    ratio: float
    used: int

    def takes(self, amount: int) -> bool:
        """Whether there is room for so much more."""
        room = (self.total - self.reserved) * self.ratio - self.used
        return amount <= room and amount <= self.max_unit


@dataclass(frozen=True, slots=True)
class World:
    """All rows that have to do with dedicated hosts, at one moment.

    Hosts, their pool rows and their pcloud rows are by the hosts' row ids, pclouds by theirs.
    ``sets`` are the hosts in each kept aggregate, and ``mirrored`` the providers, by its uuid.
    """

    hosts: Mapping[int, Row]
    flavors: Mapping[int, Row]
    pooled: Mapping[int, Row]
    members: Mapping[int, Row]
    pclouds: Mapping[int, Row]
    projects: Mapping[int, frozenset[str]]
    aggregates: Mapping[int, Row]
    sets: Mapping[str, frozenset[int]]
    mirrored: Mapping[str, frozenset[int]]
    servers: Mapping[str, Row]
    moves: tuple[Row, ...]
    orders: Mapping[str, int]
    lines: Mapping[int, Mapping[str, Line]]
    runs: tuple[Row, ...]

    def by_name(self, name: str) -> Row:
        """The host of this name."""
        return next(each for each in self.hosts.values() if each["name"] == name)

    def pcloud(self, uuid: str) -> Row | None:
        """The pcloud of this id."""
        return next((each for each in self.pclouds.values() if each["uuid"] == uuid), None)

    def pcloud_of(self, host_id: int) -> Row | None:
        """The pcloud that a host is in."""
        member = self.members.get(host_id)
        return None if member is None else self.pclouds.get(member["pcloud_id"])

    def members_of(self, uuid: str) -> list[Row]:
        """The hosts of a pcloud."""
        found = self.pcloud(uuid)
        mine = [e for e in self.members.values() if found and e["pcloud_id"] == found["id"]]
        return sorted(mine, key=lambda each: str(each["name"]))

    def units(self) -> Counter[str]:
        """What each project holds, in units."""
        held: Counter[str] = Counter()
        for each in self.members.values():
            held[self.pclouds[each["pcloud_id"]]["project_id"]] += each["units"]
        return held

    def is_open(self, host_id: int) -> bool:
        """Whether a host is in a pcloud whose side of it is open."""
        member, pooled = self.members.get(host_id), self.pooled.get(host_id)
        if member is None or pooled is None:
            return False
        is_enabled = member["is_enabled"] and not member["is_replaced"]
        return bool(is_enabled and pooled["maintenance"] is None)

    def is_empty(self, host_id: int) -> bool:
        """Whether nothing is on a host, or on its way, or held of it.

        What is left on a host that is declared down keeps nobody from giving it back.
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
    """The host that has something left of a server which is elsewhere for good."""
    if move["status"] in LEFT_AT_SOURCE:
        return str(move["source_host"])
    return str(move["dest_host"]) if move["status"] in LEFT_AT_DESTINATION else None


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
    for each in _rows(tx, pclouds.pcloud_projects):
        projects.setdefault(each["pcloud_id"], set()).add(each["project_id"])
    seen = {each["id"]: each["last_seen_at"] for each in _rows(tx, compute.agents)}
    waiting = Counter(
        each["host"] for each in _rows(tx, compute.work_orders) if each["status"] == "waiting"
    )
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
        aggregates={each["id"]: each for each in kept},
        sets={uuid: frozenset(each) for uuid, each in sets.items()},
        mirrored={uuid: frozenset(each) for uuid, each in mirrored.items()},
        servers={
            each["uuid"]: each
            for each in _rows(tx, compute.servers)
            if each["deleted_at"] is None
        },
        moves=tuple(_rows(tx, compute.migrations)),
        orders=waiting,
        lines=_lines(tx),
        runs=tuple(_rows(tx, pclouds.pcloud_runs)),
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
            each["total"],
            each["reserved"],
            each["max_unit"],
            each["allocation_ratio"],
            used[key],
        )
    return found


def named(hints: Mapping[str, Any] | None) -> frozenset[str]:
    """The pclouds that hints name."""
    given = (hints or {}).get("pcloud") or ()
    return frozenset([given] if isinstance(given, str) else given)


def may_take(
    seen: World,
    host_id: int,
    project_id: str,
    hints: Mapping[str, Any],
    *,
    is_boot: bool,
) -> bool:
    """The seed's rule, and what was added to it, for one host: may this request come to it?"""
    mine = seen.pcloud_of(host_id)
    if mine is None:
        return host_id not in seen.pooled and not named(hints)
    is_mine = project_id in seen.projects.get(mine["id"], ()) and seen.is_open(host_id)
    if not named(hints):
        is_own = mine["project_id"] == project_id
        return bool(is_boot and mine["is_automatic"] and is_own and is_mine)
    wanted = hints.get("pcloud_host")
    is_called_so = not is_boot or wanted in (None, seen.members[host_id]["name"])
    return mine["uuid"] in named(hints) and is_mine and is_called_so


# -- what must always be so --------------------------------------------------------------------


def broken(seen: World) -> list[str]:
    """Every way in which the tables contradict each other, or the seed."""
    found = [
        *_memberships(seen),
        *_dedications(seen),
        *_servers(seen),
        *_ratios(seen),
        *_runs(seen),
    ]
    return sorted(found)


def _memberships(seen: World) -> Iterator[str]:
    """I1 and I2, in the tables and in the aggregates, here and at Placement."""
    for host_id in seen.members.keys() - seen.pooled.keys():
        yield f"I2: host {host_id} is in a pcloud and in no pool"
    names = Counter((each["pcloud_id"], each["name"]) for each in seen.members.values())
    yield from (f"the name {each} is used {n} times" for each, n in names.items() if n > 1)
    expected: dict[str, tuple[str, frozenset[int]]] = {}
    for flavor in seen.flavors.values():
        mine = {h for h, e in seen.pooled.items() if e["host_flavor_id"] == flavor["id"]}
        uuid = seen.aggregates[flavor["aggregate_id"]]["uuid"]
        expected[uuid] = (f"Pcloud:host_flavor:{flavor['flavor_id']}", frozenset(mine))
    for pcloud in seen.pclouds.values():
        mine = {h for h, e in seen.members.items() if e["pcloud_id"] == pcloud["id"]}
        uuid = seen.aggregates[pcloud["aggregate_id"]]["uuid"]
        if uuid != pcloud["uuid"]:
            yield f"pcloud {pcloud['uuid']} has aggregate {uuid}"
        expected[uuid] = (f"Pcloud:{pcloud['uuid']}", frozenset(mine))
    told = {each["uuid"]: each["name"] for each in seen.aggregates.values()}
    if told != {uuid: name for uuid, (name, _) in expected.items()}:
        yield f"kept aggregates are {told}"
    for uuid, (name, mine_all) in expected.items():
        if seen.sets.get(uuid) != mine_all:
            yield f"I1: aggregate {name} has {seen.sets.get(uuid)}, and not {mine_all}"
        providers = frozenset(seen.hosts[each]["provider_id"] for each in mine_all)
        if seen.mirrored.get(uuid) != providers:
            yield f"I1: Placement has {seen.mirrored.get(uuid)} in {name}, not {providers}"
    for kind in ("host_flavor", "pcloud"):
        mine_of = [e["uuid"] for e in seen.aggregates.values() if e["kind"] == kind]
        times = Counter(host for uuid in mine_of for host in seen.sets[uuid])
        yield from (f"I1: host {host} is in {n} {kind}s" for host, n in times.items() if n > 1)


def _dedications(seen: World) -> Iterator[str]:
    """What a host's own row says of it."""
    for host_id, host in seen.hosts.items():
        pcloud = seen.pcloud_of(host_id)
        state = "pooled" if host_id in seen.pooled else None
        if pcloud is not None:
            state = "open" if seen.is_open(host_id) else "closed"
        expected = (state, None if pcloud is None else pcloud["uuid"])
        if (host["dedication"], host["dedicated_to"]) != expected:
            told = (host["dedication"], host["dedicated_to"])
            yield f"host {host['name']} is dedicated as {told}, not {expected}"


def _servers(seen: World) -> Iterator[str]:
    """I3: whoever is on a dedicated host, or on the way there, named its pcloud."""
    ids = {each["name"]: host_id for host_id, each in seen.hosts.items()}
    places = [(uuid, each["host"]) for uuid, each in seen.servers.items()]
    for move in seen.moves:
        if move["status"] not in ENDED and move["server_uuid"] in seen.servers:
            ends = {move["source_host"], move["dest_host"]} - {left_on(move)}
            places += [(move["server_uuid"], name) for name in ends]
    for uuid, name in places:
        host_id = ids.get(name)
        if host_id is None:
            continue
        mine = seen.pcloud_of(host_id)
        wanted = named(seen.servers[uuid]["hints"])
        if host_id in seen.pooled and mine is None:
            yield f"I3: server {uuid} is on {name}, which nobody has taken"
        elif mine is not None and mine["uuid"] not in wanted:
            yield f"I3: server {uuid} is on {name} in {mine['uuid']}, and named {set(wanted)}"
        elif mine is None and wanted:
            yield f"I3: server {uuid} is on {name}, and named {set(wanted)}"


def _ratios(seen: World) -> Iterator[str]:
    """I6: hosts have the ratios of their pclouds, and else none that are not theirs."""
    for host_id, host in seen.hosts.items():
        pcloud, lines = seen.pcloud_of(host_id), seen.lines.get(host["provider_id"], {})
        wanted = {} if pcloud is None else ratios_of(pcloud)
        for name in wanted.keys() & lines.keys():
            line = lines[name]
            if line.ratio != wanted[name]:
                yield f"I6: {host['name']} has {line.ratio} of {name}, not {wanted[name]}"
            if line.max_unit > max(line.total, 1):
                yield f"I6: {host['name']} gives {line.max_unit} of {line.total} {name} at once"
        kept = set(host["kept_ratios"] or {})
        if not wanted.keys() & lines.keys() <= kept <= wanted.keys():
            yield f"I6: {host['name']} keeps {kept} for later, and {set(wanted)} are in force"


def ratios_of(pcloud: Row) -> dict[str, float]:
    """What a pcloud says of its hosts, by class."""
    return {
        name: pcloud[column] for name, column in RATIOS.items() if pcloud[column] is not None
    }


def _runs(seen: World) -> Iterator[str]:
    """Exactly the hosts that somebody has are paid for, by who has them, one time each."""
    running = Counter(_run(each) for each in seen.runs if each["ended_at"] is None)
    expected = Counter(
        (
            host_id,
            seen.pclouds[each["pcloud_id"]]["uuid"],
            seen.pclouds[each["pcloud_id"]]["project_id"],
            each["name"],
            each["units"],
        )
        for host_id, each in seen.members.items()
        if not each["is_replaced"]
    )
    if running != expected:
        yield f"runs are {running}, and not {expected}"
    spans: dict[int, list[tuple[datetime, datetime]]] = {}
    for run in seen.runs:
        ended = NEVER if run["ended_at"] is None else run["ended_at"]
        spans.setdefault(run["host_id"], []).append((run["started_at"], ended))
    for host_id, mine in spans.items():
        mine.sort()
        for (start, stop), (later, _) in itertools.pairwise(mine):
            if not start <= stop <= later:
                yield f"host {host_id} is paid for twice at once: {mine}"


def _run(run: Row) -> tuple[Any, ...]:
    keys = ("host_id", "pcloud_uuid", "project_id", "host_name", "units")
    return tuple(run[key] for key in keys)


def overdrawn(before: World, after: World, limits: Mapping[str, int]) -> list[str]:
    """I4: the projects that hold more than they may, and more than they held before."""
    had, has = before.units(), after.units()
    return [
        f"I4: {project_id} holds {count} of {limits[project_id]}"
        for project_id, count in has.items()
        if limits[project_id] >= 0 and count > max(limits[project_id], had[project_id])
    ]


def left_wrongly(before: World, after: World, closing: Collection[int] = ()) -> list[str]:
    """I5: the hosts that left a pcloud, or came or went from a pool, while they were in use.

    Hosts in ``closing`` may have been closed by the same act.
    """
    return [*_left_pclouds(before, after, closing), *_changed_pools(before, after)]


def _left_pclouds(before: World, after: World, closing: Collection[int]) -> Iterator[str]:
    for host_id, member in before.members.items():
        now = after.members.get(host_id)
        if now is not None and now["pcloud_id"] == member["pcloud_id"]:
            continue
        if not before.is_empty(host_id):
            yield f"I5: {host_id} left its pcloud, and was not empty"
        if member["is_enabled"] and host_id not in closing:
            yield f"I5: {host_id} left its pcloud, and was enabled"


def _changed_pools(before: World, after: World) -> Iterator[str]:
    had = {host_id: each["host_flavor_id"] for host_id, each in before.pooled.items()}
    has = {host_id: each["host_flavor_id"] for host_id, each in after.pooled.items()}
    for host_id in {each for each in had | has if had.get(each) != has.get(each)}:
        if host_id in before.members or not before.is_empty(host_id):
            yield f"I5: {host_id} came into a pool or left one, and was in use"
        was, now = before.hosts[host_id]["is_disabled"], after.hosts[host_id]["is_disabled"]
        if host_id in has and (host_id in had or not was or now):
            yield f"I5: {host_id} came into a pool, and was not disabled, or is now"
        if host_id not in has and not now:
            yield f"I5: {host_id} left its pool, and is enabled"
