"""Create and update the providers of many hosts together, from the reports of agents.

Always true: a report that changes nothing writes nothing, and advances no generation. A provider
that changes advances by exactly one generation.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from innkeeper.domain.errors import Conflict, Invalid
from innkeeper.domain.hosts import ProviderReport, Registered
from innkeeper.domain.ids import ClassId, Generation, IdSource, ProviderId, ProviderUuid, TraitId
from innkeeper.domain.placement import ProviderView
from innkeeper.store import changes, claims
from innkeeper.store.queries.placement import capacity, names, pools, registration
from innkeeper.store.queries.placement.registration import ProviderInventory
from innkeeper.store.transactions import Tx

CUSTOM_NAME = re.compile(r"CUSTOM_[A-Z0-9_]{1,248}")
"""Matches the names of custom resource classes and traits, which have at most 255 characters."""


def register(
    tx: Tx,
    reports: Sequence[ProviderReport],
    default_ratios: Mapping[str, float],
    *,
    ids: IdSource,
    now: datetime,
) -> dict[str, Registered]:
    """Create and change providers to match the reports. Return the providers by host name.

    If a custom class or trait does not exist, it is created. Raises :class:`Invalid` for any other
    unknown class or trait. Raises :class:`Conflict` if a reported name and uuid belong to different
    providers.
    """
    classes, traits = _names(tx, reports, now)
    found = _find_or_create(tx, reports, ids, now)
    provider_ids = [each.provider_id for each in found.values()]
    views = capacity.views(tx, provider_ids)
    present_traits = registration.traits_of(tx, provider_ids)
    changing = _Changing()
    for report in reports:
        provider = found[report.name]
        pid = provider.provider_id
        before = changing.size
        _compare_inventories(changing, report, views[pid], classes, default_ratios)
        present = present_traits.get(pid, set())
        reported = {traits[name] for name in report.traits}
        gone = {traits[name] for name in report.gone_traits if name in traits}
        changing.given += [(pid, trait) for trait in sorted(reported - present)]
        changing.taken += [(pid, trait) for trait in sorted(gone & present)]
        if changing.size > before and not provider.is_new:
            changing.moved[pid] = views[pid].generation
    claims.advance(tx, changing.moved, now)
    registration.add_inventories(tx, changing.added, now)
    registration.change_inventories(tx, changing.changed, now)
    registration.remove_inventories(tx, changing.removed)
    registration.give_traits(tx, changing.given)
    registration.take_traits(tx, changing.taken)
    return found


def _names(
    tx: Tx, reports: Sequence[ProviderReport], now: datetime
) -> tuple[dict[str, ClassId], dict[str, TraitId]]:
    wanted_classes = {name for report in reports for name in report.inventories}
    wanted_traits = {name for report in reports for name in report.traits}
    gone = {name for report in reports for name in report.gone_classes | report.gone_traits}
    classes = names.class_ids(tx, wanted_classes)
    missing = wanted_classes - classes.keys()
    _must_be_custom(missing, "resource class")
    registration.add_classes(tx, missing, now)
    traits = names.trait_ids(tx, wanted_traits)
    unknown = wanted_traits - traits.keys()
    _must_be_custom(unknown, "trait")
    registration.add_traits(tx, unknown, now)
    return (names.class_ids(tx, wanted_classes | gone), names.trait_ids(tx, wanted_traits | gone))


def _must_be_custom(unknown: Iterable[str], noun: str) -> None:
    for name in sorted(unknown):
        if CUSTOM_NAME.fullmatch(name) is None:
            raise Invalid(
                f"There is no {noun} {name!r}; only names of the form CUSTOM_... are created "
                "automatically."
            )


def _find_or_create(
    tx: Tx, reports: Sequence[ProviderReport], ids: IdSource, now: datetime
) -> dict[str, Registered]:
    rows = registration.heads(
        tx,
        ids=[each.provider_id for each in reports if each.provider_id is not None],
        uuids=[each.provider_uuid for each in reports if each.provider_uuid is not None],
        names=[each.name for each in reports if each.provider_id is None],
    )
    found: dict[str, Registered] = {}
    new: dict[str, str] = {}
    by_id, by_uuid, by_name = ({row[i]: row for row in rows} for i in range(3))
    for report in reports:
        pid = report.provider_id
        row = by_name.get(report.name) if pid is None else by_id[pid]
        _demand_same(report, row, by_uuid.get(report.provider_uuid))
        if row is None:
            new[report.provider_uuid or ids.uuid()] = report.name
        else:
            found[report.name] = Registered(ProviderId(row[0]), ProviderUuid(row[1]), False)
    if len(new) + len(found) != len(reports):
        raise Conflict("Two hosts of one report have the same name or the same provider.")
    _adopt(tx, [ProviderId(row[0]) for row in rows if not row[4]])
    registration.add_providers(tx, list(new.items()), now)
    for row in registration.heads(tx, uuids=new.keys()):
        found[new[row[1]]] = Registered(ProviderId(row[0]), ProviderUuid(row[1]), True)
    created = [each.provider_id for each in found.values() if each.is_new]
    changes.add_always_read(tx, sorted(created), now)
    return found


def _adopt(tx: Tx, ids: Sequence[ProviderId]) -> None:
    """Allow servers on providers that existed before an agent reported their hosts.

    Raises :class:`Conflict` for a pool.
    """
    sharing = pools.uuids(tx, ids)
    if sharing:
        raise Conflict(
            f"Resource provider {min(sharing.values())} is a pool, which shares its inventory with "
            "hosts. A pool cannot be a host itself."
        )
    registration.set_hosting(tx, ids, can_host=True)


def retire(tx: Tx, provider_id: ProviderId) -> None:
    """Allow no new servers on a provider, because its host is deleted."""
    registration.set_hosting(tx, [provider_id], can_host=False)


def _demand_same(report: ProviderReport, row: Any, same_uuid: Any) -> None:
    """Raise :class:`Conflict` if a report's host and uuid belong to different providers.

    ``row`` is the host's provider, and ``same_uuid`` is the provider with the reported uuid.
    """
    uuid = report.provider_uuid
    if uuid is None:
        return
    if (row is not None and row[1] != uuid) or (same_uuid is not None and same_uuid is not row):
        raise Conflict(
            f"Host {report.name} cannot have the resource provider {uuid}: the name or the uuid "
            "belongs to another provider."
        )


@dataclass(slots=True)
class _Changing:
    """The rows that must be written for a list of reports."""

    moved: dict[ProviderId, Generation] = field(default_factory=dict)
    added: list[ProviderInventory] = field(default_factory=list)
    changed: list[ProviderInventory] = field(default_factory=list)
    removed: list[tuple[ProviderId, ClassId]] = field(default_factory=list)
    given: list[tuple[ProviderId, TraitId]] = field(default_factory=list)
    taken: list[tuple[ProviderId, TraitId]] = field(default_factory=list)

    @property
    def size(self) -> int:
        parts = (self.added, self.changed, self.removed, self.given, self.taken)
        return sum(len(part) for part in parts)


def _compare_inventories(
    changing: _Changing,
    report: ProviderReport,
    view: ProviderView,
    classes: Mapping[str, ClassId],
    default_ratios: Mapping[str, float],
) -> None:
    for name, reported in report.inventories.items():
        class_id = classes[name]
        present = view.inventories.get(class_id)
        after = reported.onto(present, default_ratios.get(name, 1.0))
        if present is None:
            changing.added.append((view.id, class_id, after))
        elif after != present:
            changing.changed.append((view.id, class_id, after))
    for class_id in (classes[name] for name in report.gone_classes if name in classes):
        gone = view.inventories.get(class_id)
        if gone is None:
            continue
        if not view.used.get(class_id):
            changing.removed.append((view.id, class_id))
        elif gone.reserved != gone.total:
            # Existing allocations stay, but no new allocations fit.
            closed = replace(gone, reserved=gone.total)
            changing.changed.append((view.id, class_id, closed))
