"""Check, then commit: allocations change here and nowhere else.

Two ways lead in. Who has a :class:`ProviderView` of its own (a row of the host table) checks
there and hands finished claims to :func:`commit_together`. Who does not calls
:func:`replace`, which looks, checks and commits. In both, what proves the check is the
generation: a provider that moved on refuses the claim. Then one looks again: who has a table,
in the same transaction, which sees more than the table shows; who has none, in another one.

Always true after every commit: for each provider and class the sum of the allocations is at
most the capacity, unless an operator shrank the inventory below what was held already.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from innkeeper.domain.errors import (
    CapacityExceeded,
    ConcurrentUpdate,
    ProviderChanged,
    Refusal,
)
from innkeeper.domain.ids import ClassId, ConsumerUuid, ProviderId
from innkeeper.domain.placement import Claim, ConsumerClaim, ProviderView
from innkeeper.store import claims
from innkeeper.store.claims import Freed
from innkeeper.store.queries import allocations, capacity, names
from innkeeper.store.queries.names import Kind
from innkeeper.store.transactions import Tx


def commit_together(tx: Tx, ready: Sequence[Claim], now: datetime) -> list[Refusal | None]:
    """Commit claims that were checked at the generations they name; see the store's."""
    return claims.commit_together(tx, ready, now)


def release(tx: Tx, consumers: Sequence[ConsumerUuid], now: datetime) -> list[Freed]:
    """Give back all that these consumers hold; those that hold nothing are passed over."""
    return claims.release(tx, consumers, now)


def replace(tx: Tx, wanted: Sequence[ConsumerClaim], now: datetime) -> None:
    """Replace the allocations of several consumers: all of them, or none.

    What the consumers hold now is let go before the sums are checked, so amounts can move
    between them. Raises :class:`CapacityExceeded` for amounts that do not fit or are not given
    out, and :class:`ConcurrentUpdate` for a consumer at another generation, or for a provider
    that another writer moved on in between; the caller rolls back.
    """
    # Who is to be new holds nothing; if that is wrong, the commit finds out.
    held = _held(tx, [each.uuid for each in wanted if each.seen is not None])
    touched = {pid for each in wanted for pid in each.amounts} | {pid for pid, _ in held}
    views = capacity.views(tx, touched)
    misfit = find_misfit(views, wanted, held)
    if misfit is not None:
        raise CapacityExceeded(_in_words(tx, misfit))
    seen = {pid: view.generation for pid, view in views.items()}
    (refusal,) = claims.commit_together(tx, [Claim(tuple(wanted), seen)], now)
    # No second look: it would be at the same moment of the store, which one transaction sees
    # unchanged. On a database with one writer nobody comes between at all. With several, who
    # is beaten is told so, and clients of the Placement API repeat what has this code.
    if isinstance(refusal, ProviderChanged):
        raise ConcurrentUpdate(
            "Unable to allocate inventory: the resource providers were concurrently updated. "
            "Please try again."
        )
    if refusal is not None:
        raise refusal


Held = Mapping[tuple[ProviderId, ClassId], int]


def _held(tx: Tx, consumers: Iterable[ConsumerUuid]) -> Held:
    sums: dict[tuple[ProviderId, ClassId], int] = {}
    for row in allocations.of_consumers(tx, consumers):
        key = (row.provider_id, row.class_id)
        sums[key] = sums.get(key, 0) + row.used
    return sums


@dataclass(frozen=True, slots=True)
class Misfit:
    """An amount that a provider does not give, and why."""

    view: ProviderView
    class_id: ClassId
    reason: str


def find_misfit(
    views: Mapping[ProviderId, ProviderView], wanted: Sequence[ConsumerClaim], held: Held
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
        return "The resource provider has no inventory of that class."
    if inventory.gives(amount):
        return None
    return (
        f"The requested amount would violate inventory constraints. ({amount} is not allowed "
        f"with min_unit {inventory.min_unit}, max_unit {inventory.max_unit} and step_size "
        f"{inventory.step_size}.)"
    )


def _in_words(tx: Tx, misfit: Misfit) -> str:
    # The name is looked up only now: most claims fit, and need none.
    name = names.name_of(tx, Kind.CLASS, misfit.class_id)
    return (
        f"Unable to allocate inventory: Unable to create allocation for '{name}' on resource "
        f"provider '{misfit.view.uuid}'. {misfit.reason}"
    )
