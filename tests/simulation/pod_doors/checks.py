"""Checks what must be true of simulated doors and their pods at the end of a run.

Nothing here calls the pods room: its rules are written a second time, as plain loops.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import product
from typing import Any

import sqlalchemy as sa

from innkeeper.domain.door import MAY_TAKE
from innkeeper.engine.maintenance import invariants
from tests.simulation.pod_doors.clients import (
    ACCEPTED,
    AWAY,
    COMPUTE,
    MISSING,
    OK,
    PROJECTS,
    SERVER,
    VOLUME,
    VOLUME_KIND,
    Create,
)
from tests.simulation.pod_doors.processes import SimulatedDoor, SimulatedPod
from tests.simulation.stepping.services import SimulatedService

SERVERS = sa.text(
    "SELECT uuid, name, project_id, status, task_state AS task, vcpus, memory_mb, 0 AS size_gb "
    "FROM servers WHERE deleted_at IS NULL"
)
VOLUMES = sa.text(
    "SELECT uuid, name, project_id, status, status AS task, 0 AS vcpus, 0 AS memory_mb, size_gb "
    "FROM volumes"
)
RESTING = (None, "available", "in-use", "error", "awaiting-transfer")
RESIZED = "VERIFY_RESIZE"
ROUTINGS = sa.text(
    "SELECT r.top_id, r.bottom_id, r.resource_type AS kind, r.project_id, r.changing_at, "
    "p.pod_name AS pod, r.server_group_uuid AS in_group FROM pod_routings r "
    "LEFT JOIN pods p ON p.id = r.pod_id WHERE r.resource_type IN ('server', 'volume') "
    "AND r.top_id NOT LIKE :notes"
).bindparams(notes=f"{MAY_TAKE}%")
"""All routings, except those that only note which project asked to take over a volume."""
MEMBERS = sa.text(
    "SELECT g.name AS in_group, s.uuid FROM servers s "
    "JOIN server_group_members m ON m.server_uuid = s.uuid "
    "JOIN server_groups g ON g.id = m.group_id WHERE s.deleted_at IS NULL"
)
"""The servers of the groups of a pod. The name of a group is its id at the door."""
BINDINGS = sa.text(
    "SELECT project_id, group_name, az_name, pod_uuid, sequence, started_at, ended_at, end_reason "
    "FROM pod_bindings ORDER BY project_id, group_name, sequence"
)
ENDED = "ended"
PAGE = 2
Row = Mapping[str, Any]


@dataclass(slots=True)
class Seen:
    """All resources in the pods, and the routings and bindings of the door."""

    alive: Sequence[Row]
    routings: Sequence[Row]
    bindings: Sequence[Row]


def seen(door: SimulatedDoor, pods: Mapping[str, SimulatedPod]) -> Seen:
    """Read the door and all pods."""
    alive: list[Row] = []
    for pod in pods.values():
        with pod.store.read() as tx:
            for kind, query in ((SERVER, SERVERS), (VOLUME_KIND, VOLUMES)):
                rows = tx.execute(query).mappings()
                alive += [{**row, "kind": kind, "pod": pod.name} for row in rows]
    with door.store.read() as tx:
        routings = [dict(row) for row in tx.execute(ROUTINGS).mappings()]
        bindings = [dict(row) for row in tx.execute(BINDINGS).mappings()]
    return Seen(alive, routings, bindings)


def unsettled(found: Seen) -> Sequence[Row]:
    """Return the resources and routings with which something is left to do.

    If a deletion never arrived, the resource stays, and its routing is marked for an hour.
    """
    busy = [row for row in found.alive if row["task"] not in RESTING or row["status"] == RESIZED]
    alive = {row["uuid"] for row in found.alive}
    return busy + [
        row for row in found.routings if row["bottom_id"] not in alive or row["changing_at"]
    ]


def faults(
    door: SimulatedDoor, pods: Mapping[str, SimulatedPod], creates: Sequence[Create]
) -> Iterator[str]:
    """Yield what is wrong with a door and pods at rest."""
    each: SimulatedService
    for each in (door, *pods.values()):
        with each.store.read() as tx:
            yield from (f"{each.name}: audit: {one}" for one in invariants.findings(tx))
    found = seen(door, pods)
    yield from _routed(found)
    yield from _bound(found.bindings)
    yield from _grouped(found.routings, pods)
    of_create: dict[str, dict[str, str]] = defaultdict(dict)
    for row in found.alive:
        of_create[row["name"].partition("-")[0]][row["uuid"]] = row["project_id"]
    for create in creates:
        yield from _create(create, of_create[create.name].keys())
        if not create.owners.issuperset(of_create[create.name].values()):
            yield f"{create.name} of {sorted(create.owners)} is {of_create[create.name]}"


def _routed(found: Seen) -> Iterator[str]:
    """Check that each resource has one routing, and each routing leads to a resource."""
    known: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in found.routings:
        known[row["kind"], row["bottom_id"]].append(row)
        if row["bottom_id"] != row["top_id"]:
            yield f"the routing of {row['kind']} {row['top_id']} names {row['bottom_id']}"
    for row in found.alive:
        name = f"{row['kind']} {row['uuid']} ({row['name']}) in {row['pod']}"
        routings = known.pop((row["kind"], row["uuid"]), [])
        if not routings:
            yield f"{name} is lost: the door does not know it"
        elif len(routings) > 1:
            yield f"{name} has {len(routings)} routings"
        elif (routings[0]["pod"], routings[0]["project_id"]) != (row["pod"], row["project_id"]):
            yield f"{name} of {row['project_id']} has a wrong routing: {routings[0]}"
    for (kind, uuid), routings in known.items():
        yield f"{kind} {uuid} is not in {routings[0]['pod']}, and has a routing"


def _grouped(routings: Sequence[Row], pods: Mapping[str, SimulatedPod]) -> Iterator[str]:
    """Check that each server group has its servers in one pod, in one group there."""
    homes: dict[str, set[str]] = defaultdict(set)
    expected: set[tuple[str, str]] = set()
    for row in routings:
        if row["in_group"] is not None:
            homes[row["in_group"]].add(row["pod"])
            expected.add((row["in_group"], row["top_id"]))
    for group, names in homes.items():
        if len(names) > 1:
            yield f"the servers of the group {group} are in {sorted(names)}"
    there: Counter[tuple[str, str]] = Counter()
    for pod in pods.values():
        with pod.store.read() as tx:
            there.update((row[0], row[1]) for row in tx.execute(MEMBERS))
    for pair in expected - there.keys():
        yield f"the server {pair[1]} is not in its group {pair[0]} in its pod"


def _bound(bindings: Sequence[Row]) -> Iterator[str]:
    """Check that the history of each project and group has no gap and no overlap."""
    groups: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in bindings:
        groups[row["project_id"], row["group_name"]].append(row)
    for name, rows in groups.items():
        if [row["sequence"] for row in rows] != list(range(1, len(rows) + 1)):
            yield f"the bindings of {name} are numbered {[row['sequence'] for row in rows]}"
        starts = {row["started_at"] for row in rows}
        last: dict[str, Row] = {}
        for row in rows:
            if row["ended_at"] and row["end_reason"] != ENDED and row["ended_at"] not in starts:
                yield f"there is a gap after the binding {row}"
            before = last.get(row["az_name"])
            if before and (not before["ended_at"] or before["ended_at"] > row["started_at"]):
                yield f"the bindings {before} and {row} overlap"
            last[row["az_name"]] = row


def _create(create: Create, alive: Set[str]) -> Iterator[str]:
    """Check one request: acknowledged resources exist once, and refused ones do not exist."""
    if lost := create.told - alive - create.deleted:
        yield f"{create.name}: {sorted(lost)} was acknowledged, and is lost"
    if alive & create.gone:
        yield f"{create.name}: {sorted(alive & create.gone)} was deleted, and exists"
    if len(alive) + len(create.gone) > create.most:
        gone = len(create.gone)
        yield f"{create.name}: {len(alive)} exist, and {gone} are gone, of {create.most}"
    if create.status == ACCEPTED and len(alive) + len(create.deleted) < create.least:
        yield f"{create.name}: {len(alive)} exist of {create.least}"
    if create.status not in (None, ACCEPTED, AWAY) and alive:
        yield f"{create.name}: was refused with {create.status}, and has {sorted(alive)}"


async def shown_faults(
    door: SimulatedDoor, pods: Mapping[str, SimulatedPod], creates: Sequence[Create]
) -> Sequence[str]:
    """Return what is wrong with what the door shows when everything is at rest."""
    found, wrong = seen(door, pods), []
    for project in PROJECTS:
        own = [row for row in found.alive if row["project_id"] == project]
        for kind, place in ((SERVER, f"{COMPUTE}/servers"), (VOLUME_KIND, f"{VOLUME}/volumes")):
            expected = Counter(row["uuid"] for row in own if row["kind"] == kind)
            listed = await _listed(door, f"{place}/detail", f"{kind}s", project)
            if listed != expected:
                wrong.append(f"{project}: the list of {kind}s has {listed}, not {expected}")
        used, limits = await _quotas(door, project)
        real = _sums(own)
        if used != real:
            wrong.append(f"{project}: the quota counts {used}, but there are {real}")
        if any(0 <= most < number for number, most in zip(real, limits, strict=True)):
            wrong.append(f"{project}: {real} are more than the quota {limits}")
    owners = {row["uuid"]: row["project_id"] for row in found.alive}
    for create in creates:
        place = f"{COMPUTE}/servers" if create.kind == SERVER else f"{VOLUME}/volumes"
        for uuid, project in product(sorted(create.told), sorted(create.owners)):
            status, _ = await door.ask("GET", f"{place}/{uuid}", None, f"user:{project}")
            if status != (OK if owners.get(uuid) == project else MISSING):
                wrong.append(f"{create.name}: {project} sees {uuid} with the status {status}")
    return wrong


async def _listed(door: SimulatedDoor, path: str, key: str, project: str) -> Counter[str]:
    """Return how often a list has each id, page by page."""
    counted: Counter[str] = Counter()
    target = f"{path}?limit={PAGE}"
    while target:
        status, told = await door.ask("GET", target, None, f"user:{project}")
        if status != OK or told.get("is_partial"):
            counted[f"answered with {status}, {told.get('is_partial')}"] += 1
            break
        counted.update(each["id"] for each in told[key])
        links = told.get(f"{key}_links", [])
        target = links[0]["href"].removeprefix(f"http://{door.name}") if links else ""
    return counted


async def _quotas(door: SimulatedDoor, project: str) -> tuple[Sequence[int], Sequence[int]]:
    """Return what the quotas of the door count, and the limits."""
    used: list[int] = []
    limits: list[int] = []
    for place, names in (
        (COMPUTE, ("Instances", "Cores", "RAM")),
        (VOLUME, ("Volumes", "Gigabytes")),
    ):
        _, told = await door.ask("GET", f"{place}/limits", None, f"user:{project}")
        absolute = told["limits"]["absolute"]
        used += [absolute[f"total{name}Used"] for name in names]
        kinds = {"RAM": "RAMSize", "Gigabytes": "VolumeGigabytes"}
        limits += [absolute[f"maxTotal{kinds.get(name, name)}"] for name in names]
    return used, limits


def _sums(rows: Sequence[Row]) -> Sequence[int]:
    servers = [row for row in rows if row["kind"] == SERVER]
    volumes = [row for row in rows if row["kind"] == VOLUME_KIND]
    return [
        len(servers),
        sum(row["vcpus"] for row in servers),
        sum(row["memory_mb"] for row in servers),
        len(volumes),
        sum(row["size_gb"] for row in volumes),
    ]
