"""What agents said last of their hosts, and what they are told, against what is kept."""

from __future__ import annotations

from collections.abc import Iterator

from innkeeper.domain.auditing import Finding, Invariant
from innkeeper.store.queries.compute import reports_audit
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.hosts.reconcile import LOST

ROOM = "compute"
UNKNOWN_SERVER = Invariant(
    ROOM,
    "unknown-server",
    "what an agent finds on its host is known here",
    "Disable the host, find out whose the server is, destroy it there if it is nobody's, and "
    "start the agent again. It uses what may be sold to others.",
)
LOST_SERVER = Invariant(
    ROOM,
    "lost-server",
    "what is known here is what an agent finds on its host",
    "Bring its disks back and start the agent again, or delete the server.",
)
LOST_REPORT = Invariant(
    ROOM,
    "lost-report",
    "a host has the inventories and traits that its agent reported",
    "Start the agent again; if they were taken away on purpose, have it report them no more.",
)
MISDIRECTED_ORDER = Invariant(
    ROOM,
    "misdirected-order",
    "orders wait for the agent that speaks for their host",
    "Start the host's agent again, which takes them over.",
    "gives them to that agent",
)
ORDER_OF_NOBODY = Invariant(
    ROOM,
    "order-of-nobody",
    "orders that wait are about servers that are there",
    "Nothing else can be done about it.",
    "ends the order, which no agent is given any more",
)
INVARIANTS = (UNKNOWN_SERVER, LOST_SERVER, LOST_REPORT, MISDIRECTED_ORDER, ORDER_OF_NOBODY)


def findings(tx: Tx) -> Iterator[Finding]:
    """Where agents and the store do not say the same, or orders reach nobody."""
    for host, uuid, moment in reports_audit.unknown_on_hosts(tx):
        yield UNKNOWN_SERVER.broken(uuid, f"{host} has {uuid}, as was said at {moment:%F %T}")
    for uuid, host, fault in reports_audit.faulty_servers(tx):
        if fault is not None and fault.get("message") == LOST:
            yield LOST_SERVER.broken(uuid, f"{host} has {uuid} no more")
    yield from _lost_reports(tx)
    for host, agent, count in reports_audit.misdirected_orders(tx):
        yield MISDIRECTED_ORDER.broken(
            host, f"{count} orders for {host} do not wait for its agent {agent}"
        )
    for number, kind, uuid in reports_audit.orphaned_orders(tx):
        yield ORDER_OF_NOBODY.broken(
            number, f"order {number} to {kind} is about {uuid}, which is not there"
        )


def _lost_reports(tx: Tx) -> Iterator[Finding]:
    # What is in a JSON column is asked for differently by every database, so all is read.
    has_class, has_trait = reports_audit.kept_classes(tx), reports_audit.kept_traits(tx)
    for host, provider_id, reported in reports_audit.reported_names(tx):
        lost = [
            *(each for each in reported.get("classes", ()) if (provider_id, each) not in has_class),
            *(each for each in reported.get("traits", ()) if (provider_id, each) not in has_trait),
        ]
        if lost:
            yield LOST_REPORT.broken(host, f"{host} lacks {', '.join(lost)}")
