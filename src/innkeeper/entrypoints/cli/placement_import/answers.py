"""What the answers of a Placement API hold, as far as an import reads them.

Always true: an answer that lacks something, or has something else in its place, is refused in
one line that says what: a uuid that is none, a name that no class and no trait can have, an
amount that no service keeps. Whatever else an answer holds is not looked at.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, TypeVar

import msgspec

from innkeeper.clients.placement import NO_PLACEMENT, in_one_line
from innkeeper.domain.amounts import UNIT_MAX
from innkeeper.domain.errors import Invalid
from innkeeper.domain.ids import canonical_uuid

Form = TypeVar("Form", bound=msgspec.Struct)
Name = Annotated[str, msgspec.Meta(pattern=r"\A[A-Z0-9_]+\Z", max_length=255)]
"""Of a resource class or a trait."""
Kind = Annotated[str, msgspec.Meta(pattern=r"\A([A-Z0-9_]+|unknown)\Z", max_length=255)]
"""The type of a consumer; the word is what the API shows for none."""
Label = Annotated[str, msgspec.Meta(max_length=200)]
"""What a provider is called."""
Owner = Annotated[str, msgspec.Meta(max_length=255)]
"""The id of a project or a user, which need not be a uuid."""
Size = Annotated[int, msgspec.Meta(ge=0, le=UNIT_MAX)]
Share = Annotated[int, msgspec.Meta(ge=1, le=UNIT_MAX)]
Sum = Annotated[int, msgspec.Meta(ge=0)]


def understood(name: str, path: str, answer: Mapping[str, Any], form: type[Form]) -> Form:
    """The answer that the service ``name`` gave about ``path``. Raises :class:`Invalid`."""
    try:
        return msgspec.convert(answer, form)
    except msgspec.ValidationError as error:
        raise Invalid(f"{name}: {NO_PLACEMENT}: {path}: {error}.") from error


def uuid_in(name: str, path: str, spelling: str) -> str:
    """The usual spelling of a uuid in the answer about ``path``. Raises :class:`Invalid`."""
    found = canonical_uuid(spelling)
    if found is None:
        raise Invalid(f"{name}: {NO_PLACEMENT}: {path}: {in_one_line(repr(spelling))} is no uuid.")
    return found


class ClassAnswer(msgspec.Struct, frozen=True):
    """A resource class."""

    name: Name


class Classes(msgspec.Struct, frozen=True):
    """All resource classes."""

    resource_classes: list[ClassAnswer]


class TraitsAnswer(msgspec.Struct, frozen=True):
    """All traits, or those of a provider."""

    traits: list[Name]


class ProviderAnswer(msgspec.Struct, frozen=True):
    """One provider in a list, or by itself."""

    uuid: str
    name: Label
    parent_provider_uuid: str | None


class ProvidersAnswer(msgspec.Struct, frozen=True):
    """All providers."""

    resource_providers: list[ProviderAnswer]


class Made(msgspec.Struct, frozen=True):
    """A provider that was just made."""

    generation: int


class InventoryFields(msgspec.Struct, frozen=True):
    """What a provider has of one class."""

    total: Size
    reserved: Size
    min_unit: Size
    max_unit: Size
    step_size: Share
    allocation_ratio: float


class InventoriesAnswer(msgspec.Struct, frozen=True):
    """All that a provider has."""

    resource_provider_generation: int
    inventories: dict[Name, InventoryFields]


class GenerationAnswer(msgspec.Struct, frozen=True):
    """Where a provider stands, beside what belongs to it."""

    resource_provider_generation: int


class Aggregates(msgspec.Struct, frozen=True):
    """The aggregates that a provider is in."""

    aggregates: list[str]


class Usages(msgspec.Struct, frozen=True):
    """What is in use of a provider, or by a project."""

    usages: dict[Name, Sum]


class Holders(msgspec.Struct, frozen=True):
    """Who holds something of a provider, or whereof a consumer holds something."""

    allocations: dict[str, Any]


class Line(msgspec.Struct, frozen=True):
    """What a consumer holds of one provider."""

    resources: dict[Name, Share]


class Holding(msgspec.Struct, frozen=True):
    """A consumer that holds something. Services from before there were types tell none."""

    allocations: dict[str, Line]
    project_id: Owner
    user_id: Owner
    consumer_generation: int
    consumer_type: Kind | None = None
