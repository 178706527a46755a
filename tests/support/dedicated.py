"""Checks the invariants of dedicated hosts, and of each step that changes them.

The invariants come from the design *Whole Host Allocation* and the docstrings of the tables. They
are written as plain loops over the rows that :mod:`tests.support.worlds` reads.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from tests.support.worlds import ENDED, Row, World, left_on, named

RATIOS = {"VCPU": "cpu_ratio", "MEMORY_MB": "ram_ratio"}
NEVER = datetime(9999, 1, 1, tzinfo=UTC).replace(tzinfo=None)


def broken(seen: World) -> list[str]:
    """Return all contradictions between the tables, or between a table and the specification."""
    found = [
        *_memberships(seen),
        *_dedications(seen),
        *_servers(seen),
        *_ratios(seen),
        *_billing_periods(seen),
    ]
    return sorted(found)


def _memberships(seen: World) -> Iterator[str]:
    """Check I1 and I2, in the tables and in the aggregates, here and in Placement."""
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
    reported = {each["uuid"]: each["name"] for each in seen.aggregates.values()}
    if reported != {uuid: name for uuid, (name, _) in expected.items()}:
        yield f"kept aggregates are {reported}"
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
    """Check the dedication in each host's own row."""
    for host_id, host in seen.hosts.items():
        pcloud = seen.pcloud_of(host_id)
        state = "pooled" if host_id in seen.pooled else None
        if pcloud is not None:
            state = "open" if seen.is_open(host_id) else "closed"
        expected = (state, None if pcloud is None else pcloud["uuid"])
        if (host["dedication"], host["dedicated_to"]) != expected:
            reported = (host["dedication"], host["dedicated_to"])
            yield f"host {host['name']} is dedicated as {reported}, not {expected}"


def _servers(seen: World) -> Iterator[str]:
    """Check I3: a server on a dedicated host, or on its way there, named the host's pcloud."""
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
    """Check I6: hosts have the ratios of their pclouds, and otherwise only their own."""
    for host_id, host in seen.hosts.items():
        wanted, lines = said_of(seen, host_id), seen.lines.get(host["provider_id"], {})
        for name in wanted.keys() & lines.keys():
            line = lines[name]
            if line.ratio != wanted[name]:
                yield f"I6: {host['name']} has {line.ratio} of {name}, not {wanted[name]}"
            if line.max_unit > max(line.total, 1):
                yield f"I6: {host['name']} gives {line.max_unit} of {line.total} {name} at once"
        kept = set(host["kept_ratios"] or {})
        if not wanted.keys() & lines.keys() <= kept <= wanted.keys():
            yield f"I6: {host['name']} keeps {kept} for later, and {set(wanted)} are in force"


def said_of(seen: World, host_id: int) -> dict[str, float]:
    """Return the ratios of a host's pcloud, or the old ones until the rollout reaches the host."""
    pcloud = seen.pcloud_of(host_id)
    if pcloud is None:
        return {}
    if pcloud["settled_to"] is None or host_id <= pcloud["settled_to"]:
        return ratios_of(pcloud)
    kept = seen.hosts[host_id]["kept_ratios"] or {}
    return {name: each[0] for name, each in kept.items()}


def ratios_of(pcloud: Row) -> dict[str, float]:
    """Return a pcloud's ratios, by class."""
    return {name: pcloud[column] for name, column in RATIOS.items() if pcloud[column] is not None}


def _billing_periods(seen: World) -> Iterator[str]:
    """Check that each allocated host, and no other, has one open billing period of its owner."""
    running = Counter(_billed(each) for each in seen.billing_periods if each["ended_at"] is None)
    expected = Counter(
        (
            host_id,
            seen.pclouds[each["pcloud_id"]]["uuid"],
            seen.pclouds[each["pcloud_id"]]["project_id"],
            each["name"],
            each["units"],
        )
        for host_id, each in seen.members.items()
        if not each["is_replaced"] or each["units"]
    )
    if running != expected:
        yield f"billing periods are {running}, and not {expected}"
    spans: dict[int, list[tuple[datetime, datetime]]] = {}
    for period in seen.billing_periods:
        ended = NEVER if period["ended_at"] is None else period["ended_at"]
        spans.setdefault(period["host_id"], []).append((period["started_at"], ended))
    for host_id, mine in spans.items():
        mine.sort()
        for (start, stop), (later, _) in itertools.pairwise(mine):
            if not start <= stop <= later:
                yield f"host {host_id} is paid for twice at once: {mine}"


def _billed(period: Row) -> tuple[Any, ...]:
    keys = ("host_id", "pcloud_uuid", "project_id", "host_name", "units")
    return tuple(period[key] for key in keys)


def overdrawn(before: World, after: World, limits: Mapping[str, int]) -> list[str]:
    """Return the projects that violate I4: above their quota, with more units than before.

    A replaced host that returns to service is the exception.
    """
    had, has = before.units(), after.units()
    for host_id, each in after.members.items():
        was = before.members.get(host_id, each)
        if each["is_replaced"] and was["is_replaced"]:
            owner = after.pclouds[each["pcloud_id"]]["project_id"]
            has[owner] -= each["units"] - was["units"]
    return [
        f"I4: {project_id} holds {count} of {limits[project_id]}"
        for project_id, count in has.items()
        if limits[project_id] >= 0 and count > max(limits[project_id], had[project_id])
    ]


def accepted_wrongly(before: World, after: World, by: tuple[str, str] | None) -> list[str]:
    """Return acceptances that appeared without a request, or for a pcloud's former owner.

    ``by`` is the pcloud and the project of the last request to accept.
    """
    said = _accepted(before) | ({by} if by is not None else set())
    owners = {each["uuid"]: each["project_id"] for each in before.pclouds.values()}
    found = [f"{project_id} did not accept {uuid}" for uuid, project_id in _accepted(after) - said]
    for row, pcloud in after.pclouds.items():
        is_given_away = owners.get(pcloud["uuid"], pcloud["project_id"]) != pcloud["project_id"]
        if is_given_away and after.accepted.get(row):
            found.append(f"{set(after.accepted[row])} accepted {pcloud['uuid']} of another owner")
    return sorted(found)


def inherited_wrongly(before: World, after: World) -> list[str]:
    """Return the pclouds whose new owners inherited choices of the former owners."""
    owners = {each["uuid"]: each["project_id"] for each in before.pclouds.values()}
    return [
        f"{each['project_id']} never said this of {each['uuid']}"
        for each in after.pclouds.values()
        if owners.get(each["uuid"], each["project_id"]) != each["project_id"]
        and (each["is_automatic"] or each["size"] is not None)
    ]


def _accepted(seen: World) -> set[tuple[str, str]]:
    return {
        (seen.pclouds[row]["uuid"], project_id)
        for row, projects in seen.accepted.items()
        for project_id in projects
    }


def left_wrongly(before: World, after: World, closing: Collection[int] = ()) -> list[str]:
    """Return violations of I5: hosts in use that left a pcloud, or entered or left a pool.

    Hosts in ``closing`` may have been disabled by the same step.
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
