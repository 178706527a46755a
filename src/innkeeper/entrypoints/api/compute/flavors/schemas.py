"""These schemas validate requests about flavors. They reject unknown keys, to detect typos."""

from __future__ import annotations

from innkeeper.domain.amounts import RATIO_MAX
from innkeeper.entrypoints.api.patterns import (
    FACTOR_PATTERN,
    FLAVOR_ID_PATTERN,
    METADATA_KEY_PATTERN,
    NO_NUL_PATTERN,
    TEXT_PATTERN,
)
from innkeeper.entrypoints.api.schema_types import (
    ANY_VALUE,
    ITEMS_MAX,
    NAME,
    NOT_NEGATIVE,
    PAGE_VALUES,
    POSITIVE,
    PROJECT_ID,
    closed,
    query,
)

DESCRIPTION_MAX = 65535
SORT_KEYS = {
    "created_at": "created_at",
    "description": "description",
    "disabled": "is_disabled",
    "ephemeral_gb": "ephemeral_gb",
    "flavorid": "flavor_id",
    "id": "id",
    "is_public": "is_public",
    "memory_mb": "memory_mb",
    "name": "name",
    "root_gb": "disk_gb",
    "rxtx_factor": "rxtx_factor",
    "swap": "swap_mb",
    "updated_at": "updated_at",
    "vcpus": "vcpus",
}
"""The fields of :class:`Flavor`, by the API's sort key."""

LIST = query(
    {
        **PAGE_VALUES,
        "is_public": ANY_VALUE,
        "minRam": ANY_VALUE,
        "minDisk": ANY_VALUE,
        "sort_key": {"type": "string", "enum": sorted(SORT_KEYS)},
        "sort_dir": {"type": "string", "enum": ["asc", "desc"]},
    }
)

_DESCRIPTION = {"type": ["string", "null"], "maxLength": DESCRIPTION_MAX, "pattern": TEXT_PATTERN}
_FLAVOR = {
    "name": NAME,
    "id": {
        "type": ["string", "number", "null"],
        "minLength": 1,
        "maxLength": 255,
        "pattern": FLAVOR_ID_PATTERN,
    },
    "ram": POSITIVE,
    "vcpus": POSITIVE,
    "disk": NOT_NEGATIVE,
    "OS-FLV-EXT-DATA:ephemeral": NOT_NEGATIVE,
    "swap": NOT_NEGATIVE,
    "rxtx_factor": {
        "type": ["number", "string"],
        "pattern": FACTOR_PATTERN,
        "minimum": 0,
        "exclusiveMinimum": True,
        "maximum": RATIO_MAX,
    },
    "os-flavor-access:is_public": {"type": "boolean"},
    "description": _DESCRIPTION,
}
CREATE = closed({"flavor": closed(_FLAVOR, ("name", "ram", "vcpus", "disk"))}, ("flavor",))
UPDATE = closed({"flavor": closed({"description": _DESCRIPTION}, ("description",))}, ("flavor",))

_SPECS = {
    "type": "object",
    "patternProperties": {
        METADATA_KEY_PATTERN: {"type": "string", "maxLength": 255, "pattern": NO_NUL_PATTERN}
    },
    "additionalProperties": False,
    "maxProperties": ITEMS_MAX,
}
ADD_EXTRA_SPECS = closed({"extra_specs": _SPECS}, ("extra_specs",))
REPLACE_EXTRA_SPEC = {**_SPECS, "minProperties": 1, "maxProperties": 1}

_PROJECT = closed({"tenant": PROJECT_ID}, ("tenant",))
ACTION = {
    **closed({"addTenantAccess": _PROJECT, "removeTenantAccess": _PROJECT}),
    "minProperties": 1,
    "maxProperties": 1,
}
