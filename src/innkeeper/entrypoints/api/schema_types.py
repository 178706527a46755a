"""Parts of JSON schemas that several resources share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from innkeeper.domain.amounts import UNIT_MAX
from innkeeper.domain.names import NAME_MAX, NAME_PATTERN
from innkeeper.entrypoints.api.microversions import Schema
from innkeeper.entrypoints.api.patterns import (
    AMOUNT_PATTERN,
    NO_NUL_PATTERN,
    NUMBER_PATTERN,
    ZONE_PATTERN,
)

LENGTH_MAX = 255
ITEMS_MAX = 1000
"""Maximum size of a list or mapping in a body, unless a schema has a lower limit."""
PROJECT_ID_MAX = 255
TRUE_WORDS = (True, "True", "TRUE", "true", "1", "ON", "On", "on", "YES", "Yes", "yes")
FALSE_WORDS = (False, "False", "FALSE", "false", "0", "OFF", "Off", "off", "NO", "No", "no")

NAME: Schema = {"type": "string", "minLength": 1, "maxLength": NAME_MAX, "pattern": NAME_PATTERN}
PROJECT_ID: Schema = {**NAME}
ZONE: Schema = {"type": "string", "minLength": 1, "maxLength": LENGTH_MAX, "pattern": ZONE_PATTERN}
POSITIVE: Schema = {
    "type": ["integer", "string"],
    "pattern": AMOUNT_PATTERN,
    "minimum": 1,
    "maximum": UNIT_MAX,
}
NOT_NEGATIVE: Schema = {**POSITIVE, "minimum": 0}

ANY_VALUE: Schema = {"type": "string", "maxLength": LENGTH_MAX, "pattern": NO_NUL_PATTERN}
NUMBER_VALUE: Schema = {"type": "string", "pattern": NUMBER_PATTERN}


def closed(properties: Mapping[str, Any], required: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return the schema of an object with these properties and no others."""
    schema: dict[str, Any] = {
        "type": "object",
        "properties": dict(properties),
        "additionalProperties": False,
    }
    if required:
        schema["required"] = list(required)
    return schema


def with_inner(
    schema: Schema, wrapper: str, others: Mapping[str, Schema], gone: tuple[str, ...] = ()
) -> Schema:
    """Return a body's schema with changed properties of the object under the key ``wrapper``.

    The properties ``others`` are added, and the properties ``gone`` are removed.
    """
    inner = schema["properties"][wrapper]
    assert set(gone) <= set(inner["properties"]), "a key that is removed exists"
    remaining = {name: each for name, each in inner["properties"].items() if name not in gone}
    changed = {**inner, "properties": {**remaining, **others}}
    return {**schema, "properties": {**schema["properties"], wrapper: changed}}


def query(parameters: Mapping[str, Schema], *, is_closed: bool = True) -> Schema:
    """Return the schema of a query. If a parameter is repeated, the last value counts."""
    return {
        "type": "object",
        "properties": {
            name: {"type": "array", "items": schema} for name, schema in parameters.items()
        },
        "additionalProperties": not is_closed,
    }


PAGE_VALUES: Mapping[str, Schema] = {"limit": NUMBER_VALUE, "marker": ANY_VALUE}
