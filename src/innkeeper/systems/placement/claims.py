"""Check and commit claims. No other module changes allocations.

A caller with a host table (a copy of the hosts in memory) checks the capacity itself, and passes
the claims to :func:`commit_together`. Any other caller uses :func:`replace`, or
:func:`replace_together` for many clients at once. These two functions read the providers, check the
capacity, and commit.

If a provider's generation has advanced since the check, the commit refuses the claim. A caller with
a host table then retries in the same transaction. Any other caller retries in a new transaction.

Always true after every commit: the allocations of each provider and class add up to at most the
capacity. Exception: an operator may have shrunk the inventory below the existing allocations.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from innkeeper.domain.errors import CapacityExceeded, Refusal
from innkeeper.domain.ids import ClassId, ConsumerUuid, Generation, ProviderId
from innkeeper.domain.placement import Claim, ConsumerClaim, ProviderView
from innkeeper.store import claims
from innkeeper.store.queries.placement import allocations, capacity, names
from innkeeper.store.queries.placement.names import NameKind
from innkeeper.store.transactions import Tx

# Only this package may use the store's claims. Other packages get these two functions from here.
# Callers of ``commit_together`` have checked the capacity.
commit_together = claims.commit_together
release = claims.release


def replace(tx: Tx, requested: Sequence[ConsumerClaim], now: datetime) -> None:
    """Replace the allocations of all these consumers, or of none of them.

    The check ignores the present allocations of these consumers, so amounts can move between them.
    Raises :class:`CapacityExceeded` for amounts that do not fit. Raises :class:`ConcurrentUpdate`
    if a consumer's generation has changed. Raises :class:`Overtaken` if another writer was faster.
    The caller must then roll back and retry in a new transaction.
    """
    (refusal,) = _replace_together(tx, [requested], now, are_read_here=False)
    if refusal is not None:
        raise refusal


def replace_together(
    tx: Tx, groups: Sequence[Sequence[ConsumerClaim]], now: datetime
) -> list[Refusal | None]:
    """Replace the allocations of many groups of consumers.

    Each group is replaced completely, or refused completely. The result has one item per group: the
    group's error, or ``None``. The effect is the same as calling :func:`replace` for each group in
    turn. A consumer must not be in two groups. The caller must have read the generations of all
    consumers in this transaction.
    """
    return _replace_together(tx, groups, now, are_read_here=True)


def _replace_together(
    tx: Tx, groups: Sequence[Sequence[ConsumerClaim]], now: datetime, *, are_read_here: bool
) -> list[Refusal | None]:
    # The allocations of new consumers are not read. If a new consumer has allocations, the commit
    # fails.
    held = _held(tx, [each.uuid for group in groups for each in group if each.seen is not None])
    touched = [_touched(group, held) for group in groups]
    state = _ProviderState(capacity.views(tx, {pid for each in touched for pid in each}))
    outcomes: list[Refusal | None] = [None] * len(groups)
    ready: dict[int, Claim] = {}
    for index, group in enumerate(groups):
        released = _released(group, held)
        misfit = find_misfit(state.views, group, released)
        if misfit is not None:
            outcomes[index] = CapacityExceeded(_message(tx, misfit))
            continue
        ready[index] = Claim(tuple(group), state.generations(touched[index]))
        state.take(group, released, touched[index])
    refusals = claims.commit_together(tx, list(ready.values()), now, are_read_here=are_read_here)
    # Do not retry here: writers take turns, so this transaction would read the same values again.
    # After a failover, a provider may have changed. The caller then retries in a new transaction.
    for index, refusal in zip(ready, refusals, strict=True):
        outcomes[index] = refusal
    return outcomes


Sums = Mapping[tuple[ProviderId, ClassId], int]


def _held(tx: Tx, consumers: Iterable[ConsumerUuid]) -> Mapping[ConsumerUuid, Sums]:
    found: dict[ConsumerUuid, dict[tuple[ProviderId, ClassId], int]] = {}
    for row in allocations.of_consumers(tx, consumers):
        found.setdefault(row.consumer_uuid, {})[row.provider_id, row.class_id] = row.used
    return found


def _released(group: Sequence[ConsumerClaim], held: Mapping[ConsumerUuid, Sums]) -> Sums:
    sums: dict[tuple[ProviderId, ClassId], int] = {}
    for each in group:
        for key, used in held.get(each.uuid, {}).items():
            sums[key] = sums.get(key, 0) + used
    return sums


def _touched(group: Sequence[ConsumerClaim], held: Mapping[ConsumerUuid, Sums]) -> set[ProviderId]:
    named = {pid for each in group for pid in each.amounts}
    return named | {pid for each in group for pid, _ in held.get(each.uuid, ())}


class _ProviderState:
    """The usage and generations of providers, as the groups accepted so far have changed them."""

    def __init__(self, views: Mapping[ProviderId, ProviderView]) -> None:
        self._used = {pid: dict(view.used) for pid, view in views.items()}
        self._moves: dict[ProviderId, int] = {}
        self.views = {
            pid: ProviderView(pid, view.uuid, view.generation, view.inventories, self._used[pid])
            for pid, view in views.items()
        }

    def generations(self, ids: Iterable[ProviderId]) -> dict[ProviderId, Generation]:
        """Return the generations that the next claim must contain.

        Each accepted group advances the generations of its providers by one.
        """
        return {
            pid: Generation(self.views[pid].generation + self._moves.get(pid, 0)) for pid in ids
        }

    def take(
        self, group: Sequence[ConsumerClaim], released: Sums, touched: Iterable[ProviderId]
    ) -> None:
        """Add an accepted group: subtract the ``released`` amounts, and add the claimed amounts."""
        for provider_id in touched:
            self._moves[provider_id] = self._moves.get(provider_id, 0) + 1
        for (provider_id, class_id), freed in released.items():
            self._used[provider_id][class_id] -= freed
        for each in group:
            for provider_id, amounts in each.amounts.items():
                used = self._used[provider_id]
                for class_id, amount in amounts.items():
                    used[class_id] = used.get(class_id, 0) + amount


NO_INVENTORY = "The resource provider has no inventory of that class."


@dataclass(frozen=True, slots=True)
class Misfit:
    """An amount that does not fit on a provider, and the reason."""

    view: ProviderView
    class_id: ClassId
    reason: str


def find_misfit(
    views: Mapping[ProviderId, ProviderView], requested: Sequence[ConsumerClaim], held: Sums
) -> Misfit | None:
    """Return the first amount that does not fit, or ``None`` if all amounts fit together.

    ``held`` has the amounts that the consumers release in the same write. If an inventory has
    shrunk below its usage, a write still fits if it does not increase the usage.
    """
    sums: dict[tuple[ProviderId, ClassId], int] = {}
    for each in requested:
        for provider_id, amounts in each.amounts.items():
            view = views[provider_id]
            for class_id, amount in amounts.items():
                reason = _unit_violation(view, class_id, amount)
                if reason is not None:
                    return Misfit(view, class_id, reason)
                key = (provider_id, class_id)
                sums[key] = sums.get(key, 0) + amount
    for (provider_id, class_id), added in sums.items():
        view = views[provider_id]
        released = held.get((provider_id, class_id), 0)
        used_after = view.used.get(class_id, 0) - released + added
        if used_after > view.inventories[class_id].capacity and added > released:
            return Misfit(
                view,
                class_id,
                "The requested amount would exceed the capacity. "
                f"({used_after} of {view.inventories[class_id].capacity_units} units would "
                "be in use.)",
            )
    return None


def _unit_violation(view: ProviderView, class_id: ClassId, amount: int) -> str | None:
    inventory = view.inventories.get(class_id)
    if inventory is None:
        return NO_INVENTORY
    if inventory.gives(amount):
        return None
    return (
        f"The requested amount would violate inventory constraints. ({amount} is not allowed "
        f"with min_unit {inventory.min_unit}, max_unit {inventory.max_unit} and step_size "
        f"{inventory.step_size}.)"
    )


def _message(tx: Tx, misfit: Misfit) -> str:
    # The class name is looked up only here, because most claims fit and need no message.
    name = names.name_of(tx, NameKind.CLASS, misfit.class_id)
    subject = f"'{name}' on resource provider '{misfit.view.uuid}'"
    if misfit.reason == NO_INVENTORY:
        failure = f"Inventory for {subject} invalid."
    else:
        failure = f"Unable to create allocation for {subject}."
    return f"Unable to allocate inventory: {failure} {misfit.reason}"
