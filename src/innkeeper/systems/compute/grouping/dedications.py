"""For whom hosts are: kept in a row of the host, for decisions and for who sends servers on.

Always true: whoever changes it moves the generation of the host's provider in the same
transaction. So a claim that was decided before is refused, whoever decided it. A host that
stops being somebody's has again the ratios that it had.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from innkeeper.domain.compute import Host
from innkeeper.domain.hosts import (
    OF_LEASES,
    TO_NOBODY,
    WHOLE,
    Dedication,
    HostReport,
    InventoryReport,
    KeptRatio,
)
from innkeeper.domain.ids import canonical_uuid
from innkeeper.domain.moves import Migration
from innkeeper.store.queries.compute import dedications, hosts, migrations, orders
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.grouping import hint_names
from innkeeper.systems.placement import ratios
from innkeeper.systems.placement.ratios import Present, Ratio

HINT, HOST_HINT = "pcloud", "pcloud_host"
"""The scheduler hints by which a server names whose hosts are meant, and one of them."""
UNASKED = hint_names.UNASKED
"""Kept beside :data:`HINT` where the service wrote that, for a server that named no pcloud and
was taken in. Who gives both in a request of its own says that anywhere will do as well, once
the pcloud is not for it any more."""
RESERVATION_HINT = "reservation"
"""The scheduler hint by which a server names the reservation on whose hosts it is to be."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """The dedicated hosts that a server is for: those of pclouds, or those of a reservation.

    Of both only those are meant that the server's project may use.
    """

    pclouds: tuple[str, ...] = ()
    reservation: str | None = None

    @property
    def is_any(self) -> bool:
        """Whether dedicated hosts are wanted at all."""
        return bool(self.pclouds) or self.reservation is not None


def dedicate(
    tx: Tx, host: Host, dedication: str | None, dedicated_to: str | None, now: datetime
) -> None:
    """Say for whom a host is from now on."""
    assert (dedicated_to is None) == (dedication in TO_NOBODY)
    hosts.dedicate(tx, host.id, dedication, dedicated_to, now)
    ratios.advance(tx, host.provider_uuid, now)


def named(hints: Mapping[str, Any]) -> tuple[str, ...]:
    """The pclouds that a server's hints name, one of which it is to be in."""
    given = hints.get(HINT)
    texts = given if isinstance(given, list | tuple) else [given]
    uuids = (canonical_uuid(each) for each in texts if isinstance(each, str))
    return tuple(dict.fromkeys(each for each in uuids if each is not None))


def named_host(hints: Mapping[str, Any]) -> str | None:
    """What the host of a pcloud is called that a server's hints name."""
    given = hints.get(HOST_HINT)
    texts = given if isinstance(given, list | tuple) else [given]
    return next((each for each in texts if isinstance(each, str) and each), None)


def named_reservation(hints: Mapping[str, Any]) -> str | None:
    """The reservation that a server's hints name, on whose hosts it is to be."""
    given = hints.get(RESERVATION_HINT)
    texts = given if isinstance(given, list | tuple) else [given]
    uuids = (canonical_uuid(each) for each in texts if isinstance(each, str))
    return next((each for each in uuids if each is not None), None)


def wanted_by(tx: Tx, hints: Sequence[tuple[Mapping[str, Any], str]]) -> list[Wanted | None]:
    """The dedicated hosts that servers' hints name, in order; each with the server's project.

    ``None`` where a server's project may use nothing of what its hints name.
    """
    named_by = [named(each) for each, _ in hints]
    reserved = [named_reservation(each) for each, _ in hints]
    facts = dedications.pcloud_facts(tx, {uuid for pclouds in named_by for uuid in pclouds})
    users = {each.uuid: each.projects for each in facts}
    owners = dedications.reservation_projects(tx, {each for each in reserved if each})
    found: list[Wanted | None] = []
    for (_, project_id), pclouds, reservation in zip(hints, named_by, reserved, strict=True):
        # A host may have become that of another one of these, which is not for the project.
        mine = tuple(each for each in pclouds if project_id in users.get(each, ()))
        is_mine = reservation is not None and owners.get(reservation) == project_id
        if (pclouds and not mine) or (reservation is not None and not is_mine):
            found.append(None)
        else:
            found.append(Wanted(mine, reservation))
    return found


def taken_in(hints: Mapping[str, Any], pcloud: str) -> dict[str, Any]:
    """The hints of a server that came to a pcloud without naming it, and is bound to it now."""
    return {**hints, HINT: pcloud, UNASKED: True}


def still_bound(tx: Tx, hints: Mapping[str, Any], project_id: str) -> Mapping[str, Any]:
    """The hints of a server that is on no host, without what binds it to a pcloud in vain.

    It is bound so if it was taken in by one that is gone, or that its project may not use any
    more. A pcloud that was named is wanted, whether it is there or not.
    """
    if hints.get(UNASKED) is not True or wanted_by(tx, [(hints, project_id)]) != [None]:
        return hints
    return {name: each for name, each in hints.items() if name not in (HINT, UNASKED)}


def is_name_used(tx: Tx, uuids: Collection[str], name: str) -> bool:
    """Whether a host of one of these pclouds has this name at present."""
    return dedications.is_name_used(tx, uuids, name)


def takes(host: Host, wanted: Wanted) -> bool:
    """Whether a host takes servers that want these dedicated hosts, or none."""
    if not wanted.is_any:
        return host.dedication is None
    if wanted.reservation is not None and wanted.pclouds:
        # No host is both; new requests that name both are refused.
        return False
    if wanted.reservation is not None:
        return host.dedication == Dedication.LEASED and host.dedicated_to == wanted.reservation
    return host.dedication == Dedication.OPEN and host.dedicated_to in wanted.pclouds


def residents(tx: Tx, kinds: Collection[str]) -> list[tuple[str, str, str | None, dict[str, Any]]]:
    """Servers on hosts that are kept in one of these ways: server, host, for whom, hints."""
    return dedications.residents(tx, kinds)


def why_not_free(host: Host) -> str | None:
    """For whom a host is kept already; ``None`` for one that is for everybody."""
    if host.dedication is None:
        return None
    if host.dedication in OF_LEASES:
        return "it is kept for leases"
    if host.dedication == Dedication.POOLED:
        return "it is in the pool of a host flavor"
    return "it is in a pcloud"


def why_down(host: Host) -> str | None:
    """Why nobody takes a host whole that is declared down; ``None`` for other hosts.

    A silent agent is no reason: it may be back in a moment.
    """
    return "its compute service is declared down" if host.is_forced_down else None


def why_not_empty(tx: Tx, host: Host, lost: Collection[Migration] | None = None) -> str | None:
    """What is on a host, or about to be; ``None`` for one that is empty.

    ``lost`` is given for a host that is lost: what these migrations left there is as good as
    gone, and its agent does no work.
    """
    gone = {each.uuid for each in lost or ()}
    count, _ = hosts.server_counts(tx, [host.name]).get(host.name, (0, 0))
    if count:
        return f"it has {count} server(s)"
    if any(each.uuid not in gone for each in migrations.open_on(tx, host.name)):
        return "a server is on its way from or to it"
    if lost is None and orders.is_awaited(tx, host.agent_id, host.name):
        return "its agent has work left to do"
    if ratios.is_held(tx, host.provider_id, gone):
        return "somebody holds some of its resources"
    return None


def without_servers(tx: Tx, names: Collection[str]) -> set[str]:
    """Those of these hosts on which no server is; the others need not be asked further.

    One query for all of them. For whether one is empty, see :func:`why_not_empty`.
    """
    counts = hosts.server_counts(tx, names)
    return {name for name in names if not counts.get(name, (0, 0))[0]}


def set_ratios(tx: Tx, host: Host, wanted: Mapping[str, float], now: datetime) -> None:
    """Have a host give out so many times what it has, by class; the others' are its own.

    One server never gets more than there is, whatever the ratio.
    """
    kept = host.kept_ratios or {}
    if not kept and not wanted:
        return
    present = ratios.of_provider(tx, host.provider_id)
    # What is not wanted any more goes back to what it was; how much there is may have changed.
    back = {
        name: Ratio(each.ratio, each.max_unit or present[name].total or 1)
        for name, each in kept.items()
        if name not in wanted and name in present and each.ratio is not None
    }
    fresh = {
        name: Ratio(ratio, min(present[name].max_unit, present[name].total or 1))
        for name, ratio in wanted.items()
        if name in present
    }
    ratios.write(tx, host.provider_uuid, {**back, **fresh}, now)
    own = {name: _own(each) for name, each in present.items()}
    own |= {name: (each.ratio, each.max_unit) for name, each in kept.items()}
    keeps = {
        name: KeptRatio(ratio, *own.get(name, (None, WHOLE))) for name, ratio in wanted.items()
    }
    hosts.keep_ratios(tx, host.id, keeps or None)


def _own(present: Present) -> tuple[float | None, int]:
    is_whole = present.max_unit == present.total
    return present.ratio, WHOLE if is_whole else present.max_unit


def reported(
    tx: Tx, report: HostReport, host: Host | None, default_ratios: Mapping[str, float]
) -> HostReport:
    """What an agent reports, with the ratios that are in force because of for whom a host is.

    What the agent says of these is kept for when they are the host's own again.
    """
    if host is None or not host.kept_ratios:
        return report
    told: dict[str, InventoryReport] = {}
    kept = dict(host.kept_ratios)
    for name in kept.keys() & report.inventories.keys():
        line, mine = report.inventories[name], kept[name]
        default = default_ratios.get(name, 1.0) if mine.ratio is None else mine.ratio
        kept[name] = KeptRatio(
            mine.in_force,
            default if line.allocation_ratio is None else line.allocation_ratio,
            mine.max_unit if line.max_unit is None else line.max_unit,
        )
        # Said each time, for somebody may have said something else through Placement.
        most = max(1, min(kept[name].max_unit or line.total, line.total))
        told[name] = replace(line, allocation_ratio=mine.in_force, max_unit=most)
    if kept != host.kept_ratios:
        hosts.keep_ratios(tx, host.id, kept)
    return replace(report, inventories={**report.inventories, **told})


def left_at(tx: Tx, names: Collection[str]) -> dict[str, datetime]:
    """When the last server left each of these hosts; long ago, if there never was one.

    One query for all of them.
    """
    return dedications.left_at(tx, names)
