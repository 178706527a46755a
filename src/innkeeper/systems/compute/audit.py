"""Check the invariants of servers, server groups, hosts and orders in the database."""

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
    "a server on a host has allocations there",
    "Restore the server's allocations with the amounts of its flavor, or delete the server.",
    "claims the amounts of its flavor on its host, if the host has enough free capacity",
)
HELD_ELSEWHERE = _invariant(
    "held-elsewhere",
    "a server has allocations on no host but its own",
    "Find out where the server runs, and replace its allocations with the amounts that it uses on "
    "that host.",
)
HELD_BY_HOMELESS = _invariant(
    "held-by-homeless",
    "a server without a host has no allocations",
    "Make sure that the server is on no host, and delete its allocations.",
    "releases the allocations, if the server is shelved or failed and has no pending order or move",
)
HELD_BY_DELETED = _invariant(
    "held-by-deleted",
    "a deleted server has no allocations",
    "Delete the server's allocations.",
    "releases the allocations",
)
HOMELESS = _invariant(
    "homeless",
    "a running server has a host",
    "Reset the state of the server to error, and delete the server.",
)
WRONG_USAGE = _invariant(
    "wrong-usage",
    "the quota usage of a project is the sum over its servers",
    "Correct the project's quota usage in the database.",
    "computes the quota usage again from the project's servers",
)
IDLE_BUILD = _invariant(
    "idle-build",
    "a server in BUILD has a build order",
    "Delete the server.",
    "sets the server to ERROR, and keeps its allocations until the server is deleted",
)
IDLE_DELETE = _invariant(
    "idle-delete",
    "a server that is being deleted has a destroy order",
    "Delete the server again.",
    "gives the host's agent a new destroy order, or deletes the server if it has no host",
)
MISNAMED_HOST = _invariant(
    "misnamed-host",
    "the row of a server refers to the provider of the server's host",
    "Find out where the server runs, and evacuate or delete the server.",
)
POOL_HOST = _invariant(
    "pool-host",
    "the provider of each host can hold servers. A pool, for example, cannot",
    "Restart the host's agent. If the provider is a pool, delete the host's compute service.",
)
TWO_ZONES = _invariant(
    "two-zones",
    "the aggregates of a host name at most one availability zone",
    "Remove the host from all but one of these aggregates.",
)
WRONG_ZONE = _invariant(
    "wrong-zone",
    "a host is in the availability zone that its aggregates name. If they name none, it is in the "
    "availability zone that its agent reports",
    "Remove the host from an aggregate and add the host again.",
    "moves the host to the right availability zone",
)
STRAY_MEMBER = _invariant(
    "stray-member",
    "members of a server group exist, and belong to the group's project",
    "Delete the server or the group.",
    "removes the membership, if the server or the group does not exist",
)
UNKNOWN_SERVER = _invariant(
    "unknown-server",
    "every server that an agent finds on its host is in the database",
    "Disable the host, because the server uses capacity that other servers may get. Find out who "
    "owns the server. If it has no owner, destroy it on the host and restart the agent.",
)
LOST_SERVER = _invariant(
    "lost-server",
    "the agent of a host finds every server that the database has on this host",
    "Restore the server's disks and restart the agent, or delete the server.",
)
LOST_REPORT = _invariant(
    "lost-report",
    "a host has the inventories and traits that its agent reported",
    "Restart the agent. If an inventory or trait was removed on purpose, change the agent's "
    "configuration instead.",
)
MISDIRECTED_ORDER = _invariant(
    "misdirected-order",
    "pending orders are assigned to the agent of their host",
    "Restart the host's agent. It then takes over the orders.",
    "assigns the orders to that agent",
)
ORDER_OF_NOBODY = _invariant(
    "order-of-nobody",
    "the server of a pending order exists",
    "There is no manual repair.",
    "ends the order, so that no agent gets it",
)
INVARIANTS = (
    *(UNBACKED_SERVER, HELD_ELSEWHERE, HELD_BY_HOMELESS, HELD_BY_DELETED, HOMELESS),
    *move_audit.INVARIANTS,
    *(WRONG_USAGE, IDLE_BUILD, IDLE_DELETE, MISNAMED_HOST, POOL_HOST),
    *(TWO_ZONES, WRONG_ZONE, STRAY_MEMBER),
    *(UNKNOWN_SERVER, LOST_SERVER, LOST_REPORT, MISDIRECTED_ORDER, ORDER_OF_NOBODY),
)


def findings(tx: Tx) -> Iterator[Finding]:
    """Yield all findings about servers, server groups, quotas, hosts and orders."""
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
        yield UNBACKED_SERVER.broken(uuid, f"server {uuid} has no allocations on its host {host}")
    for uuid, count in audit.held_elsewhere(tx):
        yield HELD_ELSEWHERE.broken(uuid, f"server {uuid} has {count} allocations on other hosts")
    for uuid, count in audit.held_without_host(tx):
        yield HELD_BY_HOMELESS.broken(uuid, f"server {uuid} has {count} allocations but no host")
    for uuid, count in audit.held_by_deleted(tx):
        yield HELD_BY_DELETED.broken(uuid, f"server {uuid} is deleted but has {count} allocations")


def _of_servers(tx: Tx) -> Iterator[Finding]:
    for row in audit.wrong_usages(tx, move_audit.counted_beside(tx)):
        project, counted, real = row[0], tuple(row[1:4]), tuple(row[4:7])
        yield WRONG_USAGE.broken(
            project,
            f"the quota usage (servers, vcpus, MB) of project {project} is {counted}, "
            f"but should be {real}",
        )
    for (uuid,) in audit.idle_builds(tx):
        yield IDLE_BUILD.broken(uuid, f"server {uuid} is in BUILD but has no build order")
    for (uuid,) in audit.idle_deletes(tx):
        yield IDLE_DELETE.broken(uuid, f"server {uuid} is being deleted but has no destroy order")
    for uuid, status in reports_audit.running_without_host(tx):
        yield HOMELESS.broken(uuid, f"server {uuid} is {status} but has no host")
    for uuid, host in audit.misnamed_hosts(tx):
        yield MISNAMED_HOST.broken(
            uuid, f"server {uuid} has the host {host}, but the provider of another host"
        )
    for host, uuid in audit.hosting_pools(tx):
        yield POOL_HOST.broken(
            host, f"host {host} is on provider {uuid}, which cannot hold servers"
        )


def zones(tx: Tx, only: Only = None) -> Iterator[Finding]:
    """Yield findings about hosts in a wrong availability zone, or in several availability zones.

    ``only`` has the names of the hosts to check. ``None`` means all hosts.
    """
    for host, in_force, reported, decided in grouping_audit.zones(tx, only):
        if len(decided) > 1:
            yield TWO_ZONES.broken(
                host, f"host {host} is in the availability zones {', '.join(sorted(decided))}"
            )
        # Rows that older versions wrote lack the zone that the agent reported.
        elif in_force not in (decided or {reported or in_force}):
            yield WRONG_ZONE.broken(
                host,
                f"host {host} is in availability zone {in_force}, "
                f"but should be in {', '.join(decided) or reported}",
            )


def _of_agents(tx: Tx) -> Iterator[Finding]:
    for host, uuid, moment in reports_audit.unknown_on_hosts(tx):
        yield UNKNOWN_SERVER.broken(
            uuid, f"host {host} has the unknown server {uuid}, as reported at {moment:%F %T}"
        )
    for uuid, host, fault in reports_audit.faulty_servers(tx):
        if fault is not None and fault.get("message") == LOST:
            yield LOST_SERVER.broken(uuid, f"host {host} no longer has server {uuid}")
    # Databases query JSON columns in different ways, so all rows are read and compared here.
    has_class, has_trait = reports_audit.kept_classes(tx), reports_audit.kept_traits(tx)
    for host, provider_id, reported in reports_audit.reported_names(tx):
        lost = [
            *(each for each in reported.get("classes", ()) if (provider_id, each) not in has_class),
            *(each for each in reported.get("traits", ()) if (provider_id, each) not in has_trait),
        ]
        if lost:
            yield LOST_REPORT.broken(
                host, f"host {host} lacks {', '.join(lost)}, which its agent reported"
            )
    for host, agent, count in reports_audit.misdirected_orders(tx):
        yield MISDIRECTED_ORDER.broken(
            host, f"{count} orders for host {host} are not assigned to its agent {agent}"
        )
    for number, kind, uuid in reports_audit.orphaned_orders(tx):
        yield ORDER_OF_NOBODY.broken(
            number, f"order {number} ({kind}) is for server {uuid}, which does not exist"
        )
