"""Check and repair the invariants of pclouds and host flavors in the database.

Unique keys and foreign keys already ensure two invariants: a host is in at most one pool and one
pcloud, and a host of a pcloud is in a pool. Quotas and units are not checked, because a quota may
be lowered below its usage, and a host flavor's units may change.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from innkeeper.domain.auditing import Finding, Invariant
from innkeeper.domain.hosts import OF_PCLOUDS, Dedication
from innkeeper.domain.pclouds import is_open
from innkeeper.store.queries.pclouds import audit
from innkeeper.store.queries.pclouds import hosts as pcloud_hosts
from innkeeper.store.queries.pclouds.audit import Dedicated, Paid
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.grouping import dedications, owned_aggregates
from innkeeper.systems.compute.hosts import hosts
from innkeeper.systems.pclouds import members
from innkeeper.systems.pclouds.ratio_rollout import ROLLED_OUT_AT_ONCE

ROOM = "pclouds"
WRONG_DEDICATION = Invariant(
    ROOM,
    "wrong-dedication",
    "the dedication in a host's row matches the host's pool and pcloud",
    "Run `innkeeper audit --repair`. While the host is in a pcloud, there is no other way.",
    "writes the right dedication into the host's row",
)
STRAY_HOST = Invariant(
    ROOM,
    "stray-host",
    "the aggregate of a host flavor or pcloud has exactly the hosts that belong to it",
    "Compare the aggregate with the hosts of the host flavor or pcloud.",
    "adds the host to the aggregate, or removes the host",
)
ORPHAN = Invariant(
    ROOM,
    "orphaned-aggregate",
    "the host flavor or pcloud of an aggregate exists",
    "Restore the database from a backup, or remove the aggregate's row.",
)
FOREIGN_SERVER = Invariant(
    ROOM,
    "foreign-server",
    "if a server is on a host of a pcloud, the server's hints name this pcloud",
    "Move the server to another host, or delete it.",
)
WRONG_RATIO = Invariant(
    ROOM,
    "wrong-ratio",
    "a host in a pcloud has the allocation ratios of the pcloud; other hosts have their own",
    "Write the inventory again.",
    "applies the right ratios",
)
WRONG_RUN = Invariant(
    ROOM,
    "wrong-run",
    "each host of a pcloud has exactly one correct open billing period, and other hosts have none",
    "Correct the billing period in the database.",
    "ends wrong and duplicate billing periods, and begins a correct one now",
)
INVARIANTS = (WRONG_DEDICATION, STRAY_HOST, ORPHAN, FOREIGN_SERVER, WRONG_RATIO, WRONG_RUN)


def findings(tx: Tx) -> Iterator[Finding]:
    """Yield all findings about hosts of pools and pclouds, and about their aggregates."""
    for each in audit.dedicated(tx):
        expected = _meant(each)
        if expected != (each.dedication, each.dedicated_to):
            present_dedication = (each.dedication, each.dedicated_to)
            yield WRONG_DEDICATION.broken(
                each.name,
                f"host {each.name} has the dedication {present_dedication} in its row, "
                f"but should have {expected}",
            )
    yield from _of_memberships(tx)
    for name, kind in audit.orphans(tx):
        yield ORPHAN.broken(name, f"aggregate {name} belongs to no existing {kind}")
    yield from _of_servers(tx)
    yield from _of_ratios(tx)
    yield from _of_billing_periods(tx)


def _meant(each: Dedicated) -> tuple[str | None, str | None]:
    if each.pool is None:
        return (None, None)
    if each.pcloud is None:
        return (Dedication.POOLED, None)
    opened = is_open(
        is_enabled=bool(each.is_enabled),
        is_replaced=bool(each.is_replaced),
        maintenance=each.maintenance,
    )
    return (Dedication.OPEN if opened else Dedication.CLOSED, each.pcloud)


def _of_memberships(tx: Tx) -> Iterator[Finding]:
    expected, present, mirrored = audit.memberships(tx)
    for name, row in sorted(expected - present):
        yield STRAY_HOST.broken(f"+{row} {name}", f"host {name} is missing from aggregate {row}")
    for name, row in sorted(present - expected):
        yield STRAY_HOST.broken(f"-{row} {name}", f"host {name} is wrongly in aggregate {row}")
    for name, row in sorted(expected ^ mirrored):
        how = "missing from" if (name, row) in expected else "wrongly in"
        yield STRAY_HOST.broken(
            f"~{row} {name}", f"host {name} is {how} aggregate {row} in Placement"
        )


def _of_servers(tx: Tx) -> Iterator[Finding]:
    for uuid, host, pcloud, hints in dedications.residents(tx, OF_PCLOUDS):
        if pcloud not in dedications.named(hints):
            where = "a host flavor's pool" if pcloud is None else f"pcloud {pcloud}"
            yield FOREIGN_SERVER.broken(
                uuid,
                f"server {uuid} is on host {host} of {where}, which the server's hints do not name",
            )


def _of_ratios(tx: Tx, only: Sequence[str] | None = None) -> Iterator[Finding]:
    for name, class_name, ratio, most, total, cpu, ram in audit.ratios(tx, only):
        expected = cpu if class_name == "VCPU" else ram
        if expected is not None and (ratio != expected or most > max(1, total)):
            yield WRONG_RATIO.broken(
                name,
                f"host {name} has an allocation ratio of {ratio:g} and a max_unit of {most:g} for "
                f"{class_name}, but should have a ratio of {expected:g} and a max_unit of at most "
                f"{max(1, total):g}",
            )
    for name, in_force, uuid, cpu, ram in audit.in_force(tx, only):
        pairs = {"VCPU": cpu, "MEMORY_MB": ram}
        should = {key: ratio for key, ratio in pairs.items() if ratio is not None}
        if uuid is None and in_force:
            yield WRONG_RATIO.broken(
                name, f"host {name} is in no pcloud, but has the ratios of a pcloud"
            )
        elif in_force != should:
            yield WRONG_RATIO.broken(
                name, f"host {name} has the ratios {in_force}, but should have {should}"
            )


def _of_billing_periods(tx: Tx) -> Iterator[Finding]:
    periods, due = audit.open_periods(tx)
    for host_id, (machine, meant) in sorted(due.items()):
        found = periods.get(host_id, [])
        if len(found) != 1:
            yield WRONG_RUN.broken(
                host_id,
                f"host {machine} has {len(found)} open billing periods, but should have one",
            )
        elif found != [meant]:
            is_, should = _described(found[0]), _described(meant)
            yield WRONG_RUN.broken(
                host_id, f"host {machine} is billed as {is_}, but should be billed as {should}"
            )
    for host_id in sorted(periods.keys() - due.keys()):
        yield WRONG_RUN.broken(
            host_id, f"the host with row id {host_id} is billed, but should not be"
        )


def _described(paid: Paid) -> str:
    return (
        f"host {paid.name} of pcloud {paid.pcloud}, with {paid.units} unit(s) for project "
        f"{paid.project_id}"
    )


# -- repairs ---------------------------------------------------------------------------------


def dedicate_again(tx: Tx, keys: Sequence[str], now: datetime) -> list[str]:
    """Correct the dedications of hosts, which say which servers a host takes.

    The correct dedication of a host depends on its pool and its pcloud.
    """
    done = []
    for each in audit.dedicated(tx, keys):
        expected = _meant(each)
        if expected != (each.dedication, each.dedicated_to):
            dedications.dedicate(tx, hosts.by_name(tx, each.name), *expected, now)
            done.append(f"host {each.name} has the dedication {expected[0] or 'none'}")
    return done


def put_right(tx: Tx, keys: Sequence[str], now: datetime) -> list[str]:
    """Add missing hosts to the aggregates of host flavors and pclouds. Remove wrong hosts."""
    expected, present, mirrored = audit.memberships(tx)
    done = []
    for name, row in sorted(expected - present):
        if f"+{row} {name}" in keys:
            host = hosts.by_name(tx, name)
            owned_aggregates.add_host(tx, row, owned_aggregates.uuid_of(tx, row), host, now)
            done.append(f"host {name} is added to aggregate {row}")
    for name, row in sorted(present - expected):
        if f"-{row} {name}" in keys:
            host = hosts.by_name(tx, name)
            owned_aggregates.remove_host(tx, row, owned_aggregates.uuid_of(tx, row), host, now)
            done.append(f"host {name} is removed from aggregate {row}")
    for name, row in sorted(expected ^ mirrored):
        if f"~{row} {name}" in keys:
            change_membership = (
                owned_aggregates.join_placement
                if (name, row) in expected
                else owned_aggregates.leave_placement
            )
            change_membership(tx, owned_aggregates.uuid_of(tx, row), hosts.by_name(tx, name), now)
            done.append(f"the membership of host {name} in aggregate {row} is right in Placement")
    return done


def set_ratios(tx: Tx, keys: Sequence[str], now: datetime) -> list[str]:
    """Set the ratios of pclouds on their hosts, and restore other hosts' own ratios."""
    # Each host is repaired once, even if it has several findings.
    names = dict.fromkeys(finding.key for finding in _of_ratios(tx, keys))
    for name in names:
        host = hosts.by_name(tx, name)
        member = pcloud_hosts.by_host(tx, host.id)
        expected = {} if member is None else members.pcloud_of(tx, member).ratios
        dedications.set_ratios(tx, host, expected, now)
    return [f"host {name} has the right ratios" for name in names]


def pay_right(tx: Tx, keys: Sequence[str], now: datetime) -> list[str]:
    """End wrong billing periods of hosts, and begin correct ones for hosts of pclouds.

    Past periods are not changed, because their correct values are unknown.
    """
    periods, due = audit.open_periods(tx)
    done = []
    for host_id in sorted({int(key) for key in keys}):
        expected = [due[host_id][1]] if host_id in due else []
        if periods.get(host_id, []) == expected:
            continue
        pcloud_hosts.end_billing(tx, [host_id], now)
        member = pcloud_hosts.by_host(tx, host_id) if expected else None
        if member is not None:
            members.begin_billing(tx, members.pcloud_of(tx, member), [member], now)
        how = "has one correct" if expected else "no longer has an"
        done.append(f"the host with row id {host_id} {how} open billing period")
    return done


REPAIRS = {
    WRONG_DEDICATION.kind: dedicate_again,
    STRAY_HOST.kind: put_right,
    WRONG_RATIO.kind: set_ratios,
    WRONG_RUN.kind: pay_right,
}
AT_ONCE = {WRONG_RATIO.kind: ROLLED_OUT_AT_ONCE}
"""The number of findings that one transaction repairs, by kind. Only slow repairs have a limit."""
