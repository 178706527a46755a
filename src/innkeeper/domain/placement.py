"""Words of the placement room: providers, allocations, consumers, and the claim.

Source: the seed *Resource Providers*; where it is silent, the Placement API reference.

Always true of pools, and proved in the tests to be the same wherever it is worked out:

- A *pool* is a provider with the trait :data:`SHARES` that holds no servers. A provider that
  can hold some is no pool, whatever its traits say.
- A pool *serves* a host if any provider of the host's tree is in one of the pool's aggregates.
- A host has *nothing itself* of a class if its capacity of it is less than one unit, however
  much is held of it. It borrows the class of the pools that serve it, and nothing that it has
  itself.

Three places work it out, each of what it has at hand: the host table for decisions, the
systems for a page of hosts, and one query for the sums over all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from innkeeper.domain.amounts import Inventory
from innkeeper.domain.ids import ClassId, ConsumerUuid, Generation, ProviderId, ProviderUuid

CUSTOM_PREFIX = "CUSTOM_"
SHARES = "MISC_SHARES_VIA_AGGREGATE"
"""The standard trait of a provider that serves every tree with a member in its aggregates."""


@dataclass(frozen=True, slots=True)
class Provider:
    """Anything that has inventory. Where ``can_host`` is false (a pool) no server lands."""

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
    """A resource class or a trait: a name with a row, and when the row was made."""

    id: int
    name: str
    created_at: datetime
    updated_at: datetime

    @property
    def is_custom(self) -> bool:
        """Whether an operator made it; standard ones come from the libraries of names."""
        return self.name.startswith(CUSTOM_PREFIX)


@dataclass(frozen=True, slots=True)
class Consumer:
    """What allocations belong to: a server, a reservation, a volume."""

    uuid: ConsumerUuid
    project_id: str
    user_id: str
    generation: Generation
    consumer_type: str | None = None


@dataclass(frozen=True, slots=True)
class Allocation:
    """A committed record: so much of a class of a provider belongs to a consumer."""

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
    """What a provider has of one resource class, and when that was last written."""

    class_id: ClassId
    class_name: str
    inventory: Inventory
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class ProviderQuery:
    """Which providers are asked for; whatever is left out does not narrow the answer.

    A provider is in an aggregate of *every* set in ``member_of``, and in none of
    ``not_member_of``; likewise for traits with ``required`` and ``forbidden``. ``resources``
    holds amounts that must fit beside what is held already.
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
    """How much the consumers of one type hold, by resource class, and how many they are."""

    consumers: int
    used: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class ProviderView:
    """One provider as it was at one generation: what it has, and how much of it is held.

    The generation and the amounts were read in one transaction, or lie in one row of the host
    table; a claim that proves the generation proves the amounts with it.
    """

    id: ProviderId
    uuid: ProviderUuid
    generation: Generation
    inventories: Mapping[ClassId, Inventory]
    used: Mapping[ClassId, int]


Amounts = Mapping[ProviderId, Mapping[ClassId, int]]
"""What one consumer takes: provider -> resource class -> whole units, each at least 1."""


@dataclass(frozen=True, slots=True)
class ConsumerClaim:
    """The complete new set of one consumer's allocations; an empty one lets all of it go.

    ``seen`` is the consumer's generation as the claimant knows it: ``None`` for a consumer
    that is not to exist yet. ``is_new_id`` promises that the id was made for this very claim,
    so that there is nothing to look up or to replace.
    """

    uuid: ConsumerUuid
    project_id: str
    user_id: str
    amounts: Amounts
    seen: Generation | None
    consumer_type: str | None = None
    is_new_id: bool = False


@dataclass(frozen=True, slots=True)
class Claim:
    """One or more consumers' new allocations: all of them are committed, or none.

    ``seen`` holds the generation of *every* provider that the claim touches, those included
    whose allocations only go away. The claimant has checked capacity at these generations.
    """

    consumers: tuple[ConsumerClaim, ...]
    seen: Mapping[ProviderId, Generation] = field(default_factory=dict)
