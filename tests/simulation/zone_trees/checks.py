"""Checks what must be true of a simulated tree in the end. It reads the tables of all zones.

Nothing here calls the zones room: its rules are written a second time, as plain loops.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from innkeeper.domain.zones import Destination, EntryScope, digest
from innkeeper.engine.maintenance import invariants
from innkeeper.systems.zones.sealing import NotOurs, Sealer
from tests.simulation.zone_trees.clients import ACCEPTED, FLAVOR, Create
from tests.simulation.zone_trees.network import Network
from tests.simulation.zone_trees.processes import SimulatedZone, address_of

ALIVE = sa.text(
    "SELECT uuid, name, project_id, host, status, task_state, vcpus, memory_mb FROM servers "
    "WHERE deleted_at IS NULL"
)
BELOW = sa.text(
    "SELECT z.uuid, z.project_id, z.state, z.batch_min, z.vcpus, z.memory_mb, c.name AS child "
    "FROM zone_servers z JOIN child_zones c ON c.id = z.child_id"
)
USAGES = sa.text("SELECT project_id, servers, vcpus, memory_mb FROM quota_usages")
BUILT = "built"
SCOPE = digest(
    {"flavor": FLAVOR["id"], "image": None, "availability_zone": None, "host": None, "hints": {}}
)
"""The digest of every request in this simulation: all ask for the same flavor, and nothing else."""
Row = Mapping[str, Any]


@dataclass(slots=True)
class Seen:
    """The rows of one zone."""

    servers: Sequence[Row]
    below: Sequence[Row]
    usages: Mapping[str, tuple[int, int, int]]
    findings: Sequence[str] = field(default_factory=list)


def seen(zone: SimulatedZone) -> Seen:
    """Read a zone."""
    with zone.store.read() as tx:
        servers = [dict(row) for row in tx.execute(ALIVE).mappings()]
        below = [dict(row) for row in tx.execute(BELOW).mappings()]
        usages = {row[0]: tuple(row[1:]) for row in tx.execute(USAGES)}
        findings = [str(each) for each in invariants.findings(tx)]
    return Seen(servers, below, usages, findings)


def is_settled(zone: SimulatedZone) -> bool:
    """Return whether nothing is left to do in a zone."""
    with zone.store.read() as tx:
        busy = any(row.task_state is not None for row in tx.execute(ALIVE))
        return not busy and all(row.state == BUILT for row in tx.execute(BELOW))


def faults(
    zones: Mapping[str, SimulatedZone],
    parents: Mapping[str, str],
    creates: Sequence[Create],
    network: Network,
) -> Iterator[str]:
    """Yield what is wrong with a tree at rest."""
    all_ = {name: seen(zone) for name, zone in zones.items()}
    for name, one in all_.items():
        yield from (f"{name}: audit: {each}" for each in one.findings)
        yield from _quota(name, one)
        yield from _known(name, all_, parents)
        yield from _planned(zones[name], one, network)
    homes: dict[str, list[str]] = defaultdict(list)
    of_create: dict[str, set[str]] = defaultdict(set)
    for name, one in all_.items():
        for row in one.servers:
            homes[row["uuid"]].append(name)
            of_create[row["name"].partition("-")[0]].add(row["uuid"])
    for uuid, places in homes.items():
        if len(places) > 1:
            yield f"server {uuid} was built twice: in {places}"
    for create in creates:
        yield from _create(create, of_create[create.name])


def _create(create: Create, alive: set[str]) -> Iterator[str]:
    """Check one request: acknowledged servers exist, and refused ones do not."""
    lost = create.servers - alive - create.deleted
    if lost:
        yield f"{create.name}: servers {sorted(lost)} were acknowledged, and are lost"
    if alive & create.gone:
        yield f"{create.name}: servers {sorted(alive & create.gone)} were deleted, and exist"
    if create.status == ACCEPTED and alive - create.servers:
        yield f"{create.name}: servers {sorted(alive - create.servers)} exist beside those told"
    if create.status is not None and create.status != ACCEPTED and alive:
        yield f"{create.name}: was refused with {create.status}, and has {sorted(alive)}"
    if create.status is None and alive and not create.least <= len(alive) <= create.most:
        yield f"{create.name}: {len(alive)} servers for {create.least} to {create.most}"


def _quota(name: str, one: Seen) -> Iterator[str]:
    """Check that quotas count each server of the zone, and of the zones below it, once.

    Each server of a zone parent counts for its own project, and also for all projects of the parent
    together.
    """
    counted: dict[str, tuple[int, int, int]] = {}
    for row in (*one.servers, *one.below):
        prefix, colon, _ = row["project_id"].partition(":")
        for key in {row["project_id"], prefix + colon} if colon else {row["project_id"]}:
            servers, vcpus, memory_mb = counted.get(key, (0, 0, 0))
            counted[key] = servers + 1, vcpus + row["vcpus"], memory_mb + row["memory_mb"]
    for project in counted.keys() | one.usages.keys():
        real, sums = counted.get(project, (0, 0, 0)), one.usages.get(project, (0, 0, 0))
        if real != sums:
            yield f"{name}: quota of {project} counts {sums}, but there are {real}"


def _known(name: str, all_: Mapping[str, Seen], parents: Mapping[str, str]) -> Iterator[str]:
    """Check that a zone and its parent know the same servers."""
    if name not in parents:
        return
    above = {row["uuid"]: row for row in all_[parents[name]].below if row["child"] == name}
    prefix = f"up-{parents[name]}:"
    here = {
        row["uuid"]: row
        for row in (*all_[name].servers, *all_[name].below)
        if row["project_id"].startswith(prefix)
    }
    for uuid in here.keys() - above.keys():
        yield f"{name}: server {uuid} is an orphan: {parents[name]} does not know it"
    for uuid in above.keys() - here.keys():
        yield f"{parents[name]}: server {uuid} is not in {name}"
    for uuid in here.keys() & above.keys():
        if prefix + above[uuid]["project_id"] != here[uuid]["project_id"]:
            yield f"server {uuid} changed its project between {parents[name]} and {name}"


def _planned(zone: SimulatedZone, one: Seen, network: Network) -> Iterator[str]:
    """Check that servers of zone parents are on the hosts of the entries sent for them.

    The zone chooses the hosts itself if a parent asked for servers without entries.
    """
    assert zone.process is not None, "it runs"
    sealer = zone.process.service.sealer
    assert sealer is not None, "it has a key"
    sent, left = _sent_to(zone.name, network), _left_to(zone.name, network)
    users: dict[str, set[str]] = defaultdict(set)
    for row in one.servers:
        if ":" not in row["project_id"] or row["uuid"] in left:
            continue
        hosts = set()
        for blob in sent[row["uuid"]]:
            host, entry = _opened(sealer, blob, row["project_id"])
            hosts.add(host)
            if host == row["host"]:
                users[entry].add(row["uuid"])
        if row["host"] not in hosts:
            yield f"{zone.name}: server {row['uuid']} is on {row['host']}, planned: {hosts}"
    for entry, made in users.items():
        if len(made) > 1:
            yield f"{zone.name}: entry {entry} made several servers: {sorted(made)}"


def _sent_to(zone: str, network: Network) -> Mapping[str, Sequence[str]]:
    """Return the entries that were sent to a zone for each server."""
    sent: dict[str, list[str]] = defaultdict(list)
    for name, signed in network.sent:
        is_create = signed.method == "POST" and signed.url == address_of(zone) + "/servers"
        if name == zone and is_create:
            for each in json.loads(signed.body)["zone"].get("entries", ()):
                sent[each["id"]].append(each["blob"])
    return sent


def _left_to(zone: str, network: Network) -> set[str]:
    """Return the servers that a zone was asked to place itself."""
    return {
        uuid
        for name, signed in network.sent
        if name == zone and signed.method == "POST" and signed.url == address_of(zone) + "/servers"
        for uuid in json.loads(signed.body)["zone"].get("servers", ())
    }


def _opened(sealer: Sealer, blob: str, project_id: str) -> tuple[str | None, str]:
    try:
        place = sealer.open(blob, EntryScope(project_id, SCOPE)).place
    except NotOurs:
        return None, ""
    return (place.host, place.server_id) if isinstance(place, Destination) else (None, "")
