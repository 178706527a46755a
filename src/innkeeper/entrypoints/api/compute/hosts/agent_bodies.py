"""This module decodes the large bodies that agents send, without a slow JSON schema.

Validating a report of 500 hosts against its JSON schema takes a second, so msgspec decodes first.

Always true: a body that msgspec accepts would also pass the schema. A body that msgspec rejects is
validated against the schema, whose error message the client gets.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from innkeeper.domain.amounts import UNIT_MAX
from innkeeper.domain.converters import converter_to
from innkeeper.domain.errors import Invalid
from innkeeper.domain.hosts import InventoryReport
from innkeeper.domain.names import NAME_PATTERN
from innkeeper.entrypoints.api import patterns
from innkeeper.entrypoints.api.compute.hosts.agent_schemas import (
    FACT_NUMBER_MAX,
    FACTS_MAX,
    FAULT_MAX,
    HOSTS_MAX,
    RATIO_MAX,
    RESULTS_MAX,
    SERVERS_MAX,
    TRAITS_MAX,
)

T = TypeVar("T")

_Count = Annotated[int, Meta(ge=1, le=UNIT_MAX)]
_Amount = Annotated[int, Meta(ge=0, le=UNIT_MAX)]
_Ratio = Annotated[float, Meta(gt=0, le=RATIO_MAX)]
_Name = Annotated[str, Meta(min_length=1, max_length=200, pattern=patterns.HOST_PATTERN)]
_Short = Annotated[str, Meta(min_length=1, max_length=64, pattern=NAME_PATTERN)]
_Zone = Annotated[str, Meta(min_length=1, max_length=255, pattern=patterns.AGENT_ZONE_PATTERN)]
_Constant = Annotated[str, Meta(min_length=1, max_length=255, pattern=patterns.CONSTANT_PATTERN)]
_Text = Annotated[str, Meta(max_length=1024, pattern=patterns.NO_NUL_PATTERN)]
_Whole = Annotated[int, Meta(ge=-FACT_NUMBER_MAX, le=FACT_NUMBER_MAX)]
_Broken = Annotated[float, Meta(ge=-FACT_NUMBER_MAX, le=FACT_NUMBER_MAX)]
_FactName = Annotated[str, Meta(pattern=patterns.FACT_NAME_PATTERN)]
_Plain = _Text | bool | _Whole | _Broken
_List = Annotated[list[_Plain], Meta(max_length=FACTS_MAX)]
_Inner = Annotated[
    dict[_FactName, _Text | bool | _Whole | _Broken | _List], Meta(max_length=FACTS_MAX)
]
_Facts = Annotated[
    dict[_FactName, _Text | bool | _Whole | _Broken | _List | _Inner], Meta(max_length=FACTS_MAX)
]
# This type accepts only canonical UUIDs. The schema also accepts other forms.
_Uuid = Annotated[str, Meta(pattern=patterns.PLAIN_UUID_PATTERN)]


class InventoryBody(Struct, forbid_unknown_fields=True):
    """The part of a report that contains a host's inventory of one resource class."""

    total: _Count
    reserved: _Amount | UnsetType = UNSET
    min_unit: _Count | UnsetType = UNSET
    max_unit: _Count | UnsetType = UNSET
    step_size: _Count | UnsetType = UNSET
    allocation_ratio: _Ratio | UnsetType = UNSET

    def report(self) -> InventoryReport:
        """Convert the inventory to the type that the compute system expects."""
        return InventoryReport(
            self.total,
            given(self.reserved),
            given(self.min_unit),
            given(self.max_unit),
            given(self.step_size),
            given(self.allocation_ratio),
        )


class HostBody(Struct, forbid_unknown_fields=True):
    """The part of a report that describes one host."""

    name: _Name
    inventories: Annotated[dict[_Constant, InventoryBody], Meta(max_length=FACTS_MAX)]
    provider_uuid: _Uuid | UnsetType = UNSET
    availability_zone: _Zone | UnsetType = UNSET
    host_type: _Short = "unknown"
    host_version: _Amount = 0
    host_ip: Annotated[str, Meta(max_length=45, pattern=patterns.IP_PATTERN)] = "127.0.0.1"
    cpu_facts: _Facts = {}
    traits: Annotated[list[_Constant], Meta(max_length=TRAITS_MAX)] = []
    capabilities: _Facts = {}
    booted_at: Annotated[str, Meta(pattern=patterns.MOMENT_PATTERN)] | UnsetType = UNSET
    servers: Annotated[list[_Uuid], Meta(max_length=SERVERS_MAX)] | UnsetType = UNSET
    not_running: Annotated[dict[_Uuid, Literal[3, 4]], Meta(max_length=SERVERS_MAX)] | UnsetType = (
        UNSET
    )


class ReportBody(Struct, forbid_unknown_fields=True):
    """A body with which an agent reports some of its hosts."""

    hosts: Annotated[list[HostBody], Meta(min_length=1, max_length=HOSTS_MAX)]


class ResultBody(Struct, forbid_unknown_fields=True):
    """The part of a body that contains the result of one work order."""

    order_id: Annotated[int, Meta(ge=0, le=2**62)]
    ok: bool
    fault: Annotated[str, Meta(max_length=FAULT_MAX, pattern=patterns.NO_NUL_PATTERN)] = ""


class ResultsBody(Struct, forbid_unknown_fields=True):
    """A body with which an agent reports the results of work orders."""

    results: Annotated[list[ResultBody], Meta(min_length=1, max_length=RESULTS_MAX)]


def decoder_of(body_type: type[T]) -> Callable[[bytes], T | None]:
    """Return a decoder for ``body_type``. The decoder returns ``None`` for an invalid body."""
    decoder = msgspec.json.Decoder(body_type)

    def decode(body: bytes) -> T | None:
        try:
            return decoder.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None

    return decode


def converter_of(body_type: type[T]) -> Callable[[Any], T]:
    """Return a function that converts a decoded JSON body to ``body_type``.

    If the body already is a ``body_type``, the function returns it unchanged. The function raises
    :class:`Invalid` for an invalid body.
    """
    convert = converter_to(body_type)

    def converted(body: Any) -> T:
        if isinstance(body, body_type):
            return body
        try:
            return convert(body)
        except msgspec.ValidationError as error:
            raise Invalid(f"Invalid input: {error}.") from error

    return converted


def given(value: Any) -> Any:
    """Return a field's value, or ``None`` if the body omits the field."""
    return None if value is UNSET else value
