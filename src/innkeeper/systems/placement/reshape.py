"""Change inventories and allocations together.

A reshape can move inventory that is in use from a parent to its children. Single writes cannot: the
parent's inventory cannot be removed while it has allocations, and a child's inventory cannot be
claimed before it exists.

Always true: either all changes are written, or none (the caller rolls back on a refusal).
Allocations are checked against the new inventories. As in OpenStack's Placement, a provider's
generation advances by one for each of three steps: new inventories, allocations, and removals.
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
    """The new inventories of a provider by class, and the generation that the client knows."""

    seen: int
    inventories: Mapping[str, Inventory]


def replace(
    tx: Tx, shapes: Mapping[str, ProviderShape], updates: Sequence[AllocationUpdate], now: datetime
) -> None:
    """Write the providers' inventories and the consumers' allocations.

    The keys of ``shapes`` are provider uuids. Other providers keep their inventories. Raises
    :class:`Invalid` for an unknown provider or class. Raises :class:`ConcurrentUpdate` if the
    generation of a provider or consumer is not the expected one. Raises :class:`InUse` if a removed
    class has allocations. Raises :class:`Conflict` for a change to a ratio that a pcloud has set.
    Also raises the errors of :func:`allocations.write`.
    """
    ids = _provider_ids(tx, shapes)
    before = capacity.views(tx, ids.values())
    for text, shape in shapes.items():
        _compare(text, shape, before[ids[text]])
    class_ids = _class_ids(tx, shapes, updates)
    _keep_ratios(tx, {ids[text]: shape.inventories for text, shape in shapes.items()}, before)
    requested = {
        ids[text]: {class_ids[name]: each for name, each in shape.inventories.items()}
        for text, shape in shapes.items()
    }
    _give(tx, before, requested, now)
    allocations.write(tx, updates, now)
    _take(tx, requested, now)


def _provider_ids(tx: Tx, shapes: Mapping[str, ProviderShape]) -> dict[str, ProviderId]:
    """Return the row ids of all named providers, by the uuid as the client wrote it."""
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
        # Only one name is shown, because a body may have thousands of unknown names.
        raise Invalid(f"malformed reshaper data: No such resource class {min(missing)}.")
    return found


def _keep_ratios(
    tx: Tx,
    requested: Mapping[ProviderId, Mapping[str, Inventory]],
    before: Mapping[ProviderId, ProviderView],
) -> None:
    kept = providers.kept_ratios(tx, requested.keys())
    # Without hosts of pclouds, this reads no names.
    class_ids = names.class_ids(
        tx, {name for kept_by_class in kept.values() for name in kept_by_class}
    )
    for provider_id, kept_by_class in kept.items():
        view, shape = before[provider_id], requested[provider_id]
        gone = [
            name
            for name in kept_by_class.keys() - shape.keys()
            if class_ids.get(name) in view.inventories
        ]
        ratios.demand_kept(view.uuid, kept_by_class, {**shape, **dict.fromkeys(gone)})


Shapes = Mapping[ProviderId, Mapping[ClassId, Inventory]]


def _give(
    tx: Tx, before: Mapping[ProviderId, ProviderView], requested: Shapes, now: datetime
) -> None:
    """Write the new inventories. The caller removes the old inventories afterwards."""
    # If a provider loses all of its inventories, its generation does not advance at this step.
    seen = {pid: before[pid].generation for pid, shape in requested.items() if shape}
    claims.advance(tx, seen, now)
    rows = [
        (provider_id, class_id, inventory)
        for provider_id, shape in requested.items()
        for class_id, inventory in shape.items()
    ]
    present = {(pid, class_id) for pid, view in before.items() for class_id in view.inventories}
    registration.add_inventories(tx, [row for row in rows if row[:2] not in present], now)
    registration.change_inventories(tx, [row for row in rows if row[:2] in present], now)


def _take(tx: Tx, requested: Shapes, now: datetime) -> None:
    """Remove the inventories that are not in ``requested``, or raise :class:`InUse`."""
    # Usage is read again, because this transaction has just changed allocations.
    present = capacity.views(tx, requested.keys())
    gone: list[tuple[ProviderId, ClassId]] = []
    for provider_id, shape in requested.items():
        view = present[provider_id]
        leaving = sorted(view.inventories.keys() - shape.keys())
        busy = [class_id for class_id in leaving if view.used.get(class_id)]
        if busy:
            classes = [names.name_of(tx, NameKind.CLASS, class_id) for class_id in busy]
            raise inventories.held(view.uuid, classes)
        gone += [(provider_id, class_id) for class_id in leaving]
    claims.advance(tx, {pid: view.generation for pid, view in present.items()}, now)
    registration.remove_inventories(tx, gone)
