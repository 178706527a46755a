"""Read and change the dedications of hosts to host flavors' pools, pclouds and reservations.

Always true: a change of a dedication advances the generation of the host's provider in the same
transaction. So a claim that was decided before the change is refused. When a dedication ends, the
host gets its own allocation ratios back.
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
from innkeeper.domain.moves import OPEN, Migration
from innkeeper.store.queries.compute import dedications, hosts, migrations, orders
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.grouping import hint_names
from innkeeper.systems.placement import providers, ratios
from innkeeper.systems.placement.ratios import Ratio

HINT, HOST_HINT = "pcloud", "pcloud_host"
"""Two scheduler hints: ``HINT`` names the pclouds that a server may use. ``HOST_HINT`` names a host
of such a pcloud."""
UNASKED = hint_names.UNASKED
"""The hint that marks a server that a pcloud took automatically. It is stored in addition to
:data:`HINT`. If the project of such a server may no longer use the pcloud, the server may use
ordinary hosts."""
RESERVATION_HINT = "reservation"
"""The scheduler hint that names a server's reservation."""
NAME_MAX = 255
"""The width of the database column for names. A longer text cannot be a name."""
SHOWN_MAX = 60
"""The maximum number of characters of a client's text that a refusal quotes."""

# Queries that are re-exported unchanged.
is_name_used = dedications.is_name_used
left_at = dedications.left_at
residents = dedications.residents
reservation_projects = dedications.reservation_projects


@dataclass(frozen=True, slots=True)
class Wanted:
    """The pclouds or the reservation that a server requests and that its project may use."""

    pclouds: tuple[str, ...] = ()
    reservation: str | None = None

    @property
    def is_any(self) -> bool:
        """Whether the server requests any dedicated hosts."""
        return bool(self.pclouds) or self.reservation is not None


def dedicate(
    tx: Tx, host: Host, dedication: str | None, dedicated_to: str | None, now: datetime
) -> None:
    """Write a host's dedication. ``None`` opens the host to all projects."""
    dedicate_all(tx, [host], dedication, dedicated_to, now)


def dedicate_all(
    tx: Tx, some: Sequence[Host], dedication: str | None, dedicated_to: str | None, now: datetime
) -> None:
    """Write the dedication of several hosts, with a fixed number of statements."""
    assert (dedicated_to is None) == (dedication in TO_NOBODY)
    hosts.dedicate(tx, [each.id for each in some], dedication, dedicated_to, now)
    providers.advance_all(tx, [each.provider_id for each in some], now)


def named(hints: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the ids of the pclouds that a server's hints name.

    The server may use hosts of any of these pclouds.
    """
    return _uuids(hints, HINT)


def named_host(hints: Mapping[str, Any]) -> str | None:
    """Return the name, within its pcloud, of the host that the hints request, or ``None``."""
    return next((each for each in _texts(hints, HOST_HINT) if each), None)


def named_reservation(hints: Mapping[str, Any]) -> str | None:
    """Return the reservation that a server's hints name, or ``None``."""
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
    """Return the requested dedicated hosts for each pair of (hints, project id).

    The result for a pair is ``None`` if the project may not use the reservation in the hints. It is
    also ``None`` if the hints name pclouds, but the project may use none of these pclouds.
    """
    named_by = [named(each) for each, _ in hints]
    reserved = [named_reservation(each) for each, _ in hints]
    facts = dedications.pcloud_facts(tx, {uuid for pclouds in named_by for uuid in pclouds})
    users = {each.uuid: each.projects for each in facts}
    owners = dedications.reservation_projects(tx, {each for each in reserved if each})
    found: list[Wanted | None] = []
    for (_, project_id), pclouds, reservation in zip(hints, named_by, reserved, strict=True):
        # One pcloud that the project may use is enough.
        mine = tuple(each for each in pclouds if project_id in users.get(each, ()))
        is_mine = reservation is not None and project_id in owners.get(reservation, ())
        if (pclouds and not mine) or (reservation is not None and not is_mine):
            found.append(None)
        else:
            found.append(Wanted(mine, reservation))
    return found


def taken_in(hints: Mapping[str, Any], pcloud: str) -> dict[str, Any]:
    """Return a server's hints, extended by the pcloud that takes the server automatically."""
    return {**hints, HINT: pcloud, UNASKED: True}


def still_bound(tx: Tx, hints: Mapping[str, Any], project_id: str) -> Mapping[str, Any]:
    """Return the hints that still apply to a server without a host.

    The hint for a pcloud that the client requested always applies. The hint for a pcloud that took
    the server automatically applies only while the project may use this pcloud.
    """
    if hints.get(UNASKED) is not True or wanted_by(tx, [(hints, project_id)]) != [None]:
        return hints
    return {name: each for name, each in hints.items() if name not in (HINT, UNASKED)}


def takes(host: Host, wanted: Wanted) -> bool:
    """Return True if a host takes a server that requests these dedicated hosts.

    A server that requests no dedicated hosts may only use hosts that are not dedicated.
    """
    if not wanted.is_any:
        return host.dedication is None
    if wanted.reservation is not None and wanted.pclouds:
        # No host belongs both to a pcloud and to a reservation. New requests that name both a
        # pcloud and a reservation are refused.
        return False
    if wanted.reservation is not None:
        return host.dedication == Dedication.LEASED and host.dedicated_to == wanted.reservation
    return host.dedication == Dedication.OPEN and host.dedicated_to in wanted.pclouds


def why_not_free(host: Host) -> str | None:
    """Return the reason why a host cannot be dedicated, or ``None`` for an ordinary host."""
    if host.dedication is None:
        return None
    if host.dedication in OF_LEASES:
        return "it is kept for leases"
    if host.dedication == Dedication.POOLED:
        return "it is in the pool of a host flavor"
    return "it is in a pcloud"


def why_down(host: Host) -> str | None:
    """Return the reason why a forced-down host cannot be dedicated, or ``None`` for other hosts.

    A host whose agent is down can be dedicated, because the agent may soon be up again.
    """
    return "its compute service is declared down" if host.is_forced_down else None


def why_not_empty(tx: Tx, host: Host, lost: Collection[Migration] | None = None) -> str | None:
    """Return the reason why a host is not empty, or ``None`` if it is empty.

    For a lost host, ``lost`` has the migrations to ignore. The allocations of these migrations on
    the host then do not count. The pending orders of the host's agent do not count either.
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


def empty_among(tx: Tx, some: Sequence[Host]) -> set[int]:
    """Of these hosts, return the row ids of those that are empty. See :func:`why_not_empty`.

    The number of statements does not depend on the number of hosts.
    """
    free = without_servers(tx, [each.name for each in some])
    left = [each for each in some if each.name in free]
    if not left:
        return set()
    moving = migrations.hosts_of(tx, OPEN)
    awaited = orders.awaited_hosts(tx, {each.agent_id for each in left})
    held = ratios.held_among(tx, [each.provider_id for each in left])
    return {
        each.id
        for each in left
        if each.name not in moving
        and (each.agent_id, each.name) not in awaited
        and each.provider_id not in held
    }


def without_servers(tx: Tx, names: Collection[str]) -> set[str]:
    """Of the hosts with these names, return those that have no servers.

    A host without servers is not necessarily empty. See :func:`why_not_empty`.
    """
    counts = hosts.server_counts(tx, names)
    return {name for name in names if not counts.get(name, (0, 0))[0]}


def set_ratios(tx: Tx, host: Host, wanted: Mapping[str, float], now: datetime) -> None:
    """Set a host's allocation ratios of the classes in ``wanted``.

    All other classes get back the ratios that the agent reported. ``max_unit`` never exceeds the
    total, even with a ratio above 1.
    """
    kept = host.kept_ratios or {}
    if not kept and not wanted:
        return
    present = ratios.inventories(tx, host.provider_id)
    # The totals of these classes may have changed since the agent's ratios were stored.
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
    """Return an agent's report with the ratios of the host's dedication.

    The ratios that the agent reported are stored until the dedication ends.
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
        # Ratio and ``max_unit`` are set with each report, because a client of Placement may have
        # changed them.
        most = max(1, min(kept[name].max_unit or line.total, line.total))
        inventories[name] = replace(line, allocation_ratio=mine.in_force, max_unit=most)
    if kept != host.kept_ratios:
        hosts.keep_ratios(tx, host.id, kept)
    return replace(report, inventories={**report.inventories, **inventories})


def pcloud_named(tx: Tx, named: str, project_id: str) -> str:
    """Return the id of the pcloud that a project names.

    If ``named`` is an id, return this id, even if no pcloud has it. Otherwise, look for the name
    among the project's own pclouds. If none of them has the name, look among the other pclouds that
    the project may use. Raises :class:`Invalid` for unknown and ambiguous names.
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
    """Look up a reservation by its id or by the name of its lease, and return its id.

    If ``named`` is an id, return this id, even if no reservation has it. Otherwise, look for the
    name among the project's leases that have not ended. If none has the name, look among the leases
    that other projects share with the project. Because of this order, no other project can redirect
    the servers with a lease of the same name.

    Raises :class:`Invalid` for unknown and ambiguous names, and for a lease with several
    reservations.
    """
    canonical = canonical_uuid(named)
    if canonical is not None:
        return canonical
    found: dict[str, list[str]] = {}
    if _is_name(named):
        for is_own in (True, False):
            found = found or dedications.reservations_of_leases_named(
                tx, named, project_id, now, is_own=is_own
            )
    if not found:
        raise Invalid(
            f"No reservation has the id '{_shown(named)}', and no current or future lease of "
            "this project has that name."
        )
    every = [uuid for uuids in found.values() for uuid in uuids]
    if len(found) > 1:
        raise Invalid(
            f"Several leases are called '{_shown(named)}'. "
            f"Use the id of one of their reservations: {_listed(every)}."
        )
    if len(every) > 1:
        raise Invalid(
            f"The lease '{_shown(named)}' has several reservations. Name one by its id: "
            f"{_listed(every)}."
        )
    return every[0]


def _is_name(text: str) -> bool:
    """Return True if a text could be a name. Some databases reject queries for other texts."""
    is_text = text.isascii() or not any("\ud800" <= each <= "\udfff" for each in text)
    return 0 < len(text) <= NAME_MAX and "\0" not in text and is_text


def _listed(uuids: Sequence[str]) -> str:
    """Return the first few ids as a text. There may be too many ids for a message."""
    shown = ", ".join(uuids[: dedications.NAMED_MAX])
    return shown + (", and others" if len(uuids) > dedications.NAMED_MAX else "")


def _shown(text: str) -> str:
    return text[:SHOWN_MAX]
