"""The invariants of the compute room, and the search for violations of them in the store."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from innkeeper.domain.auditing import Finding, Invariant
from innkeeper.store.by_ids import Only
from innkeeper.store.queries.compute import audit, grouping_audit, reports_audit
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.hosts.reconcile import LOST
from innkeeper.systems.compute.moves import audit as move_audit

ROOM = "compute"
_invariant = partial(Invariant, ROOM)
UNBACKED_SERVER = _invariant(
    "unbacked-server",
    "a server on a host holds capacity",
    "Restore its allocations with the amounts of its flavor, or delete the server.",
    "claims the amounts of its flavor on its host, if there is room",
)
HELD_ELSEWHERE = _invariant(
    "held-elsewhere",
    "a server holds capacity of no other host",
    "Find out where the server runs, and replace its allocations with what it uses there.",
)
HELD_BY_HOMELESS = _invariant(
    "held-by-homeless",
    "a server without a host holds nothing",
    "Make sure that no host has it, and delete its allocations.",
    "releases its allocations, if the server is shelved or failed and no order or move is pending",
)
HELD_BY_DELETED = _invariant(
    "held-by-deleted",
    "a deleted server holds nothing",
    "Delete its allocations.",
    "releases its allocations",
)
HOMELESS = _invariant(
    "homeless", "a running server has a host", "Reset its state to error, and delete it."
)
WRONG_USAGE = _invariant(
    "wrong-usage",
    "quota usage is the sum of the servers",
    "Count the project's servers in the database.",
    "counts the project's servers again",
)
IDLE_BUILD = _invariant(
    "idle-build",
    "a server in BUILD has a build order",
    "Delete the server.",
    "sets it to ERROR; it keeps its allocations until it is deleted",
)
IDLE_DELETE = _invariant(
    "idle-delete",
    "a server that is being deleted has a destroy order",
    "Delete the server again.",
    "orders its host's agent again to destroy it",
)
MISNAMED_HOST = _invariant(
    "misnamed-host",
    "a server's host is the one it holds",
    "Find out where the server runs, and evacuate or delete it.",
)
POOL_HOST = _invariant(
    "pool-host",
    "a pool holds no servers",
    "Start the host's agent again; if it is a pool, delete the host's service.",
)
TWO_ZONES = _invariant(
    "two-zones",
    "the aggregates of a host name one zone at most",
    "Remove the host from all but one of these aggregates.",
)
WRONG_ZONE = _invariant(
    "wrong-zone",
    "a host is in the zone that its aggregates or its agent name",
    "Remove the host from an aggregate and add it again.",
    "moves the host to that zone",
)
STRAY_MEMBER = _invariant(
    "stray-member",
    "members of a server group exist, and belong to the group's project",
    "Delete the server, or the group.",
    "removes the membership, if the server does not exist",
)
UNKNOWN_SERVER = _invariant(
    "unknown-server",
    "every server that an agent finds on its host is known",
    "Disable the host and find out whose server it is. Destroy it on the host if it has no owner, "
    "and start the agent again. It uses capacity that may be given to other servers.",
)
LOST_SERVER = _invariant(
    "lost-server",
    "an agent finds every known server of its host",
    "Restore its disks and start the agent again, or delete the server.",
)
LOST_REPORT = _invariant(
    "lost-report",
    "a host has the inventories and traits that its agent reported",
    "Start the agent again; if they were removed on purpose, stop reporting them.",
)
MISDIRECTED_ORDER = _invariant(
    "misdirected-order",
    "pending orders belong to the agent of their host",
    "Start the host's agent again, which takes them over.",
    "assigns them to that agent",
)
ORDER_OF_NOBODY = _invariant(
    "order-of-nobody",
    "pending orders are about servers that exist",
    "There is no manual repair.",
    "ends the order, so that no agent gets it any more",
)
INVARIANTS = (
    *(UNBACKED_SERVER, HELD_ELSEWHERE, HELD_BY_HOMELESS, HELD_BY_DELETED, HOMELESS),
    *move_audit.INVARIANTS,
    *(WRONG_USAGE, IDLE_BUILD, IDLE_DELETE, MISNAMED_HOST, POOL_HOST),
    *(TWO_ZONES, WRONG_ZONE, STRAY_MEMBER),
    *(UNKNOWN_SERVER, LOST_SERVER, LOST_REPORT, MISDIRECTED_ORDER, ORDER_OF_NOBODY),
)


def findings(tx: Tx) -> Iterator[Finding]:
    """Yield all violations in servers, server groups, quotas, hosts and orders."""
    yield from _of_holders(tx)
    yield from move_audit.findings(tx)
    yield from _of_servers(tx)
    yield from zones(tx)
    for uuid, group, exists in grouping_audit.strayed_members(tx):
        why = "belong to different projects" if exists else "do not both exist"
        yield STRAY_MEMBER.broken(uuid, f"server {uuid} and group {group} {why}")
    yield from _of_agents(tx)


def _of_holders(tx: Tx) -> Iterator[Finding]:
    for uuid, host in audit.unbacked_servers(tx):
        yield UNBACKED_SERVER.broken(uuid, f"{uuid} holds nothing of its host {host}")
    for uuid, count in audit.held_elsewhere(tx):
        yield HELD_ELSEWHERE.broken(uuid, f"{uuid} has {count} allocations on other hosts")
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
        yield HOMELESS.broken(uuid, f"{uuid} is {status} and has no host")
    for uuid, host in audit.misnamed_hosts(tx):
        yield MISNAMED_HOST.broken(uuid, f"{uuid} names {host}, which is not the host it holds")
    for host, uuid in audit.hosting_pools(tx):
        yield POOL_HOST.broken(
            host, f"host {host} is on provider {uuid}, which cannot hold servers"
        )


def zones(tx: Tx, only: Only = None) -> Iterator[Finding]:
    """Yield hosts that are in a wrong zone or in several; ``only`` selects the hosts to check."""
    for host, in_force, reported, decided in grouping_audit.zones(tx, only):
        if len(decided) > 1:
            yield TWO_ZONES.broken(host, f"{host} is in {', '.join(sorted(decided))}")
        # Rows that older versions wrote lack the reported zone.
        elif in_force not in (decided or {reported or in_force}):
            yield WRONG_ZONE.broken(
                host, f"{host} is in {in_force}, and should be in {', '.join(decided) or reported}"
            )


def _of_agents(tx: Tx) -> Iterator[Finding]:
    for host, uuid, moment in reports_audit.unknown_on_hosts(tx):
        yield UNKNOWN_SERVER.broken(uuid, f"{host} has {uuid}, as reported at {moment:%F %T}")
    for uuid, host, fault in reports_audit.faulty_servers(tx):
        if fault is not None and fault.get("message") == LOST:
            yield LOST_SERVER.broken(uuid, f"{host} does not have {uuid} any more")
    # Databases query JSON columns in different ways, so all rows are read and compared here.
    has_class, has_trait = reports_audit.kept_classes(tx), reports_audit.kept_traits(tx)
    for host, provider_id, reported in reports_audit.reported_names(tx):
        lost = [
            *(each for each in reported.get("classes", ()) if (provider_id, each) not in has_class),
            *(each for each in reported.get("traits", ()) if (provider_id, each) not in has_trait),
        ]
        if lost:
            yield LOST_REPORT.broken(host, f"{host} lacks {', '.join(lost)}")
    for host, agent, count in reports_audit.misdirected_orders(tx):
        yield MISDIRECTED_ORDER.broken(
            host, f"{count} orders for {host} do not belong to its agent {agent}"
        )
    for number, kind, uuid in reports_audit.orphaned_orders(tx):
        yield ORDER_OF_NOBODY.broken(
            number, f"order {number} to {kind} is about {uuid}, which does not exist"
        )
