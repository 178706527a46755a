"""The content of a Placement service (a picture), as read over the service's API.

Always true: uuids are in canonical form, so that two services can be compared. Generations are kept
for writes, and are never compared.

A picture may be inconsistent, because the service may be in use while the picture is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields

from innkeeper.domain.amounts import Inventory

CUSTOM = "CUSTOM_"
"""The prefix of names that are not standard."""

Amounts = Mapping[str, int]
"""Amounts by resource class."""
Tally = dict[tuple[str, str], int]
"""Amounts by provider and resource class."""


@dataclass(frozen=True, slots=True)
class ProviderPicture:
    """One provider with its inventories, traits and aggregates.

    ``spelling`` is the uuid in the form that the service uses in paths. ``usages`` is ``None`` if
    the usages were not read.
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
    """One consumer and its allocations, by provider. ``kind`` is its type, if it has one."""

    uuid: str
    project: str
    user: str
    kind: str | None
    generation: int
    holds: Mapping[str, Amounts]
    spelling: str = ""

    def amounts(self) -> Iterator[tuple[tuple[str, str], int]]:
        """Yield the amounts by provider and resource class."""
        for provider, amounts in self.holds.items():
            for name, amount in amounts.items():
                yield (provider, name), amount


@dataclass(frozen=True, slots=True)
class Picture:
    """The content of one service. ``classes`` and ``traits`` are all names that the service knows.

    ``has_kinds`` is true if the service's microversion has consumer types. ``totals`` are the
    usages by project, or ``None`` if they were not read.
    """

    providers: Mapping[str, ProviderPicture]
    consumers: Mapping[str, ConsumerPicture]
    classes: frozenset[str]
    traits: frozenset[str]
    has_kinds: bool = True
    totals: Mapping[str, Amounts] | None = None

    def levels(self) -> list[list[ProviderPicture]]:
        """Return lists of the providers at each depth of the trees, roots first.

        A provider whose parent is missing counts as a root.
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
    """Return the sums of these consumers' allocations, by provider and resource class."""
    sums: Tally = {}
    for consumer in consumers:
        for key, amount in consumer.amounts():
            sums[key] = sums.get(key, 0) + amount
    return sums


RATIO_TOLERANCE = 1e-6
"""The relative precision of a single-precision number is about 1e-7."""
RATIO = "allocation_ratio"


def unlike(one: Inventory, other: Inventory) -> list[str]:
    """Return the fields in which two inventories differ by more than the precision of databases.

    Some databases store ratios in single precision, so that 1.1 may be read as 1.10000002384.
    """
    names = (field.name for field in fields(Inventory))
    differ = [name for name in names if getattr(one, name) != getattr(other, name)]
    if RATIO in differ:
        most = max(abs(one.allocation_ratio), abs(other.allocation_ratio))
        if abs(one.allocation_ratio - other.allocation_ratio) <= RATIO_TOLERANCE * most:
            differ.remove(RATIO)
    return differ


def are_same(one: Mapping[str, Inventory], other: Mapping[str, Inventory]) -> bool:
    """Return whether two providers have the same inventories."""
    return one.keys() == other.keys() and not any(unlike(one[k], other[k]) for k in one)


def hold_same(one: ConsumerPicture, other: ConsumerPicture, *, with_kinds: bool) -> bool:
    """Return whether two consumers are equal.

    If ``with_kinds`` is true, their types are compared, too.
    """
    kinds_agree = not with_kinds or one.kind == other.kind
    same_owner = (one.project, one.user) == (other.project, other.user)
    return kinds_agree and same_owner and one.holds == other.holds
