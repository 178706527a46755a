"""The fields of a Placement API's responses that an import reads.

Always true: if a field is missing or invalid, the response is rejected with a one-line message that
names the field. Other fields are ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, TypeVar

import msgspec

from innkeeper.clients.placement import NO_PLACEMENT, in_one_line
from innkeeper.domain.amounts import UNIT_MAX
from innkeeper.domain.converters import converter_to
from innkeeper.domain.errors import Invalid
from innkeeper.domain.ids import canonical_uuid

Form = TypeVar("Form", bound=msgspec.Struct)
Name = Annotated[str, msgspec.Meta(pattern=r"\A[A-Z0-9_]+\Z", max_length=255)]
"""The name of a resource class or a trait."""
Kind = Annotated[str, msgspec.Meta(pattern=r"\A([A-Z0-9_]+|unknown)\Z", max_length=255)]
"""The type of a consumer. The API uses "unknown" for a missing type."""
Label = Annotated[str, msgspec.Meta(max_length=200)]
"""The name of a provider."""
Owner = Annotated[str, msgspec.Meta(max_length=255)]
"""The id of a project or a user, which may have any form."""
Size = Annotated[int, msgspec.Meta(ge=0, le=UNIT_MAX)]
Share = Annotated[int, msgspec.Meta(ge=1, le=UNIT_MAX)]
Sum = Annotated[int, msgspec.Meta(ge=0)]


def decoded(name: str, path: str, answer: Mapping[str, Any], form: type[Form]) -> Form:
    """Decode the response of the service ``name`` to a request for ``path``.

    Raises :class:`Invalid` for a missing or invalid field.
    """
    try:
        read: Callable[[object], Form] = _READ[form]
        return read(answer)
    except msgspec.ValidationError as error:
        raise Invalid(f"{name}: {NO_PLACEMENT}: {path}: {error}.") from error


def uuid_in(name: str, path: str, spelling: str) -> str:
    """Return a uuid in canonical form. Raises :class:`Invalid` if the text is not a uuid."""
    found = canonical_uuid(spelling)
    if found is None:
        raise Invalid(
            f"{name}: {NO_PLACEMENT}: {path}: {in_one_line(repr(spelling))} is not a uuid."
        )
    return found


class ClassAnswer(msgspec.Struct, frozen=True):
    name: Name


class Classes(msgspec.Struct, frozen=True):
    resource_classes: list[ClassAnswer]


class TraitsAnswer(msgspec.Struct, frozen=True):
    traits: list[Name]


class ProviderAnswer(msgspec.Struct, frozen=True):
    uuid: str
    name: Label
    parent_provider_uuid: str | None


class ProvidersAnswer(msgspec.Struct, frozen=True):
    resource_providers: list[ProviderAnswer]


class Created(msgspec.Struct, frozen=True):
    generation: int


class InventoryFields(msgspec.Struct, frozen=True):
    total: Size
    reserved: Size
    min_unit: Size
    max_unit: Size
    step_size: Share
    allocation_ratio: float


class InventoriesAnswer(msgspec.Struct, frozen=True):
    resource_provider_generation: int
    inventories: dict[Name, InventoryFields]


class GenerationAnswer(msgspec.Struct, frozen=True):
    resource_provider_generation: int


class Aggregates(msgspec.Struct, frozen=True):
    aggregates: list[str]


class Usages(msgspec.Struct, frozen=True):
    usages: dict[Name, Sum]


class Holders(msgspec.Struct, frozen=True):
    """The allocations of a provider by consumer, or of a consumer by provider."""

    allocations: dict[str, Any]


class Line(msgspec.Struct, frozen=True):
    resources: dict[Name, Share]


class Holding(msgspec.Struct, frozen=True):
    """A consumer's allocations. Microversions without consumer types omit the type."""

    allocations: dict[str, Line]
    project_id: Owner
    user_id: Owner
    consumer_generation: int
    consumer_type: Kind | None = None


_FORMS: tuple[type[msgspec.Struct], ...] = (
    *(Classes, TraitsAnswer, ProviderAnswer, ProvidersAnswer, Created, InventoriesAnswer),
    *(GenerationAnswer, Aggregates, Usages, Holders, Holding),
)
_READ: Mapping[type[msgspec.Struct], Callable[[object], Any]] = {
    form: converter_to(form) for form in _FORMS
}
