"""What a Placement holds, as it was read over its API: the words of the import.

Always true: uuids are in their usual spelling, so that both sides can be compared; generations
are here because a writer has to name them, and are never compared. A picture is not one moment
of its service, which may be in use while it is taken.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields

from innkeeper.domain.amounts import Inventory

CUSTOM = "CUSTOM_"
"""How names begin that a service does not know by itself."""

Amounts = Mapping[str, int]
"""Amounts by resource class."""
Tally = dict[tuple[str, str], int]
"""Amounts by provider and resource class."""


@dataclass(frozen=True, slots=True)
class ProviderPicture:
    """One provider with all that belongs to it.

    ``spelling`` is its uuid as its service writes it, which is what paths need.
    ``usages`` is what its service says is in use; ``None`` where that was not asked.
    """

    uuid: str
    name: str
    parent: str | None
    generation: int
    inventories: Mapping[str, Inventory]
    traits: frozenset[str]
    aggregates: frozenset[str]
    usages: Amounts | None = None
    spelling: str = ""


@dataclass(frozen=True, slots=True)
class ConsumerPicture:
    """One consumer and what it holds, by provider. ``kind`` is its type, if it has one."""

    uuid: str
    project: str
    user: str
    kind: str | None
    generation: int
    holds: Mapping[str, Amounts]
    spelling: str = ""

    def amounts(self) -> Iterator[tuple[tuple[str, str], int]]:
        """Each provider and class it holds of, and how much."""
        for provider, amounts in self.holds.items():
            for name, amount in amounts.items():
                yield (provider, name), amount


@dataclass(frozen=True, slots=True)
class Picture:
    """All of one side. ``classes`` and ``traits`` are all names that it knows.

    ``has_kinds`` tells whether its version speaks of consumers' types. ``totals`` is what it
    says that each project uses; ``None`` where that was not asked.
    """

    providers: Mapping[str, ProviderPicture]
    consumers: Mapping[str, ConsumerPicture]
    classes: frozenset[str]
    traits: frozenset[str]
    has_kinds: bool = True
    totals: Mapping[str, Amounts] | None = None

    def levels(self) -> list[list[ProviderPicture]]:
        """The providers in the order of their trees: roots first, then what hangs on them.

        A provider whose parent is not here counts as a root.
        """
        children: dict[str | None, list[ProviderPicture]] = {}
        for provider in self.providers.values():
            parent = provider.parent if provider.parent in self.providers else None
            children.setdefault(parent, []).append(provider)
        found = []
        level = children.get(None, [])
        while level:
            found.append(level)
            level = [child for each in level for child in children.get(each.uuid, [])]
        return found


def held(consumers: Iterable[ConsumerPicture]) -> Tally:
    """How much these consumers hold in all."""
    sums: Tally = {}
    for consumer in consumers:
        for key, amount in consumer.amounts():
            sums[key] = sums.get(key, 0) + amount
    return sums


RATIO_TOLERANCE = 1e-6
"""The relative precision of a single-precision number is some 1e-7."""
RATIO = "allocation_ratio"


def unlike(one: Inventory, other: Inventory) -> list[str]:
    """The fields in which two inventories differ, but for the width of a database's column.

    Ratios are single-precision numbers in some databases and double-precision in others: what
    was written as 1.1 may be read as 1.10000002384.
    """
    names = (field.name for field in fields(Inventory))
    differ = [name for name in names if getattr(one, name) != getattr(other, name)]
    if RATIO in differ:
        most = max(abs(one.allocation_ratio), abs(other.allocation_ratio))
        if abs(one.allocation_ratio - other.allocation_ratio) <= RATIO_TOLERANCE * most:
            differ.remove(RATIO)
    return differ


def are_same(one: Mapping[str, Inventory], other: Mapping[str, Inventory]) -> bool:
    """Whether two providers have the same, class by class."""
    return one.keys() == other.keys() and not any(unlike(one[k], other[k]) for k in one)


def hold_same(one: ConsumerPicture, other: ConsumerPicture, *, with_kinds: bool) -> bool:
    """Whether two consumers are equal; types count if both sides speak of them."""
    kinds_agree = not with_kinds or one.kind == other.kind
    return kinds_agree and (one.project, one.user, one.holds) == (
        other.project,
        other.user,
        other.holds,
    )
