"""Pieces of the Compute API's JSON schemas that many resources share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from innkeeper.domain.amounts import UNIT_MAX
from innkeeper.entrypoints.api.compute.patterns import (
    AMOUNT_PATTERN,
    NAME_PATTERN,
    NO_NUL_PATTERN,
    NUMBER_PATTERN,
    ZONE_PATTERN,
)
from innkeeper.entrypoints.api.microversions import Schema

LENGTH_MAX = 255
ITEMS_MAX = 1000
"""Of anything that a body may hold many of, where nothing else says less."""

NAME: Schema = {
    "type": "string",
    "minLength": 1,
    "maxLength": LENGTH_MAX,
    "pattern": NAME_PATTERN,
}
PROJECT_ID: Schema = {**NAME}
ZONE: Schema = {
    "type": "string",
    "minLength": 1,
    "maxLength": LENGTH_MAX,
    "pattern": ZONE_PATTERN,
}
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
    """An object with these properties and no others."""
    schema: dict[str, Any] = {
        "type": "object",
        "properties": dict(properties),
        "additionalProperties": False,
    }
    if required:
        schema["required"] = list(required)
    return schema


def query(parameters: Mapping[str, Schema], *, is_closed: bool = True) -> Schema:
    """A query string: each parameter may be repeated, and the last one counts."""
    return {
        "type": "object",
        "properties": {
            name: {"type": "array", "items": schema} for name, schema in parameters.items()
        },
        "additionalProperties": not is_closed,
    }


PAGE_VALUES: Mapping[str, Schema] = {"limit": NUMBER_VALUE, "marker": ANY_VALUE}
