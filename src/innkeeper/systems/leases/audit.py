"""The leases room's invariants, checked against the store.

Unique and foreign keys ensure that a host is in the freepool at most once, and that only hosts of
the freepool are held.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from innkeeper.domain.auditing import Finding, Invariant
from innkeeper.domain.hosts import OF_LEASES, Dedication
from innkeeper.store.queries.leases import audit, holds
from innkeeper.store.queries.leases.audit import FreepoolRow, HostHolder
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.grouping import dedications
from innkeeper.systems.compute.hosts import hosts

ROOM = "leases"
WRONG_LEASING = Invariant(
    ROOM,
    "wrong-leasing",
    "a host's row has the dedication that the freepool and leases say",
    "Run `innkeeper audit --repair`: no other way exists while a lease holds the host.",
    "writes it into the host's row",
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
    "no two leases hold one host at the same moment",
    "End one of the two leases.",
)
FOREIGN_LODGER = Invariant(
    ROOM,
    "foreign-lodger",
    "a server on a host of the freepool names the reservation that has the host",
    "Move the server to another host, or delete it.",
)
INVARIANTS = (WRONG_LEASING, IN_BOTH, OVERLAP, FOREIGN_LODGER)


def findings(tx: Tx) -> Iterator[Finding]:
    holders = audit.holders(tx)
    for each in audit.kept(tx):
        if each.is_in_freepool and each.is_in_pool:
            yield IN_BOTH.broken(
                each.name, f"host {each.name} is in the freepool and in a host flavor's pool"
            )
            continue
        present, expected = (each.dedication, each.dedicated_to), _meant(each, holders)
        if present != expected:
            yield WRONG_LEASING.broken(
                each.name, f"host {each.name} is {present} in its row, and should be {expected}"
            )
    yield from _overlaps(tx)
    for uuid, host, reservation, hints in dedications.residents(tx, OF_LEASES):
        named = dedications.named_reservation(hints)
        if reservation is None or reservation != named:
            whose = "the freepool" if reservation is None else f"reservation {reservation}"
            yield FOREIGN_LODGER.broken(
                uuid, f"server {uuid} is on host {host} of {whose}, and names {named or 'none'}"
            )


def _meant(
    each: FreepoolRow, holders: Mapping[int, Sequence[HostHolder]]
) -> tuple[str | None, str | None]:
    """Return the dedication that a host's row should have.

    If several are possible, the present dedication is preferred.
    """
    if not each.is_in_freepool:
        return (None, None)
    host_holders = holders.get(each.host_id, ())
    running = [one.reservation for one in host_holders if one.is_running]
    if running:
        is_known = each.dedicated_to in running
        return (Dedication.LEASED, each.dedicated_to if is_known else running[0])
    # An ended reservation may still be draining the host, or may have returned it already.
    if any(one.is_over and one.reservation == each.dedicated_to for one in host_holders):
        return (Dedication.ENDED, each.dedicated_to)
    return (Dedication.FREEPOOL, None)


def _overlaps(tx: Tx) -> Iterator[Finding]:
    by_host = itertools.groupby(holds.windows(tx), key=lambda row: row[0])
    for host_id, rows in by_host:
        last, until = "", None
        for _, lease, start, end in rows:
            if until is not None and start < until:
                yield OVERLAP.broken(
                    host_id, f"host number {host_id} is held by leases {last} and {lease}"
                )
            if until is None or end > until:
                last, until = lease, end


# -- repairs ---------------------------------------------------------------------------------


def dedicate_again(tx: Tx, keys: Sequence[str], now: datetime) -> list[str]:
    """Write the dedications that follow from the freepool and the leases to the hosts' rows."""
    holders = audit.holders(tx)
    done = []
    for each in audit.kept(tx, keys):
        expected = _meant(each, holders)
        is_clear = not (each.is_in_freepool and each.is_in_pool)
        if is_clear and expected != (each.dedication, each.dedicated_to):
            dedications.dedicate(tx, hosts.by_name(tx, each.name), *expected, now)
            done.append(f"host {each.name} is {expected[0] or 'for everybody'}")
    return done


REPAIRS = {WRONG_LEASING.kind: dedicate_again}
