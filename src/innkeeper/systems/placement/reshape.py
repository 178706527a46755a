"""Rebuild providers under what is held of them: inventories and allocations change as one.

So amounts can move from a parent to its children while servers hold them, which no sequence
of single writes could do: a class that is held cannot be taken away, and one that is not there
cannot be held.

Always true: all of it happens or nothing does (the caller undoes the step on a refusal), and
allocations are checked as in any other write of them, against what the providers are to have.
A provider that is named moves one generation for what it is given, one for what is held of it
where that is written too, and one for what is taken away: as with Placement, so clients may
count.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from innkeeper.domain.amounts import Inventory
from innkeeper.domain.errors import ConcurrentUpdate, Invalid
from innkeeper.domain.ids import ClassId, ProviderId, ProviderUuid, canonical_uuid
from innkeeper.domain.placement import ProviderView
from innkeeper.store import claims
from innkeeper.store.queries.placement import capacity, names, providers, registration
from innkeeper.store.queries.placement.names import NameKind
from innkeeper.store.transactions import Tx
from innkeeper.systems.placement import allocations, inventories, ratios
from innkeeper.systems.placement.allocations import AllocationUpdate

PROVIDER_NOT_FOUND = "resource_provider.not_found"


@dataclass(frozen=True, slots=True)
class ProviderShape:
    """All that a provider is to have, by class, and the generation its client has seen."""

    seen: int
    inventories: Mapping[str, Inventory]


def replace(
    tx: Tx, shapes: Mapping[str, ProviderShape], updates: Sequence[AllocationUpdate], now: datetime
) -> None:
    """Give the providers their shapes, and the consumers what they wish for.

    ``shapes`` are by the providers' uuids; who is not among them keeps what he has. Raises
    :class:`Invalid` for an unknown provider or class, :class:`ConcurrentUpdate` for a provider
    or a consumer at another generation, :class:`InUse` where something would be held of a
    class that goes, :class:`Conflict` for a shape that breaks a ratio which a pcloud has set
    on a host, and whatever :func:`allocations.write` raises.
    """
    ids = _provider_ids(tx, shapes)
    before = capacity.views(tx, ids.values())
    for text, shape in shapes.items():
        _compare(text, shape, before[ids[text]])
    class_ids = _class_ids(tx, shapes, updates)
    _keep_ratios(tx, {ids[text]: shape.inventories for text, shape in shapes.items()}, before)
    wanted = {
        ids[text]: {class_ids[name]: each for name, each in shape.inventories.items()}
        for text, shape in shapes.items()
    }
    _give(tx, before, wanted, now)
    allocations.write(tx, updates, now)
    _take(tx, wanted, now)


def _provider_ids(tx: Tx, shapes: Mapping[str, ProviderShape]) -> dict[str, ProviderId]:
    """Row ids by the text that names a provider."""
    canonical = {text: ProviderUuid(canonical_uuid(text) or text) for text in shapes}
    if len(set(canonical.values())) < len(canonical):
        raise Invalid("The same resource provider is named twice.")
    found = providers.ids_by_uuid(tx, canonical.values())
    for text, uuid in canonical.items():
        if uuid not in found:
            raise Invalid(
                f"Resource provider {text} in inventories not found: "
                f"No resource provider with uuid {text} found",
                code=PROVIDER_NOT_FOUND,
            )
    return {text: found[uuid] for text, uuid in canonical.items()}


def _compare(text: str, shape: ProviderShape, view: ProviderView) -> None:
    if shape.seen != view.generation:
        raise ConcurrentUpdate(
            f"resource provider generation conflict for provider {text}: "
            f"actual: {view.generation}, given: {shape.seen}"
        )
    inventories.must_have_capacity(view.uuid, shape.inventories)


def _class_ids(
    tx: Tx, shapes: Mapping[str, ProviderShape], updates: Sequence[AllocationUpdate]
) -> dict[str, ClassId]:
    named = {name for shape in shapes.values() for name in shape.inventories}
    named |= {name for update in updates for each in update.resources.values() for name in each}
    found = names.class_ids(tx, named)
    missing = named - found.keys()
    if missing:
        # One is enough to know what is wrong; a body has room for thousands.
        raise Invalid(f"malformed reshaper data: No such resource class {min(missing)}.")
    return found


def _keep_ratios(
    tx: Tx,
    wanted: Mapping[ProviderId, Mapping[str, Inventory]],
    before: Mapping[ProviderId, ProviderView],
) -> None:
    kept = ratios.kept(tx, wanted.keys())
    # Nothing to look up where no provider is a host of a pcloud.
    class_ids = names.class_ids(tx, {name for mine in kept.values() for name in mine})
    for provider_id, mine in kept.items():
        view, has = before[provider_id], wanted[provider_id]
        gone = [
            name for name in mine.keys() - has.keys() if class_ids.get(name) in view.inventories
        ]
        ratios.demand_kept(view.uuid, mine, {**has, **dict.fromkeys(gone)})


Wanted = Mapping[ProviderId, Mapping[ClassId, Inventory]]


def _give(tx: Tx, before: Mapping[ProviderId, ProviderView], wanted: Wanted, now: datetime) -> None:
    """Write what the providers are to have, beside what is going to be taken away."""
    # Who is to have nothing has nothing to be given, and stays where he is.
    seen = {pid: before[pid].generation for pid, has in wanted.items() if has}
    claims.advance(tx, seen, now)
    rows = [
        (provider_id, class_id, inventory)
        for provider_id, has in wanted.items()
        for class_id, inventory in has.items()
    ]
    had = {(pid, class_id) for pid, view in before.items() for class_id in view.inventories}
    registration.add_inventories(tx, [row for row in rows if row[:2] not in had], now)
    registration.change_inventories(tx, [row for row in rows if row[:2] in had], now)


def _take(tx: Tx, wanted: Wanted, now: datetime) -> None:
    """Take away what the providers are not to have. Raises :class:`InUse` if it is held."""
    # Looked at anew for what is held by now. Nobody else's writes are seen: one transaction
    # sees one moment, and its own work.
    present = capacity.views(tx, wanted.keys())
    gone: list[tuple[ProviderId, ClassId]] = []
    for provider_id, has in wanted.items():
        view = present[provider_id]
        leaving = sorted(view.inventories.keys() - has.keys())
        busy = [class_id for class_id in leaving if view.used.get(class_id)]
        if busy:
            classes = [names.name_of(tx, NameKind.CLASS, class_id) for class_id in busy]
            raise inventories.held(view.uuid, classes)
        gone += [(provider_id, class_id) for class_id in leaving]
    claims.advance(tx, {pid: view.generation for pid, view in present.items()}, now)
    registration.remove_inventories(tx, gone)
