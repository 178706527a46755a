"""These schemas validate requests about keypairs, quotas, limits and usage."""

from __future__ import annotations

from innkeeper.domain.amounts import UNIT_MAX
from innkeeper.entrypoints.api.patterns import (
    DOTTED_KEY_NAME_PATTERN,
    LIMIT_PATTERN,
    SPACED_KEY_NAME_PATTERN,
)
from innkeeper.entrypoints.api.schema_types import ANY_VALUE, NAME, PAGE_VALUES, closed, query

_KEY_NAME = {"type": "string", "minLength": 1, "maxLength": 255}
SPACED_NAME = {**_KEY_NAME, "pattern": SPACED_KEY_NAME_PATTERN}
"""The schema of a keypair's name before 2.92."""
_DOTTED = {**_KEY_NAME, "pattern": DOTTED_KEY_NAME_PATTERN}
_KEY_TYPE = {"type": "string", "enum": ["ssh", "x509"]}
_PUBLIC_KEY = {"type": "string", "minLength": 1, "maxLength": 65535}

CREATE_KEYPAIR = closed(
    {
        "keypair": closed(
            {"name": _DOTTED, "type": _KEY_TYPE, "public_key": _PUBLIC_KEY, "user_id": NAME},
            ("name", "public_key"),
        )
    },
    ("keypair",),
)
KEYPAIR = query({"user_id": ANY_VALUE})
KEYPAIRS = query({"user_id": ANY_VALUE, **PAGE_VALUES})

_LIMIT = {
    "type": ["integer", "string"],
    "pattern": LIMIT_PATTERN,
    "minimum": -1,
    "maximum": UNIT_MAX,
}
QUOTA_NAMES = (
    "instances",
    "cores",
    "ram",
    "metadata_items",
    "key_pairs",
    "server_groups",
    "server_group_members",
)

_BOOLEANS = [True, False, "True", "False", "true", "false", "1", "0"]


def quota_set(names: tuple[str, ...]) -> dict[str, object]:
    """Return the schema of a body that sets some of these quotas."""
    quotas = {
        **{name: _LIMIT for name in names},
        "force": {"type": ["boolean", "string"], "enum": _BOOLEANS},
        # Some clients repeat the project of the path here. This field is ignored.
        "tenant_id": {"type": "string", "maxLength": 255},
    }
    return closed({"quota_set": closed(quotas)}, ("quota_set",))


UPDATE_QUOTAS = quota_set(QUOTA_NAMES)
QUOTAS = query({"user_id": ANY_VALUE})

LIMITS = query({"tenant_id": ANY_VALUE, "reserved": ANY_VALUE})

_WINDOW = {"start": ANY_VALUE, "end": ANY_VALUE}
USAGE = query({**_WINDOW, **PAGE_VALUES})
USAGES = query({**_WINDOW, **PAGE_VALUES, "detailed": ANY_VALUE})
