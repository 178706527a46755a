"""Hosts' providers as their agents report them, many at a time.

Always true: a report that says what is known already writes nothing and moves no generation;
a provider that changes moves one generation, however much of it changed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from innkeeper.domain.amounts import Inventory
from innkeeper.domain.errors import Conflict, Invalid
from innkeeper.domain.hosts import ProviderReport, Registered
from innkeeper.domain.ids import ClassId, Generation, IdSource, ProviderId, ProviderUuid, TraitId
from innkeeper.domain.placement import ProviderView
from innkeeper.store import changes, claims
from innkeeper.store.queries.placement import capacity, names, pools, registration
from innkeeper.store.queries.placement.registration import ProviderInventory
from innkeeper.store.transactions import Tx

CUSTOM_NAME = re.compile(r"CUSTOM_[A-Z0-9_]{1,248}")
"""Names that operators and agents may make up; 255 characters in all fit the column."""


def register(
    tx: Tx,
    reports: Sequence[ProviderReport],
    default_ratios: Mapping[str, float],
    *,
    ids: IdSource,
    now: datetime,
) -> dict[str, Registered]:
    """Create and change providers until they are as reported; give them by name.

    Custom classes and traits come into being with their first report. Raises
    :class:`Invalid` for an unknown name that is not a custom one, and :class:`Conflict` where
    a provider of that name has another uuid, or the other way round.
    """
    classes, traits = _names(tx, reports, now)
    found = _find_or_create(tx, reports, ids, now)
    provider_ids = [each.provider_id for each in found.values()]
    views = capacity.views(tx, provider_ids)
    had_traits = registration.traits_of(tx, provider_ids)
    changing = _Changing()
    for report in reports:
        provider = found[report.name]
        pid = provider.provider_id
        before = changing.size
        _compare_inventories(changing, report, views[pid], classes, default_ratios)
        _compare_traits(changing, report, pid, traits, had_traits.get(pid, set()))
        if changing.size > before and not provider.is_new:
            changing.moved[pid] = views[pid].generation
    _write(tx, changing, now)
    return found


def _names(
    tx: Tx, reports: Iterable[ProviderReport], now: datetime
) -> tuple[dict[str, ClassId], dict[str, TraitId]]:
    wanted_classes: set[str] = set()
    wanted_traits: set[str] = set()
    gone: set[str] = set()
    for report in reports:
        wanted_classes |= report.inventories.keys()
        wanted_traits |= report.traits
        gone |= report.gone_classes | report.gone_traits
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
                f"There is no {noun} {name!r}, and only names of the form CUSTOM_... are made."
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
    index = _Heads(rows)
    for report in reports:
        row = index.of(report)
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
    """Have servers land on providers that an operator made for hosts to come."""
    sharing = pools.uuids(tx, ids)
    if sharing:
        raise Conflict(
            f"Resource provider {min(sharing.values())} is a pool: it shares what it has with "
            "hosts, and cannot be one."
        )
    registration.set_hosting(tx, ids, can_host=True)


def retire(tx: Tx, provider_id: ProviderId) -> None:
    """Let no server land any more on a provider whose host is gone, and which stays."""
    registration.set_hosting(tx, [provider_id], can_host=False)


class _Heads:
    """Rows of providers, found by any of their names."""

    def __init__(self, rows: Sequence[Any]) -> None:
        self._by_id = {row[0]: row for row in rows}
        self._by_uuid = {row[1]: row for row in rows}
        self._by_name = {row[2]: row for row in rows}

    def of(self, report: ProviderReport) -> Any:
        """The row that is meant, or ``None`` for a provider that is to be created."""
        if report.provider_id is not None:
            row = self._by_id[report.provider_id]
        else:
            row = self._by_name.get(report.name)
        wanted = report.provider_uuid
        if wanted is None:
            return row
        other = self._by_uuid.get(wanted)
        if (row is not None and row[1] != wanted) or (other is not None and other is not row):
            raise Conflict(
                f"Host {report.name} cannot have the resource provider {wanted}: the name or "
                "the uuid belongs to another one."
            )
        return row


@dataclass(slots=True)
class _Changing:
    """What has to be written for a list of reports."""

    moved: dict[ProviderId, Generation] = field(default_factory=dict)
    added: list[ProviderInventory] = field(default_factory=list)
    changed: list[ProviderInventory] = field(default_factory=list)
    removed: list[tuple[ProviderId, ClassId]] = field(default_factory=list)
    given: list[tuple[ProviderId, TraitId]] = field(default_factory=list)
    taken: list[tuple[ProviderId, TraitId]] = field(default_factory=list)

    @property
    def size(self) -> int:
        """How many rows are touched."""
        parts = (self.added, self.changed, self.removed, self.given, self.taken)
        return sum(len(part) for part in parts)


def _compare_inventories(
    changing: _Changing,
    report: ProviderReport,
    view: ProviderView,
    classes: Mapping[str, ClassId],
    default_ratios: Mapping[str, float],
) -> None:
    for name, told in report.inventories.items():
        class_id = classes[name]
        present = view.inventories.get(class_id)
        after = told.onto(present, default_ratios.get(name, 1.0))
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
            # What is held of it stays on the books; nobody gets more.
            changing.changed.append((view.id, class_id, _closed(gone)))


def _closed(present: Inventory) -> Inventory:
    return Inventory(
        present.total,
        present.total,
        present.min_unit,
        present.max_unit,
        present.step_size,
        present.allocation_ratio,
    )


def _compare_traits(
    changing: _Changing,
    report: ProviderReport,
    provider_id: ProviderId,
    traits: Mapping[str, TraitId],
    had: set[TraitId],
) -> None:
    wanted = {traits[name] for name in report.traits}
    gone = {traits[name] for name in report.gone_traits if name in traits}
    changing.given += [(provider_id, trait) for trait in sorted(wanted - had)]
    changing.taken += [(provider_id, trait) for trait in sorted(gone & had)]


def _write(tx: Tx, changing: _Changing, now: datetime) -> None:
    claims.advance(tx, changing.moved, now)
    registration.add_inventories(tx, changing.added, now)
    registration.change_inventories(tx, changing.changed, now)
    registration.remove_inventories(tx, changing.removed)
    registration.give_traits(tx, changing.given)
    registration.take_traits(tx, changing.taken)
