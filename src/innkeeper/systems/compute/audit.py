"""The compute room's invariants, checked against the store."""

from __future__ import annotations

from collections.abc import Iterator

from innkeeper.domain.auditing import Finding, Invariant
from innkeeper.store.by_ids import Only
from innkeeper.store.queries.compute import audit, grouping_audit, reports_audit
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.hosts import reports_audit as agent_reports_audit
from innkeeper.systems.compute.moves import audit as move_audit

ROOM = "compute"
UNBACKED_SERVER = Invariant(
    ROOM,
    "unbacked-server",
    "a placed server holds capacity",
    "Put back what it held, with the amounts of its flavor, or delete the server.",
    "claims what its flavor takes of its host, if there is room",
)
HELD_ELSEWHERE = Invariant(
    ROOM,
    "held-elsewhere",
    "a server holds capacity of no other host",
    "Find out where the server runs, and replace its allocations with what it uses there.",
)
HELD_BY_HOMELESS = Invariant(
    ROOM,
    "held-by-homeless",
    "a server that is nowhere holds nothing",
    "Make sure that no host has it, and delete its allocations.",
    "gives it back, if no agent is told anything of the server and it is shelved or failed",
)
HELD_BY_DELETED = Invariant(
    ROOM,
    "held-by-deleted",
    "a deleted server holds nothing",
    "Delete its allocations.",
    "gives it back",
)
HOMELESS = Invariant(
    ROOM, "homeless", "a server that runs is on a host", "Reset its state to error, and delete it."
)
WRONG_USAGE = Invariant(
    ROOM,
    "wrong-usage",
    "quota usage is the sum of the servers",
    "Count the project's servers in the database.",
    "counts the project's servers anew",
)
IDLE_BUILD = Invariant(
    ROOM,
    "idle-build",
    "someone builds what is in BUILD",
    "Delete the server.",
    "puts it into ERROR; it holds what it held until somebody deletes it",
)
IDLE_DELETE = Invariant(
    ROOM,
    "idle-delete",
    "someone destroys what is being deleted",
    "Delete the server again.",
    "tells its host's agent again to destroy it",
)
MISNAMED_HOST = Invariant(
    ROOM,
    "misnamed-host",
    "a server's host is the one it holds",
    "Find out where the server runs, and evacuate or delete it.",
)
POOL_HOST = Invariant(
    ROOM,
    "pool-host",
    "a pool holds no servers",
    "Start the host's agent again; if it is a pool, delete the host's service.",
)
TWO_ZONES = Invariant(
    ROOM,
    "two-zones",
    "a host is in one zone by its aggregates",
    "Take the host out of all of these aggregates but one.",
)
WRONG_ZONE = Invariant(
    ROOM,
    "wrong-zone",
    "a host is in the zone that its aggregates or its agent name",
    "Take the host out of an aggregate and put it back.",
    "puts the host into that zone",
)
STRAY_MEMBER = Invariant(
    ROOM,
    "stray-member",
    "members of server groups are there, and of their group's project",
    "Delete the server, or the group.",
    "removes the membership, if the server is not there",
)
INVARIANTS = (
    UNBACKED_SERVER,
    HELD_ELSEWHERE,
    HELD_BY_HOMELESS,
    HELD_BY_DELETED,
    HOMELESS,
    *move_audit.INVARIANTS,
    WRONG_USAGE,
    IDLE_BUILD,
    IDLE_DELETE,
    MISNAMED_HOST,
    POOL_HOST,
    TWO_ZONES,
    WRONG_ZONE,
    STRAY_MEMBER,
    *agent_reports_audit.INVARIANTS,
)


def findings(tx: Tx) -> Iterator[Finding]:
    """Everything about servers, their groups, quotas, hosts and orders that is not right."""
    yield from _of_holders(tx)
    yield from move_audit.findings(tx)
    yield from _of_servers(tx)
    yield from _of_sets(tx)
    yield from agent_reports_audit.findings(tx)


def _of_holders(tx: Tx) -> Iterator[Finding]:
    for uuid, host in audit.unbacked_servers(tx):
        yield UNBACKED_SERVER.broken(uuid, f"{uuid} holds nothing of its host {host}")
    for uuid, count in audit.held_elsewhere(tx):
        yield HELD_ELSEWHERE.broken(uuid, f"{uuid} has {count} allocations elsewhere")
    for uuid, count in audit.held_without_host(tx):
        yield HELD_BY_HOMELESS.broken(uuid, f"{uuid} has {count} allocations and no host")
    for uuid, count in audit.held_by_deleted(tx):
        yield HELD_BY_DELETED.broken(uuid, f"{uuid} has {count} allocations and is deleted")


def _of_servers(tx: Tx) -> Iterator[Finding]:
    for row in audit.wrong_usages(tx, move_audit.counted_beside(tx)):
        project, counted, real = row[0], tuple(row[1:4]), tuple(row[4:7])
        yield WRONG_USAGE.broken(
            project,
            f"project {project} is counted with {counted} servers, vcpus and MB; "
            f"its servers are {real}",
        )
    for (uuid,) in audit.idle_builds(tx):
        yield IDLE_BUILD.broken(uuid, f"{uuid} has no build order")
    for (uuid,) in audit.idle_deletes(tx):
        yield IDLE_DELETE.broken(uuid, f"{uuid} has no destroy order")
    for uuid, status in reports_audit.running_without_host(tx):
        yield HOMELESS.broken(uuid, f"{uuid} is {status}, and nowhere")
    for uuid, host in audit.misnamed_hosts(tx):
        yield MISNAMED_HOST.broken(uuid, f"{uuid} names {host}, which is not it")
    for host, uuid in audit.hosting_pools(tx):
        yield POOL_HOST.broken(
            host, f"host {host} is on provider {uuid}, which cannot hold servers"
        )


def _of_sets(tx: Tx) -> Iterator[Finding]:
    yield from zones(tx)
    for uuid, group, is_there in grouping_audit.strayed_members(tx):
        why = "are of two projects" if is_there else "are not both there"
        yield STRAY_MEMBER.broken(uuid, f"server {uuid} and group {group} {why}")


def zones(tx: Tx, only: Only = None) -> Iterator[Finding]:
    """Hosts, all or these, that are in another zone than they should be, or in two."""
    for host, in_force, reported, decided in grouping_audit.zones(tx, only):
        if len(decided) > 1:
            yield TWO_ZONES.broken(host, f"{host} is in {', '.join(sorted(decided))}")
        # A host from before zones were kept apart has only the one in force.
        elif in_force not in (decided or {reported or in_force}):
            yield WRONG_ZONE.broken(
                host, f"{host} is in {in_force}, and should be in {', '.join(decided) or reported}"
            )
