"""Schemas of bodies and queries of the Placement API at its newest version.

Always true: the schemas reject unknown fields and unknown query parameters. The functions also
build the schemas of older versions, which have or require fewer properties.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from innkeeper.domain.amounts import RATIO_MAX, UNIT_MAX
from innkeeper.entrypoints.api.microversions import Schema

UUID_PATTERN = "^[0-9a-fA-F-]{36}$"
"""A loose pattern of keys that are UUIDs. The lookup then checks that the key is a UUID."""
CLASS_PATTERN = "^[A-Z0-9_]+$"
CUSTOM_PATTERN = "^CUSTOM_[A-Z0-9_]+$"
NAME_MAX = 200
"""Maximum length of a provider's name, which is the column's width."""
LONG_NAME_MAX = 255
"""Maximum length of all other names."""
ITEMS_MAX = 1000
"""Maximum size of a list or mapping in a body."""

UUID: Schema = {"type": "string", "format": "uuid"}
GENERATION: Schema = {"type": "integer"}


def closed(properties: dict[str, Any], required: Collection[str] = ()) -> dict[str, Any]:
    """Return the schema of an object with these properties and no others."""
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    # If several violations are equally relevant, the first is reported, so ``required`` comes
    # first.
    if required:
        schema["required"] = list(required)
    schema["additionalProperties"] = False
    return schema


def keyed(pattern: str, value: Schema, **more: Any) -> dict[str, Any]:
    """Return the schema of an object whose keys match a pattern."""
    return {
        "type": "object",
        "patternProperties": {pattern: value},
        "additionalProperties": False,
        "maxProperties": ITEMS_MAX,
        **more,
    }


def parameter(**schema: Any) -> dict[str, Any]:
    """Return the schema of a query parameter. If it is repeated, the last value is checked."""
    return {"type": "string", **schema}


NO_QUERY: Schema = closed({})

# Providers.
_PROVIDER_PARAMETERS = {
    "name": parameter(),
    "uuid": parameter(format="uuid"),
    "member_of": parameter(),
    "resources": parameter(),
    "in_tree": parameter(format="uuid"),
    "required": parameter(),
}


def provider_query(*names: str) -> Schema:
    """Return the schema of the provider list's query, with these parameters."""
    return closed({name: _PROVIDER_PARAMETERS[name] for name in names})


LIST_PROVIDERS = provider_query(*_PROVIDER_PARAMETERS)
_PROVIDER_NAME: Schema = {"type": "string", "maxLength": NAME_MAX}
_PARENT: Schema = {"anyOf": [UUID, {"type": "null"}]}
CREATE_PROVIDER = closed(
    {"name": _PROVIDER_NAME, "uuid": UUID, "parent_provider_uuid": _PARENT}, ["name"]
)
CHANGE_PROVIDER = closed({"name": _PROVIDER_NAME, "parent_provider_uuid": _PARENT}, ["name"])

# Inventories.
_POSITIVE = {"type": "integer", "minimum": 1, "maximum": UNIT_MAX}
_INVENTORY: dict[str, Any] = {
    "total": _POSITIVE,
    "reserved": {**_POSITIVE, "minimum": 0},
    "min_unit": _POSITIVE,
    "max_unit": _POSITIVE,
    "step_size": _POSITIVE,
    "allocation_ratio": {"type": "number", "maximum": RATIO_MAX},
}
ADD_INVENTORY = closed(
    {
        "resource_class": {"type": "string", "pattern": CLASS_PATTERN, "maxLength": LONG_NAME_MAX},
        "resource_provider_generation": GENERATION,
        **_INVENTORY,
    },
    ["total", "resource_class"],
)
CHANGE_INVENTORY = closed(
    {"resource_provider_generation": GENERATION, **_INVENTORY},
    ["total", "resource_provider_generation"],
)
REPLACE_INVENTORIES = closed(
    {
        "resource_provider_generation": GENERATION,
        # Clients may send an inventory as the API showed it. Its generation is ignored.
        "inventories": keyed(
            CLASS_PATTERN,
            closed({"resource_provider_generation": GENERATION, **_INVENTORY}, ["total"]),
        ),
    },
    ["resource_provider_generation", "inventories"],
)

# Names.
CUSTOM_CLASS = closed(
    {"name": {"type": "string", "pattern": CUSTOM_PATTERN, "maxLength": LONG_NAME_MAX}}, ["name"]
)
LIST_TRAITS = closed({"name": parameter(), "associated": parameter()})
REPLACE_TRAITS = closed(
    {
        "resource_provider_generation": GENERATION,
        "traits": {
            "type": "array",
            "items": {"type": "string", "minLength": 1, "maxLength": LONG_NAME_MAX},
            "maxItems": ITEMS_MAX,
        },
    },
    ["traits", "resource_provider_generation"],
)

# Aggregates.
AGGREGATE_LIST: Schema = {
    "type": "array",
    "items": UUID,
    "maxItems": ITEMS_MAX,
    "uniqueItems": True,
}
REPLACE_AGGREGATES = closed(
    {"aggregates": AGGREGATE_LIST, "resource_provider_generation": GENERATION},
    ["aggregates", "resource_provider_generation"],
)

# Allocations.
RESOURCES = keyed(CLASS_PATTERN, {"type": "integer", "minimum": 1}, minProperties=1)
IDENTIFIER: Schema = {"type": "string", "minLength": 1, "maxLength": LONG_NAME_MAX}
CONSUMER_TYPE: Schema = {
    "type": "string",
    "pattern": CLASS_PATTERN,
    "minLength": 1,
    "maxLength": LONG_NAME_MAX,
}
_MAPPINGS: Schema = {
    "type": "object",
    "minProperties": 1,
    "maxProperties": ITEMS_MAX,
    "patternProperties": {
        "[a-zA-Z0-9_-]{1,64}": {
            "type": "array",
            "minItems": 1,
            "maxItems": ITEMS_MAX,
            "items": UUID,
        }
    },
}
"""The mappings of an allocation candidate. Clients may send them, but they are ignored."""


def consumer(
    *,
    may_be_empty: bool = True,
    has_generation: bool = True,
    has_mappings: bool = True,
    has_type: bool = True,
) -> dict[str, Any]:
    """Return the schema of one consumer's allocations.

    The arguments remove the fields that older versions did not have.
    """
    line = closed({"generation": GENERATION, "resources": RESOURCES}, ["resources"])
    lines = keyed(UUID_PATTERN, line, **({} if may_be_empty else {"minProperties": 1}))
    properties = {"allocations": lines, "project_id": IDENTIFIER, "user_id": IDENTIFIER}
    required = ["allocations", "project_id", "user_id"]
    if has_generation:
        properties["consumer_generation"] = {"type": ["integer", "null"]}
        required.append("consumer_generation")
    if has_mappings:
        properties["mappings"] = _MAPPINGS
    if has_type:
        properties["consumer_type"] = CONSUMER_TYPE
        required.append("consumer_type")
    # OpenStack's Placement reports an unknown property before a missing one here.
    return {**closed(properties), "required": required}


def consumers(one: Schema) -> Schema:
    """Return the schema of several consumers' allocations."""
    return keyed(UUID_PATTERN, one, minProperties=1)


def listed(*, has_owner: bool) -> Schema:
    """Return the schema of one consumer's allocations before 1.12, when they were a list."""
    line = closed(
        {"resource_provider": closed({"uuid": UUID}, ["uuid"]), "resources": RESOURCES},
        ["resource_provider", "resources"],
    )
    properties: dict[str, Any] = {
        "allocations": {"type": "array", "minItems": 1, "maxItems": ITEMS_MAX, "items": line}
    }
    owner: dict[str, Any] = {"project_id": IDENTIFIER, "user_id": IDENTIFIER}
    if not has_owner:
        return closed(properties, ["allocations"])
    return closed({**properties, **owner}, ["allocations", *owner])


WRITE_CONSUMER = consumer()
WRITE_CONSUMERS = consumers(WRITE_CONSUMER)


def reshaping(one: Schema) -> Schema:
    """Return the schema of inventories and allocations that are replaced together."""
    return closed(
        {
            "inventories": keyed(UUID_PATTERN, REPLACE_INVENTORIES, minProperties=1),
            "allocations": keyed(UUID_PATTERN, one),
        },
        ["inventories", "allocations"],
    )


RESHAPE = reshaping(WRITE_CONSUMER)

# Usages.
_OWNER_PARAMETERS = {
    "project_id": parameter(minLength=1, maxLength=LONG_NAME_MAX),
    "user_id": parameter(minLength=1, maxLength=LONG_NAME_MAX),
}
SHOW_USAGES_UNTYPED = closed(dict(_OWNER_PARAMETERS), ["project_id"])
SHOW_USAGES = closed(
    {
        **_OWNER_PARAMETERS,
        "consumer_type": parameter(
            pattern="^[A-Z0-9_]+$|^all$|^unknown$", minLength=1, maxLength=LONG_NAME_MAX
        ),
    },
    ["project_id"],
)
