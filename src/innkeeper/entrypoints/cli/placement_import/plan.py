"""Plans the writes that make the target equal to the source, without network access.

Always true: a plan contains only differences, so the plan for equal sides is empty. The order of
the steps ensures that the target accepts each step:

- A name that another provider still has is freed before it is reused.
- Providers are created and moved from the roots down, so that no step creates a loop.
- Inventories first get room for all allocations before, during and after the writes; see
  :func:`_opened`. They get their final values after the allocations are written.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from innkeeper.domain.amounts import UNIT_MAX, Inventory
from innkeeper.entrypoints.cli.placement_import.objections import Others
from innkeeper.entrypoints.cli.placement_import.pictures import (
    CUSTOM,
    ConsumerPicture,
    Picture,
    ProviderPicture,
    Tally,
    are_same,
    held,
    hold_same,
)

Inventories = Mapping[str, Inventory]


@dataclass(frozen=True, slots=True)
class ProviderUpdate:
    """Changes to one provider. A part that is ``None`` stays unchanged."""

    provider: str
    inventories: Inventories | None = None
    traits: frozenset[str] | None = None
    aggregates: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class ImportPlan:
    """The steps of an import, in the order of their execution.

    ``parked`` has providers that are renamed to their uuids, to free their names. The providers in
    one list of ``levels`` or ``removed_levels`` do not depend on each other. ``dropped`` has
    consumers as they are in the target. ``written`` has consumers as they are in the source.
    """

    classes: Sequence[str]
    traits: Sequence[str]
    parked: Sequence[ProviderPicture]
    levels: Sequence[Sequence[ProviderPicture]]
    updates: Sequence[ProviderUpdate]
    dropped: Sequence[ConsumerPicture]
    written: Sequence[ConsumerPicture]
    final_updates: Sequence[ProviderUpdate]
    removed_levels: Sequence[Sequence[ProviderPicture]]

    def counts(self) -> dict[str, int]:
        """Return the number of writes of each kind."""
        return {
            "resource classes": len(self.classes),
            "traits": len(self.traits),
            "providers created, renamed or moved": sum(len(level) for level in self.levels),
            "providers given inventories, traits or aggregates": len(self.updates),
            "consumers removed": len(self.dropped),
            "consumers written": len(self.written),
            "providers given their final inventories": len(self.final_updates),
            "providers removed": sum(len(level) for level in self.removed_levels),
        }

    @property
    def is_empty(self) -> bool:
        """Whether the plan has nothing to write."""
        return not any(self.counts().values())


def make(source: Picture, target: Picture, others: Others) -> ImportPlan:
    """Plan the writes that make ``target`` equal to ``source``, if there are no objections."""
    removed = {
        uuid: each
        for uuid, each in target.providers.items()
        if others is Others.REMOVE and uuid not in source.providers
    }
    levels = [[p for p in level if _is_change(p, target)] for level in source.levels()]
    dropped, written = _consumers(source, target, others)
    opened, closed = _inventories(source, target, dropped, written)
    return ImportPlan(
        classes=_missing_names(source.classes, target.classes),
        traits=_missing_names(source.traits, target.traits),
        parked=_parked(levels, removed, target),
        levels=[level for level in levels if level],
        updates=_updates(source, target, opened),
        dropped=dropped,
        written=written,
        final_updates=[ProviderUpdate(uuid, each) for uuid, each in closed.items()],
        # Children first: a provider with children cannot be removed.
        removed_levels=Picture(removed, {}, frozenset(), frozenset()).levels()[::-1],
    )


def _missing_names(source: Iterable[str], target: frozenset[str]) -> list[str]:
    return sorted(n for n in source if n.startswith(CUSTOM) and n not in target)


def _is_change(provider: ProviderPicture, target: Picture) -> bool:
    there = target.providers.get(provider.uuid)
    return there is None or (there.name, there.parent) != (provider.name, provider.parent)


def _parked(
    levels: Iterable[Iterable[ProviderPicture]],
    removed: Mapping[str, ProviderPicture],
    target: Picture,
) -> list[ProviderPicture]:
    """Return the target's providers whose names other providers will get."""
    changed = {each.uuid: each for level in levels for each in level}
    new_owners = {each.name: uuid for uuid, each in changed.items()}
    losing = [
        there
        for uuid, there in target.providers.items()
        if uuid in removed or (uuid in changed and changed[uuid].name != there.name)
    ]
    return [each for each in losing if new_owners.get(each.name, each.uuid) != each.uuid]


def _updates(
    source: Picture, target: Picture, opened: Mapping[str, Inventories]
) -> list[ProviderUpdate]:
    found = []
    for uuid, provider in source.providers.items():
        there = target.providers.get(uuid)
        traits = frozenset() if there is None else there.traits
        aggregates = frozenset() if there is None else there.aggregates
        update = ProviderUpdate(
            uuid,
            inventories=opened.get(uuid),
            traits=None if traits == provider.traits else provider.traits,
            aggregates=None if aggregates == provider.aggregates else provider.aggregates,
        )
        if update != ProviderUpdate(uuid):
            found.append(update)
    return found


def _consumers(
    source: Picture, target: Picture, others: Others
) -> tuple[list[ConsumerPicture], list[ConsumerPicture]]:
    with_kinds = source.has_kinds and target.has_kinds
    dropped, written = [], []
    if others is Others.REMOVE:
        dropped = [c for uuid, c in target.consumers.items() if uuid not in source.consumers]
    for uuid, consumer in source.consumers.items():
        there = target.consumers.get(uuid)
        if there is not None and hold_same(consumer, there, with_kinds=with_kinds):
            continue
        written.append(consumer)
        # The API cannot clear a consumer's type, so the consumer is removed and written again.
        if with_kinds and consumer.kind is None and there is not None and there.kind is not None:
            dropped.append(there)
    return dropped, written


def _inventories(
    source: Picture,
    target: Picture,
    dropped: Iterable[ConsumerPicture],
    written: Sequence[ConsumerPicture],
) -> tuple[dict[str, Inventories], dict[str, Inventories]]:
    """Return the inventories to set before and after the consumers are written."""
    gone = {each.uuid for each in dropped}
    staying = {uuid: each for uuid, each in target.consumers.items() if uuid not in gone}
    most = _most_held(staying, written)
    held_now = _by_provider(held(target.consumers.values()))
    kept = (each for uuid, each in staying.items() if uuid not in source.consumers)
    held_by_others = _by_provider(held(kept))
    amounts: dict[tuple[str, str], list[int]] = {}
    for consumer in written:
        for key, amount in consumer.amounts():
            amounts.setdefault(key, []).append(amount)
    opened: dict[str, Inventories] = {}
    closed: dict[str, Inventories] = {}
    for uuid, provider in source.providers.items():
        there = target.providers.get(uuid)
        present: Inventories = {} if there is None else there.inventories
        # Keep inventories that consumers of the target use, if the source does not have these
        # consumers.
        final = {**_only(present, held_by_others.get(uuid, ())), **provider.inventories}
        wide = {
            # An inventory that still has allocations cannot be removed yet.
            **_only(present, held_now.get(uuid, ())),
            **{
                name: _opened(inventory, most.get((uuid, name), 0), amounts.get((uuid, name)))
                for name, inventory in final.items()
            },
        }
        if not are_same(present, wide):
            opened[uuid] = wide
        if not are_same(wide, final):
            closed[uuid] = final
    return opened, closed


def _by_provider(sums: Tally) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for provider, name in sums:
        found.setdefault(provider, set()).add(name)
    return found


def _only(inventories: Inventories, names: Iterable[str]) -> Inventories:
    return {name: inventories[name] for name in names if name in inventories}


def _most_held(staying: Mapping[str, ConsumerPicture], written: Iterable[ConsumerPicture]) -> Tally:
    """Return the largest usages that are possible during the writes, in any order of the writes."""
    after = {each.uuid: each for each in written}
    most = held(each for uuid, each in staying.items() if uuid not in after)
    for uuid, consumer in after.items():
        before = dict(staying[uuid].amounts()) if uuid in staying else {}
        now = dict(consumer.amounts())
        for key in before.keys() | now.keys():
            most[key] = most.get(key, 0) + max(before.get(key, 0), now.get(key, 0))
    return most


def _opened(final: Inventory, most: int, amounts: Sequence[int] | None) -> Inventory:
    """Return an inventory that accepts allocations of all ``amounts``.

    If the final inventory accepts all ``amounts`` and has room for ``most``, returns the final
    inventory. The final inventory may not suffice if the source's provider is over capacity, or if
    its units changed after the allocations. Then the returned inventory has room for exactly
    ``most``, so that other clients of the target never find capacity that does not exist.
    """
    if not amounts:
        return final
    # The target may be OpenStack's Placement, which is stricter than Innkeeper. Innkeeper accepts
    # min_unit with any step.
    is_allowed = all(
        final.min_unit <= each <= final.max_unit and each % final.step_size == 0 for each in amounts
    )
    if is_allowed and most <= final.capacity:
        return final
    ratio = math.ceil(most / UNIT_MAX)
    return Inventory(total=math.ceil(most / ratio), allocation_ratio=float(ratio))
