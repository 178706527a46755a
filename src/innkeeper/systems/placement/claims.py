"""Check, then commit: allocations change here and nowhere else.

Two ways lead in. Who has a :class:`ProviderView` of its own (a row of the host table) checks
there and hands finished claims to :func:`commit_together`. Who does not calls
:func:`replace`, or :func:`replace_together` for many clients at once, which looks, checks and
commits. In both, what proves the check is the generation: a provider that moved on refuses
the claim. Then one looks again: who has a table, in the same transaction, which sees more than
the table shows; who has none, in another one.

Always true after every commit: for each provider and class the sum of the allocations is at
most the capacity, unless an operator shrank the inventory below what was held already.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from innkeeper.domain.errors import CapacityExceeded, Refusal
from innkeeper.domain.ids import ClassId, ConsumerUuid, Generation, ProviderId
from innkeeper.domain.placement import Claim, ConsumerClaim, ProviderView
from innkeeper.store import claims
from innkeeper.store.claims import Freed
from innkeeper.store.queries.placement import allocations, capacity, names
from innkeeper.store.queries.placement.names import NameKind
from innkeeper.store.transactions import Tx


def commit_together(
    tx: Tx, ready: Sequence[Claim], now: datetime, given_back: Sequence[Freed] = ()
) -> list[Refusal | None]:
    """Commit claims that were checked at the generations they name; see the store's."""
    return claims.commit_together(tx, ready, now, given_back=given_back)


def release(tx: Tx, consumers: Sequence[ConsumerUuid], now: datetime) -> list[Freed]:
    """Give back all that these consumers hold; those that hold nothing are passed over."""
    return claims.release(tx, consumers, now)


def replace(tx: Tx, wanted: Sequence[ConsumerClaim], now: datetime) -> None:
    """Replace the allocations of several consumers: all of them, or none.

    What the consumers hold now is let go before the sums are checked, so amounts can move
    between them. Raises :class:`CapacityExceeded` for amounts that do not fit or are not given
    out, :class:`ConcurrentUpdate` for a consumer at another generation, and
    :class:`Overtaken` where another writer came between; the caller rolls back, and in that
    last case looks again in another transaction.
    """
    (refusal,) = _replace_together(tx, [wanted], now, are_read_here=False)
    if refusal is not None:
        raise refusal


def replace_together(
    tx: Tx, groups: Sequence[Sequence[ConsumerClaim]], now: datetime
) -> list[Refusal | None]:
    """Replace the allocations of many groups of consumers; each group stands or falls alone.

    Gives for each group ``None``, or what :func:`replace` would raise had the accepted groups
    before it been written already. No consumer is in two groups, and the caller has read the
    generations of all of them in this very transaction.
    """
    return _replace_together(tx, groups, now, are_read_here=True)


def _replace_together(
    tx: Tx, groups: Sequence[Sequence[ConsumerClaim]], now: datetime, *, are_read_here: bool
) -> list[Refusal | None]:
    # Who is to be new holds nothing; if that is wrong, the commit finds out.
    held = _held(tx, [each.uuid for group in groups for each in group if each.seen is not None])
    touched = [_touched(group, held) for group in groups]
    standing = _ProviderState(capacity.views(tx, {pid for each in touched for pid in each}))
    outcomes: list[Refusal | None] = [None] * len(groups)
    ready: dict[int, Claim] = {}
    for index, group in enumerate(groups):
        given_back = _given_back(group, held)
        misfit = find_misfit(standing.views, group, given_back)
        if misfit is not None:
            outcomes[index] = CapacityExceeded(_in_words(tx, misfit))
            continue
        ready[index] = Claim(tuple(group), standing.generations(touched[index]))
        standing.take(group, given_back, touched[index])
    refusals = claims.commit_together(tx, list(ready.values()), now, are_read_here=are_read_here)
    # No second look here: whoever has its turn is the only one who writes, and sees the same
    # again. Who is told all the same that a provider changed, which takes a fail-over, repeats
    # the step in another transaction.
    for index, refusal in zip(ready, refusals, strict=True):
        outcomes[index] = refusal
    return outcomes


Sums = Mapping[tuple[ProviderId, ClassId], int]


def _held(tx: Tx, consumers: Iterable[ConsumerUuid]) -> Mapping[ConsumerUuid, Sums]:
    found: dict[ConsumerUuid, dict[tuple[ProviderId, ClassId], int]] = {}
    for row in allocations.of_consumers(tx, consumers):
        found.setdefault(row.consumer_uuid, {})[row.provider_id, row.class_id] = row.used
    return found


def _given_back(group: Sequence[ConsumerClaim], held: Mapping[ConsumerUuid, Sums]) -> Sums:
    sums: dict[tuple[ProviderId, ClassId], int] = {}
    for each in group:
        for key, used in held.get(each.uuid, {}).items():
            sums[key] = sums.get(key, 0) + used
    return sums


def _touched(group: Sequence[ConsumerClaim], held: Mapping[ConsumerUuid, Sums]) -> set[ProviderId]:
    named = {pid for each in group for pid in each.amounts}
    return named | {pid for each in group for pid, _ in held.get(each.uuid, ())}


class _ProviderState:
    """Providers as they will be once all that was taken so far is written."""

    def __init__(self, views: Mapping[ProviderId, ProviderView]) -> None:
        self._used = {pid: dict(view.used) for pid, view in views.items()}
        self._moves: dict[ProviderId, int] = {}
        self.views = {
            pid: ProviderView(pid, view.uuid, view.generation, view.inventories, self._used[pid])
            for pid, view in views.items()
        }

    def generations(self, ids: Iterable[ProviderId]) -> dict[ProviderId, Generation]:
        """Where the providers stand: every claim that took of one has moved it once."""
        return {
            pid: Generation(self.views[pid].generation + self._moves.get(pid, 0)) for pid in ids
        }

    def take(
        self, group: Sequence[ConsumerClaim], given_back: Sums, touched: Iterable[ProviderId]
    ) -> None:
        """Count a group in."""
        for provider_id in touched:
            self._moves[provider_id] = self._moves.get(provider_id, 0) + 1
        for (provider_id, class_id), freed in given_back.items():
            self._used[provider_id][class_id] -= freed
        for each in group:
            for provider_id, amounts in each.amounts.items():
                used = self._used[provider_id]
                for class_id, amount in amounts.items():
                    used[class_id] = used.get(class_id, 0) + amount


NO_INVENTORY = "The resource provider has no inventory of that class."


@dataclass(frozen=True, slots=True)
class Misfit:
    """An amount that a provider does not give, and why."""

    view: ProviderView
    class_id: ClassId
    reason: str


def find_misfit(
    views: Mapping[ProviderId, ProviderView], wanted: Sequence[ConsumerClaim], held: Sums
) -> Misfit | None:
    """Find the first amount that does not fit, if any; all of them must fit together.

    ``held`` is what the same consumers give back in the same breath. A provider that is over
    capacity already (its inventory shrank) still takes a write that does not make it worse.
    """
    sums: dict[tuple[ProviderId, ClassId], int] = {}
    for each in wanted:
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
        given_back = held.get((provider_id, class_id), 0)
        used_after = view.used.get(class_id, 0) - given_back + added
        if used_after > view.inventories[class_id].capacity and added > given_back:
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


def _in_words(tx: Tx, misfit: Misfit) -> str:
    # The name is looked up only now: most claims fit, and need none.
    name = names.name_of(tx, NameKind.CLASS, misfit.class_id)
    thing = f"'{name}' on resource provider '{misfit.view.uuid}'"
    if misfit.reason == NO_INVENTORY:
        what = f"Inventory for {thing} invalid."
    else:
        what = f"Unable to create allocation for {thing}."
    return f"Unable to allocate inventory: {what} {misfit.reason}"
