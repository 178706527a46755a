"""Types for Placement: providers, allocations, consumers and claims.

Source: the design *Resource Providers*, and the Placement API reference for what the design
leaves open.

Always true of pools:

- A *pool* is a provider that has the trait :data:`SHARES` and cannot hold servers.
- A pool *serves* a host if any provider of the host's tree is in one of the pool's aggregates.
- A host *borrows* a class if its own capacity of the class is less than one unit. Servers on the
  host then get the class from the pools that serve the host. Amounts that are already allocated do
  not matter for this rule.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

import msgspec

from innkeeper.domain.amounts import Inventory
from innkeeper.domain.ids import ClassId, ConsumerUuid, Generation, ProviderId, ProviderUuid

CUSTOM_PREFIX = "CUSTOM_"
SHARES = "MISC_SHARES_VIA_AGGREGATE"
"""The standard trait of a pool. A pool serves every tree with a provider in the pool's aggregates.
"""


@dataclass(frozen=True, slots=True)
class Provider:
    """Anything that has inventory. Only a provider with ``can_host`` can hold servers."""

    id: ProviderId
    uuid: ProviderUuid
    name: str
    generation: Generation
    can_host: bool
    parent_uuid: ProviderUuid | None
    root_uuid: ProviderUuid
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class NamedThing:
    """A resource class or a trait."""

    id: int
    name: str
    created_at: datetime
    updated_at: datetime

    @property
    def is_custom(self) -> bool:
        """Whether an operator created the class or trait. The others come from OpenStack."""
        return self.name.startswith(CUSTOM_PREFIX)


@dataclass(frozen=True, slots=True)
class Consumer:
    """The owner of allocations: a server, a reservation or a volume."""

    uuid: ConsumerUuid
    project_id: str
    user_id: str
    generation: Generation
    consumer_type: str | None = None


@dataclass(frozen=True, slots=True)
class Allocation:
    """A committed amount of one class of one provider that belongs to a consumer."""

    consumer_uuid: ConsumerUuid
    provider_id: ProviderId
    provider_uuid: ProviderUuid
    class_id: ClassId
    class_name: str
    used: int
    created_at: datetime
    provider_generation: Generation


@dataclass(frozen=True, slots=True)
class InventoryLine:
    """A provider's inventory of one resource class."""

    class_id: ClassId
    class_name: str
    inventory: Inventory
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class ProviderQuery:
    """Filters for a list of providers. An empty filter matches all providers.

    A provider must be in at least one aggregate of *every* set in ``member_of``, and in no
    aggregate in ``not_member_of``. It must have at least one trait of every set in ``required``,
    and no trait in ``forbidden``. The amounts in ``resources`` must fit into the free capacity.
    """

    name: str | None = None
    uuid: ProviderUuid | None = None
    in_tree: ProviderUuid | None = None
    member_of: tuple[frozenset[str], ...] = ()
    not_member_of: frozenset[str] = frozenset()
    resources: Mapping[str, int] = field(default_factory=dict)
    required: tuple[frozenset[str], ...] = ()
    forbidden: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class TypeUsage:
    """The number of consumers of one type, and their allocations by resource class."""

    consumers: int
    used: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class ProviderView:
    """The inventories and usages of one provider at one generation.

    All values were read in one transaction, or from one row of the host table. If the generation is
    the same at the time of a claim, the inventories and usages are also the same.
    """

    id: ProviderId
    uuid: ProviderUuid
    generation: Generation
    inventories: Mapping[ClassId, Inventory]
    used: Mapping[ClassId, int]


Amounts = Mapping[ProviderId, Mapping[ClassId, int]]
"""One consumer's allocations: by provider, then by resource class, an amount of at least 1."""


class ConsumerClaim(msgspec.Struct, frozen=True):
    """New allocations of one consumer, which replace all its earlier allocations.

    Empty ``amounts`` only delete the earlier allocations. ``seen`` is the consumer's expected
    generation, or ``None`` if the consumer must not exist yet. ``is_new_id`` promises that the id
    was generated for this claim. Such a consumer has no allocations to look up or to replace.
    """

    uuid: ConsumerUuid
    project_id: str
    user_id: str
    amounts: Amounts
    seen: Generation | None
    consumer_type: str | None = None
    is_new_id: bool = False


class Claim(msgspec.Struct, frozen=True):
    """New allocations of one or more consumers, committed together or not at all.

    ``seen`` has the generation of *every* provider that the claim touches, including those that
    only lose allocations. The caller has checked capacity at these generations.
    """

    consumers: tuple[ConsumerClaim, ...]
    seen: Mapping[ProviderId, Generation] = msgspec.field(default_factory=dict)
