"""Dedications of hosts: the pcloud or reservation that a host is dedicated to.

Always true: a change of a dedication advances the generation of the host's provider in the same
transaction, so a claim that was decided before is rejected. A host that is not dedicated any
more has its former allocation ratios.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from innkeeper.domain.compute import Host
from innkeeper.domain.errors import Invalid
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
from innkeeper.systems.placement.ratios import Ratio

HINT, HOST_HINT = "pcloud", "pcloud_host"
"""The scheduler hints by which a server names its pclouds, and one of their hosts."""
UNASKED = hint_names.UNASKED
"""Stored beside :data:`HINT` for a server that named no pcloud and that a pcloud took in. A request
that gives both allows ordinary hosts once the project may not use the pcloud any more."""
RESERVATION_HINT = "reservation"
"""The scheduler hint by which a server names its reservation."""
NAME_MAX = 255
"""The width of the column of names; a longer text is no name."""
SHOWN_MAX = 60
"""How many characters of a text a refusal repeats."""

# Queries that need no rules.
is_name_used = dedications.is_name_used
left_at = dedications.left_at
residents = dedications.residents


@dataclass(frozen=True, slots=True)
class Wanted:
    """The dedicated hosts that a server requests and its project may use."""

    pclouds: tuple[str, ...] = ()
    reservation: str | None = None

    @property
    def is_any(self) -> bool:
        """Whether the server requests dedicated hosts at all."""
        return bool(self.pclouds) or self.reservation is not None


def dedicate(
    tx: Tx, host: Host, dedication: str | None, dedicated_to: str | None, now: datetime
) -> None:
    """Dedicate a host, or with ``None`` open it to all projects."""
    assert (dedicated_to is None) == (dedication in TO_NOBODY)
    hosts.dedicate(tx, host.id, dedication, dedicated_to, now)
    ratios.advance(tx, host.provider_uuid, now)


def named(hints: Mapping[str, Any]) -> tuple[str, ...]:
    """The pclouds that a server's hints name; it goes to a host of any of them."""
    return _uuids(hints, HINT)


def named_host(hints: Mapping[str, Any]) -> str | None:
    """The host of a pcloud that a server's hints name, by its name in the pcloud."""
    return next((each for each in _texts(hints, HOST_HINT) if each), None)


def named_reservation(hints: Mapping[str, Any]) -> str | None:
    """The reservation that a server's hints name."""
    return next(iter(_uuids(hints, RESERVATION_HINT)), None)


def _uuids(hints: Mapping[str, Any], name: str) -> tuple[str, ...]:
    uuids = (canonical_uuid(each) for each in _texts(hints, name))
    return tuple(dict.fromkeys(each for each in uuids if each is not None))


def _texts(hints: Mapping[str, Any], name: str) -> list[str]:
    given = hints.get(name)
    return [
        each
        for each in (given if isinstance(given, list | tuple) else [given])
        if isinstance(each, str)
    ]


def wanted_by(tx: Tx, hints: Sequence[tuple[Mapping[str, Any], str]]) -> list[Wanted | None]:
    """The dedicated hosts that each of these pairs of hints and project requests, in order.

    ``None`` for a project that may use nothing of what its hints name.
    """
    named_by = [named(each) for each, _ in hints]
    reserved = [named_reservation(each) for each, _ in hints]
    facts = dedications.pcloud_facts(tx, {uuid for pclouds in named_by for uuid in pclouds})
    users = {each.uuid: each.projects for each in facts}
    owners = dedications.reservation_projects(tx, {each for each in reserved if each})
    found: list[Wanted | None] = []
    for (_, project_id), pclouds, reservation in zip(hints, named_by, reserved, strict=True):
        # Not all of the pclouds that the hints name need to be for the project.
        mine = tuple(each for each in pclouds if project_id in users.get(each, ()))
        is_mine = reservation is not None and owners.get(reservation) == project_id
        if (pclouds and not mine) or (reservation is not None and not is_mine):
            found.append(None)
        else:
            found.append(Wanted(mine, reservation))
    return found


def taken_in(hints: Mapping[str, Any], pcloud: str) -> dict[str, Any]:
    """The hints of a server that a pcloud took in, although it did not name the pcloud."""
    return {**hints, HINT: pcloud, UNASKED: True}


def still_bound(tx: Tx, hints: Mapping[str, Any], project_id: str) -> Mapping[str, Any]:
    """The hints of a server without a host, as they bind it now.

    A pcloud that took it in, and that its project may not use any more, is left out. A pcloud that
    the server named itself stays.
    """
    if hints.get(UNASKED) is not True or wanted_by(tx, [(hints, project_id)]) != [None]:
        return hints
    return {name: each for name, each in hints.items() if name not in (HINT, UNASKED)}


def takes(host: Host, wanted: Wanted) -> bool:
    """Whether a host takes servers that request these dedicated hosts, or none."""
    if not wanted.is_any:
        return host.dedication is None
    if wanted.reservation is not None and wanted.pclouds:
        # No host has both; new requests that name both are rejected.
        return False
    if wanted.reservation is not None:
        return host.dedication == Dedication.LEASED and host.dedicated_to == wanted.reservation
    return host.dedication == Dedication.OPEN and host.dedicated_to in wanted.pclouds


def why_not_free(host: Host) -> str | None:
    """Why a host cannot be dedicated; ``None`` if it is open to all projects."""
    if host.dedication is None:
        return None
    if host.dedication in OF_LEASES:
        return "it is kept for leases"
    if host.dedication == Dedication.POOLED:
        return "it is in the pool of a host flavor"
    return "it is in a pcloud"


def why_down(host: Host) -> str | None:
    """Why a host that is forced down cannot be dedicated; ``None`` for other hosts.

    A silent agent is no reason, because it may be back soon.
    """
    return "its compute service is declared down" if host.is_forced_down else None


def why_not_empty(tx: Tx, host: Host, lost: Collection[Migration] | None = None) -> str | None:
    """Why a host is not empty; ``None`` if it is.

    ``lost`` is given for a host that is lost: leftovers of these migrations do not count, nor do
    its agent's pending orders.
    """
    gone = {each.uuid for each in lost or ()}
    count, _ = hosts.server_counts(tx, [host.name]).get(host.name, (0, 0))
    if count:
        return f"it has {count} server(s)"
    if any(each.uuid not in gone for each in migrations.open_on(tx, host.name)):
        return "a server is moving from or to it"
    if lost is None and orders.is_awaited(tx, host.agent_id, host.name):
        return "its agent has pending orders"
    if ratios.is_held(tx, host.provider_id, gone):
        return "some of its resources are allocated"
    return None


def without_servers(tx: Tx, names: Collection[str]) -> set[str]:
    """Those of these hosts that have no servers; see :func:`why_not_empty` for all conditions."""
    counts = hosts.server_counts(tx, names)
    return {name for name in names if not counts.get(name, (0, 0))[0]}


def set_ratios(tx: Tx, host: Host, wanted: Mapping[str, float], now: datetime) -> None:
    """Set the allocation ratios of a host by class; other classes keep or regain their own.

    ``max_unit`` stays within the total, whatever the ratio.
    """
    kept = host.kept_ratios or {}
    if not kept and not wanted:
        return
    present = ratios.inventories(tx, host.provider_id)
    # Other classes get their own ratio back; their total may have changed meanwhile.
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
    own: dict[str, tuple[float | None, int]] = {
        name: (each.allocation_ratio, WHOLE if each.max_unit == each.total else each.max_unit)
        for name, each in present.items()
    }
    own |= {name: (each.ratio, each.max_unit) for name, each in kept.items()}
    keeps = {
        name: KeptRatio(ratio, *own.get(name, (None, WHOLE))) for name, ratio in wanted.items()
    }
    hosts.keep_ratios(tx, host.id, keeps or None)


def reported(
    tx: Tx, report: HostReport, host: Host | None, default_ratios: Mapping[str, float]
) -> HostReport:
    """An agent's report with the ratios of the host's dedication in place of its own.

    The reported ratios are stored until the dedication ends.
    """
    if host is None or not host.kept_ratios:
        return report
    inventories: dict[str, InventoryReport] = {}
    kept = dict(host.kept_ratios)
    for name in kept.keys() & report.inventories.keys():
        line, mine = report.inventories[name], kept[name]
        default = default_ratios.get(name, 1.0) if mine.ratio is None else mine.ratio
        kept[name] = KeptRatio(
            mine.in_force,
            default if line.allocation_ratio is None else line.allocation_ratio,
            mine.max_unit if line.max_unit is None else line.max_unit,
        )
        # Set each time, because a client of Placement may have changed it.
        most = max(1, min(kept[name].max_unit or line.total, line.total))
        inventories[name] = replace(line, allocation_ratio=mine.in_force, max_unit=most)
    if kept != host.kept_ratios:
        hosts.keep_ratios(tx, host.id, kept)
    return replace(report, inventories={**report.inventories, **inventories})


def pcloud_named(tx: Tx, named: str, project_id: str) -> str:
    """The id of the pcloud that a project names.

    A name means the project's own pcloud, or else another project's pcloud that it may use.
    Raises :class:`Invalid` for unknown and for ambiguous names.
    """
    canonical = canonical_uuid(named)
    if canonical is not None:
        return canonical
    found: Sequence[str] = ()
    if _is_name(named):
        found = dedications.own_pclouds_named(tx, named, project_id)
        found = found or dedications.usable_pclouds_named(tx, named, project_id)
    if not found:
        raise Invalid(f"No pcloud that this project may use has the name or id '{_shown(named)}'.")
    if len(found) > 1:
        raise Invalid(
            f"Several pclouds are called '{_shown(named)}'. Name one by its id: {_listed(found)}."
        )
    return found[0]


def reservation_named(tx: Tx, named: str, project_id: str, now: datetime) -> str:
    """The id of the reservation that a project names, by its own id or its lease's name.

    A name means a lease of the project that is not over. Raises :class:`Invalid` for unknown and
    for ambiguous names, and for a lease with several reservations.
    """
    canonical = canonical_uuid(named)
    if canonical is not None:
        return canonical
    found: dict[str, list[str]] = {}
    if _is_name(named):
        found = dedications.reservations_of_leases_named(tx, named, project_id, now)
    if not found:
        raise Invalid(
            f"No reservation has the id '{_shown(named)}', and no lease of this project that "
            "is not over has that name."
        )
    every = [uuid for uuids in found.values() for uuid in uuids]
    if len(found) > 1:
        raise Invalid(
            f"Several leases are called '{_shown(named)}'. Name a reservation by its id: "
            f"{_listed(every)}."
        )
    if len(every) > 1:
        raise Invalid(
            f"The lease '{_shown(named)}' has several reservations. Name one by its id: "
            f"{_listed(every)}."
        )
    return every[0]


def _is_name(text: str) -> bool:
    """Whether a text could be a name; some databases reject queries for other texts."""
    is_text = text.isascii() or not any("\ud800" <= each <= "\udfff" for each in text)
    return 0 < len(text) <= NAME_MAX and "\0" not in text and is_text


def _listed(uuids: Sequence[str]) -> str:
    """The first of these ids: other projects may share any number of pclouds with a project."""
    shown = ", ".join(uuids[: dedications.NAMED_MAX])
    return shown + (", and others" if len(uuids) > dedications.NAMED_MAX else "")


def _shown(text: str) -> str:
    return text[:SHOWN_MAX]
