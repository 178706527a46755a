"""The pclouds room's invariants, checked against the store.

That a host is in one pool and one pcloud at most, and in a pcloud only from a pool, the
database sees to by its keys. That a project holds no more units than its quota cannot be seen
afterwards: a quota may be lowered below what is held. Nor can a host's units be compared with
those of its flavor, which may have changed since the host was allocated.
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
    "a host's row names the same dedication as pools and pclouds do",
    "Run `innkeeper audit --repair`: nothing else is possible while a pcloud has the host.",
    "writes it into the host's row",
)
STRAY_HOST = Invariant(
    ROOM,
    "stray-host",
    "the aggregates of host flavors and pclouds hold the hosts of these, at Placement too",
    "Compare the aggregate with what the host flavor or pcloud says.",
    "puts the host in, or takes it out",
)
ORPHAN = Invariant(
    ROOM,
    "orphaned-aggregate",
    "an aggregate of this room stands for a host flavor or a pcloud",
    "Restore the database from a backup, or remove the aggregate's row.",
)
FOREIGN_SERVER = Invariant(
    ROOM,
    "foreign-server",
    "a server on a dedicated host names the pcloud that the host is in",
    "Move the server to another host, or delete it.",
)
WRONG_RATIO = Invariant(
    ROOM,
    "wrong-ratio",
    "hosts have the ratios of their pcloud, and their own when they are in none",
    "Write the inventory anew.",
    "puts the ratios in force",
)
WRONG_RUN = Invariant(
    ROOM,
    "wrong-run",
    "the hosts of pclouds are paid for, each once and as what it is, and no others are",
    "Correct the run in the database.",
    "ends the runs that are wrong or too many, and begins a right one now",
)
INVARIANTS = (WRONG_DEDICATION, STRAY_HOST, ORPHAN, FOREIGN_SERVER, WRONG_RATIO, WRONG_RUN)


def findings(tx: Tx) -> Iterator[Finding]:
    """All that is not as it must be."""
    for each in audit.dedicated(tx):
        wanted = _meant(each)
        if wanted != (each.dedication, each.dedicated_to):
            said = (each.dedication, each.dedicated_to)
            yield WRONG_DEDICATION.broken(
                each.name, f"host {each.name} is {said} in its row, and should be {wanted}"
            )
    yield from _of_memberships(tx)
    for name, kind in audit.orphans(tx):
        yield ORPHAN.broken(name, f"aggregate {name} stands for no {kind}")
    yield from _of_servers(tx)
    yield from _of_ratios(tx)
    yield from _of_runs(tx)


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
    wanted, present, mirrored = audit.memberships(tx)
    for name, row in sorted(wanted - present):
        yield STRAY_HOST.broken(f"+{row} {name}", f"host {name} is not in aggregate {row}")
    for name, row in sorted(present - wanted):
        yield STRAY_HOST.broken(f"-{row} {name}", f"host {name} is in aggregate {row}")
    for name, row in sorted(wanted ^ mirrored):
        how = "not in" if (name, row) in wanted else "in"
        yield STRAY_HOST.broken(
            f"~{row} {name}", f"host {name} is {how} aggregate {row} at Placement"
        )


def _of_servers(tx: Tx) -> Iterator[Finding]:
    for uuid, host, pcloud, hints in dedications.residents(tx, OF_PCLOUDS):
        if pcloud not in dedications.named(hints):
            where = "a pool" if pcloud is None else f"pcloud {pcloud}"
            yield FOREIGN_SERVER.broken(
                uuid, f"server {uuid} is on host {host}, which is in {where}, and does not name it"
            )


def _of_ratios(tx: Tx, only: Sequence[str] | None = None) -> Iterator[Finding]:
    for name, class_name, ratio, most, total, cpu, ram in audit.ratios(tx, only):
        wanted = cpu if class_name == "VCPU" else ram
        if wanted is not None and (ratio != wanted or most > max(1, total)):
            yield WRONG_RATIO.broken(
                name,
                f"host {name} gives out {class_name} {ratio:g} times and at most {most:g} at "
                f"once, and should {wanted:g} times",
            )
    for name, in_force, uuid, cpu, ram in audit.in_force(tx, only):
        pairs = {"VCPU": cpu, "MEMORY_MB": ram}
        should = {key: ratio for key, ratio in pairs.items() if ratio is not None}
        if uuid is None and in_force:
            yield WRONG_RATIO.broken(name, f"host {name} is in no pcloud, and has ratios of one")
        elif in_force != should:
            yield WRONG_RATIO.broken(
                name, f"host {name} has the ratios {in_force}, and should have {should}"
            )


def _of_runs(tx: Tx) -> Iterator[Finding]:
    periods, due = audit.open_periods(tx)
    for host_id, (machine, meant) in sorted(due.items()):
        said = periods.get(host_id, [])
        if len(said) != 1:
            yield WRONG_RUN.broken(host_id, f"host {machine} is paid for {len(said)} times")
        elif said != [meant]:
            yield WRONG_RUN.broken(
                host_id,
                f"host {machine} is paid for as {_told(said[0])}, and should be as {_told(meant)}",
            )
    for host_id in sorted(periods.keys() - due.keys()):
        yield WRONG_RUN.broken(host_id, f"host number {host_id} is paid for, and should not be")


def _told(paid: Paid) -> str:
    return (
        f"host {paid.name} of pcloud {paid.pcloud}, with {paid.units} unit(s) of project "
        f"{paid.project_id}"
    )


# -- repairs ---------------------------------------------------------------------------------


def dedicate_again(tx: Tx, keys: Sequence[str], now: datetime) -> list[str]:
    """Have hosts' rows say what pools and pclouds say."""
    told = []
    for each in audit.dedicated(tx, keys):
        wanted = _meant(each)
        if wanted != (each.dedication, each.dedicated_to):
            dedications.dedicate(tx, hosts.by_name(tx, each.name), *wanted, now)
            told.append(f"host {each.name} is {wanted[0] or 'for everybody'}")
    return told


def put_right(tx: Tx, keys: Sequence[str], now: datetime) -> list[str]:
    """Have hosts be in the aggregates of their pools and pclouds, and in no others of these."""
    wanted, present, mirrored = audit.memberships(tx)
    told = []
    for name, row in sorted(wanted - present):
        if f"+{row} {name}" in keys:
            host = hosts.by_name(tx, name)
            owned_aggregates.add_host(tx, row, owned_aggregates.uuid_of(tx, row), host, now)
            told.append(f"host {name} is in aggregate {row}")
    for name, row in sorted(present - wanted):
        if f"-{row} {name}" in keys:
            host = hosts.by_name(tx, name)
            owned_aggregates.remove_host(tx, row, owned_aggregates.uuid_of(tx, row), host, now)
            told.append(f"host {name} is in aggregate {row} no more")
    for name, row in sorted(wanted ^ mirrored):
        if f"~{row} {name}" in keys:
            repair = (
                owned_aggregates.join_placement
                if (name, row) in wanted
                else owned_aggregates.leave_placement
            )
            repair(tx, owned_aggregates.uuid_of(tx, row), hosts.by_name(tx, name), now)
            told.append(f"Placement has host {name} in aggregate {row} as it is")
    return told


def set_ratios(tx: Tx, keys: Sequence[str], now: datetime) -> list[str]:
    """Put the ratios of pclouds in force on their hosts, and hosts' own on others."""
    # Each once, however much of it is wrong.
    names = dict.fromkeys(finding.key for finding in _of_ratios(tx, keys))
    for name in names:
        host = hosts.by_name(tx, name)
        member = pcloud_hosts.by_host(tx, host.id)
        wanted = {} if member is None else members.pcloud_of(tx, member).ratios
        dedications.set_ratios(tx, host, wanted, now)
    return [f"host {name} has the ratios that it should" for name in names]


def pay_right(tx: Tx, keys: Sequence[str], now: datetime) -> list[str]:
    """Have hosts of pclouds be paid for once and as what they are from now on, others not.

    What was paid until now stays written: nobody can tell here what it should have been.
    """
    periods, due = audit.open_periods(tx)
    told = []
    for host_id in sorted({int(key) for key in keys}):
        wanted = [due[host_id][1]] if host_id in due else []
        if periods.get(host_id, []) == wanted:
            continue
        pcloud_hosts.end_billing(tx, [host_id], now)
        member = pcloud_hosts.by_host(tx, host_id) if wanted else None
        if member is not None:
            members.begin_billing(tx, members.pcloud_of(tx, member), [member], now)
        how = "once, as what it is" if wanted else "no more"
        told.append(f"host number {host_id} is paid for {how}")
    return told


REPAIRS = {
    WRONG_DEDICATION.kind: dedicate_again,
    STRAY_HOST.kind: put_right,
    WRONG_RATIO.kind: set_ratios,
    WRONG_RUN.kind: pay_right,
}
AT_ONCE = {WRONG_RATIO.kind: ROLLED_OUT_AT_ONCE}
"""Findings that are repaired in one transaction, where that takes longer than most repairs."""
