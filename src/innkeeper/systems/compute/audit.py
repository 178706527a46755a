"""The compute room's invariants, checked against the store."""

from __future__ import annotations

from collections.abc import Iterator

from innkeeper.domain.auditing import Finding
from innkeeper.store.queries import compute_audit, grouping_audit
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.moves import audit as move_audit

ROOM = "compute"


def findings(tx: Tx) -> Iterator[Finding]:
    """Everything about servers, their groups, quotas, hosts and orders that is not right."""
    yield from _of_servers(tx)
    yield from _of_sets(tx)


def _of_servers(tx: Tx) -> Iterator[Finding]:
    for uuid, host in compute_audit.unbacked_servers(tx):
        yield Finding(
            ROOM, "a placed server holds capacity", f"{uuid} holds nothing of its host {host}"
        )
    for uuid, count in compute_audit.strayed_allocations(tx):
        yield Finding(
            ROOM,
            "a server holds capacity of no other host",
            f"{uuid} has {count} allocations elsewhere, or was deleted",
        )
    yield from move_audit.findings(tx)
    for row in compute_audit.wrong_usages(tx, move_audit.counted_beside(tx)):
        project, counted, real = row[0], row[1:4], row[4:7]
        yield Finding(
            ROOM,
            "quota usage is the sum of the servers",
            f"project {project} is counted with {counted} servers, vcpus and MB; "
            f"its servers are {real}",
        )
    for (uuid,) in compute_audit.idle_builds(tx):
        yield Finding(ROOM, "someone builds what is in BUILD", f"{uuid} has no build order")
    for (uuid,) in compute_audit.idle_deletes(tx):
        yield Finding(
            ROOM, "someone destroys what is being deleted", f"{uuid} has no destroy order"
        )
    for uuid, host in compute_audit.misnamed_hosts(tx):
        yield Finding(
            ROOM, "a server's host is the one it holds", f"{uuid} names {host}, which is not it"
        )
    for host, uuid in compute_audit.hosting_pools(tx):
        yield Finding(
            ROOM,
            "a pool holds no servers",
            f"host {host} is on provider {uuid}, which cannot hold servers",
        )


def _of_sets(tx: Tx) -> Iterator[Finding]:
    for host, in_force, reported, decided in grouping_audit.zones(tx):
        if len(decided) > 1:
            yield Finding(
                ROOM,
                "a host is in one zone by its aggregates",
                f"{host} is in {', '.join(sorted(decided))}",
            )
        # A host from before zones were kept apart has only the one in force.
        elif in_force not in (decided or {reported or in_force}):
            yield Finding(
                ROOM,
                "a host is in the zone that its aggregates or its agent name",
                f"{host} is in {in_force}, and should be in {', '.join(decided) or reported}",
            )
    for aggregate, host in grouping_audit.dangling_memberships(tx):
        yield Finding(
            ROOM,
            "aggregates and the hosts in them exist",
            f"one of the two is missing: aggregate {aggregate}, host {host}",
        )
    for uuid, group in grouping_audit.strayed_members(tx):
        yield Finding(
            ROOM,
            "server groups and their members exist, and are of one project",
            f"server {uuid} and group {group} are not",
        )
