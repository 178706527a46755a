"""What the answers of a Placement API hold, as far as an import reads them.

Always true: an answer that lacks something, or has something else in its place, is refused in
one line that says what. Whatever else an answer holds is not looked at.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from innkeeper.domain.errors import Invalid

Form = TypeVar("Form", bound=msgspec.Struct)


def understood(name: str, path: str, answer: Mapping[str, Any], form: type[Form]) -> Form:
    """The answer that the service ``name`` gave about ``path``. Raises :class:`Invalid`."""
    try:
        return msgspec.convert(answer, form)
    except msgspec.ValidationError as error:
        raise Invalid(f"{name}: what answers is no Placement API: {path}: {error}.") from error


class Named(msgspec.Struct, frozen=True):
    """A resource class."""

    name: str


class Classes(msgspec.Struct, frozen=True):
    """All resource classes."""

    resource_classes: list[Named]


class Traits(msgspec.Struct, frozen=True):
    """All traits, or those of a provider."""

    traits: list[str]


class Row(msgspec.Struct, frozen=True):
    """One provider in a list, or by itself."""

    uuid: str
    name: str
    parent_provider_uuid: str | None


class Rows(msgspec.Struct, frozen=True):
    """All providers."""

    resource_providers: list[Row]


class Made(msgspec.Struct, frozen=True):
    """A provider that was just made."""

    generation: int


class InventoryFields(msgspec.Struct, frozen=True):
    """What a provider has of one class."""

    total: int
    reserved: int
    min_unit: int
    max_unit: int
    step_size: int
    allocation_ratio: float


class Inventories(msgspec.Struct, frozen=True):
    """All that a provider has."""

    resource_provider_generation: int
    inventories: dict[str, InventoryFields]


class Generation(msgspec.Struct, frozen=True):
    """Where a provider stands, beside what belongs to it."""

    resource_provider_generation: int


class Aggregates(msgspec.Struct, frozen=True):
    """The aggregates that a provider is in."""

    aggregates: list[str]


class Usages(msgspec.Struct, frozen=True):
    """What is in use of a provider, or by a project."""

    usages: dict[str, int]


class Holders(msgspec.Struct, frozen=True):
    """Who holds something of a provider, or whereof a consumer holds something."""

    allocations: dict[str, Any]


class Line(msgspec.Struct, frozen=True):
    """What a consumer holds of one provider."""

    resources: dict[str, int]


class Holding(msgspec.Struct, frozen=True):
    """A consumer that holds something. Services from before there were types tell none."""

    allocations: dict[str, Line]
    project_id: str
    user_id: str
    consumer_generation: int
    consumer_type: str | None = None
