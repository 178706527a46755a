"""Check the invariants of leases and of the freepool in the database.

The freepool is the set of hosts that are kept for leases.

Unique keys and foreign keys already ensure that a host is in the freepool at most once, and that
leases hold only hosts of the freepool.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from innkeeper.domain.auditing import Finding, Invariant
from innkeeper.domain.hosts import OF_LEASES
from innkeeper.domain.ids import ServerId
from innkeeper.domain.leases import HeldWindow
from innkeeper.store.queries.leases import audit, freepool, holds, preemptions, slot_servers
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.grouping import dedications
from innkeeper.systems.compute.hosts import hosts
from innkeeper.systems.leases import audit_parts

ROOM = "leases"
WRONG_LEASING = Invariant(
    ROOM,
    "wrong-leasing",
    "the dedication in a host's row matches the freepool and the leases",
    "Run `innkeeper audit --repair`. While a lease holds the host, there is no other way.",
    "writes the right dedication into the host's row",
)
IN_BOTH = Invariant(
    ROOM,
    "in-both",
    "no host is in the freepool and in a host flavor's pool",
    "Delete one of the two rows in the database.",
)
OVERLAP = Invariant(
    ROOM,
    "overlapping-holds",
    "leases never hold more of a host than the host has",
    "End one of the leases that hold the host at that time.",
)
FOREIGN_LODGER = Invariant(
    ROOM,
    "foreign-lodger",
    "a server on a host of the freepool belongs to a reservation that uses the host, as a whole or "
    "in slots. While no reservation uses the host, the server is preemptible",
    "Move the server to another host, or delete it.",
)
INVARIANTS = (WRONG_LEASING, IN_BOTH, OVERLAP, FOREIGN_LODGER, *audit_parts.INVARIANTS)


def findings(tx: Tx) -> Iterator[Finding]:
    holders = audit.holders(tx)
    for each in audit.kept(tx):
        if each.is_in_freepool and each.is_in_pool:
            yield IN_BOTH.broken(
                each.name, f"host {each.name} is in the freepool and in a host flavor's pool"
            )
            continue
        present, expected = (each.dedication, each.dedicated_to), audit_parts.meant(each, holders)
        if present != expected:
            yield WRONG_LEASING.broken(
                each.name,
                f"host {each.name} has the dedication {present} in its row, "
                f"but should have {expected}",
            )
    yield from _overlaps(tx)
    in_slots, guests = slot_servers.everywhere(tx), _guests(tx)
    for uuid, host, reservation, hints in dedications.residents(tx, OF_LEASES):
        named = dedications.named_reservation(hints)
        if reservation is None and (uuid in in_slots or uuid in guests):
            continue
        if reservation is None or reservation != named:
            whose = "the freepool" if reservation is None else f"reservation {reservation}"
            yield FOREIGN_LODGER.broken(
                uuid,
                f"server {uuid} is on host {host} of {whose}, "
                f"but the reservation that it names is {named or 'none'}",
            )
    yield from audit_parts.findings(tx)


def _guests(tx: Tx) -> set[ServerId]:
    """Return the preemptible servers, except those on hosts that a reservation uses."""
    taken = preemptions.taken_hosts(tx)
    return {uuid for uuid, host in preemptions.everywhere(tx).items() if host not in taken}


def _overlaps(tx: Tx) -> Iterator[Finding]:
    """Find the hosts where leases have reserved more than the host's capacity at some time."""
    by_host: dict[int, list[HeldWindow]] = {}
    for each in holds.windows(tx, None):
        by_host.setdefault(each.provider_id, []).append(each)
    for host in freepool.for_calendar(tx, None):
        reason = _overbooked(by_host.get(host.provider_id, ()), host.capacities)
        if reason is not None:
            name = host.facts["hypervisor_hostname"]
            yield OVERLAP.broken(host.host_id, f"host {name} {reason}")


def _overbooked(held: Sequence[HeldWindow], capacities: Mapping[str, int]) -> str | None:
    """Return how the holds of one host exceed the host's capacity, or ``None`` if they fit.

    A hold is the part of a host that one lease has reserved for a period.
    """
    for moment in sorted({each.start_at for each in held}):
        present = [each for each in held if each.start_at <= moment < each.end_at]
        if len(present) > 1 and any(each.unit_amounts is None for each in present):
            return f"is reserved as a whole by one lease, but also by other leases, at {moment}"
        for name in sorted({name for each in present for name in each.unit_amounts or {}}):
            used = sum(each.units * (each.unit_amounts or {}).get(name, 0) for each in present)
            if used > capacities.get(name, 0):
                return f"has {capacities.get(name, 0)} {name}, but leases hold {used} at {moment}"
    return None


# -- repairs ---------------------------------------------------------------------------------


def dedicate_again(tx: Tx, keys: Sequence[str], now: datetime) -> list[str]:
    """Correct the dedications of hosts, which say which servers a host takes.

    The correct dedication of a host depends on the freepool and the leases.
    """
    holders = audit.holders(tx)
    done = []
    for each in audit.kept(tx, keys):
        expected = audit_parts.meant(each, holders)
        is_clear = not (each.is_in_freepool and each.is_in_pool)
        if is_clear and expected != (each.dedication, each.dedicated_to):
            dedications.dedicate(tx, hosts.by_name(tx, each.name), *expected, now)
            done.append(f"host {each.name} has the dedication {expected[0] or 'none'}")
    return done


REPAIRS = {WRONG_LEASING.kind: dedicate_again, **audit_parts.REPAIRS}
