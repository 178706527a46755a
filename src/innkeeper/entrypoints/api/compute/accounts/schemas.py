"""What clients may say about keypairs, quotas, limits, usage and zones."""

from __future__ import annotations

from innkeeper.domain.amounts import UNIT_MAX
from innkeeper.entrypoints.api.compute.patterns import (
    DOTTED_KEY_NAME_PATTERN,
    LIMIT_PATTERN,
    SPACED_KEY_NAME_PATTERN,
)
from innkeeper.entrypoints.api.compute.schema_types import (
    ANY_VALUE,
    NAME,
    PAGE_VALUES,
    closed,
    query,
)

_KEY_NAME = {"type": "string", "minLength": 1, "maxLength": 255}
_SPACED = {**_KEY_NAME, "pattern": SPACED_KEY_NAME_PATTERN}
_DOTTED = {**_KEY_NAME, "pattern": DOTTED_KEY_NAME_PATTERN}
_KEY_TYPE = {"type": "string", "enum": ["ssh", "x509"]}
_PUBLIC_KEY = {"type": "string", "minLength": 1, "maxLength": 65535}
_USER_ID = {**NAME}

CREATE_KEYPAIR = closed(
    {
        "keypair": closed(
            {
                "name": _DOTTED,
                "type": _KEY_TYPE,
                "public_key": _PUBLIC_KEY,
                "user_id": _USER_ID,
            },
            ("name", "public_key"),
        )
    },
    ("keypair",),
)
CREATE_KEYPAIR_BEFORE_2_92 = closed(
    {
        "keypair": closed(
            {
                "name": _SPACED,
                "type": _KEY_TYPE,
                "public_key": _PUBLIC_KEY,
                "user_id": _USER_ID,
            },
            ("name",),
        )
    },
    ("keypair",),
)
CREATE_KEYPAIR_BEFORE_2_10 = closed(
    {
        "keypair": closed(
            {"name": _SPACED, "type": _KEY_TYPE, "public_key": _PUBLIC_KEY}, ("name",)
        )
    },
    ("keypair",),
)
CREATE_KEYPAIR_BEFORE_2_2 = closed(
    {"keypair": closed({"name": _SPACED, "public_key": _PUBLIC_KEY}, ("name",))},
    ("keypair",),
)
_KEYPAIR_VALUES = {"user_id": ANY_VALUE}
KEYPAIR = query(_KEYPAIR_VALUES)
KEYPAIR_OPEN = query(_KEYPAIR_VALUES, is_closed=False)
KEYPAIRS = query({**_KEYPAIR_VALUES, **PAGE_VALUES})
KEYPAIRS_OPEN = query({**_KEYPAIR_VALUES, **PAGE_VALUES}, is_closed=False)
ANYTHING = query({}, is_closed=False)

_LIMIT = {
    "type": ["integer", "string"],
    "pattern": LIMIT_PATTERN,
    "minimum": -1,
    "maximum": UNIT_MAX,
}
_QUOTAS = (
    "instances",
    "cores",
    "ram",
    "metadata_items",
    "key_pairs",
    "server_groups",
    "server_group_members",
)
INJECTED = ("injected_files", "injected_file_content_bytes", "injected_file_path_bytes")
NETWORK = ("fixed_ips", "floating_ips", "security_groups", "security_group_rules")

_BOOLEANS = [True, False, "True", "False", "true", "false", "1", "0"]


def _quota_set(names: tuple[str, ...]) -> dict[str, object]:
    return closed(
        {
            "quota_set": closed(
                {
                    **{name: _LIMIT for name in names},
                    "force": {"type": ["boolean", "string"], "enum": _BOOLEANS},
                    # Clients repeat the path's project here, and it was never looked at.
                    "tenant_id": {"type": "string", "maxLength": 255},
                }
            )
        },
        ("quota_set",),
    )


UPDATE_QUOTAS = _quota_set(_QUOTAS)
UPDATE_QUOTAS_BEFORE_2_57 = _quota_set((*_QUOTAS, *INJECTED))
UPDATE_QUOTAS_BEFORE_2_36 = _quota_set((*_QUOTAS, *INJECTED, *NETWORK))
QUOTAS = query({"user_id": ANY_VALUE})
QUOTAS_OPEN = query({"user_id": ANY_VALUE}, is_closed=False)

_LIMITS_VALUES = {"tenant_id": ANY_VALUE, "reserved": ANY_VALUE}
LIMITS = query(_LIMITS_VALUES)
LIMITS_OPEN = query(_LIMITS_VALUES, is_closed=False)

_WINDOW = {"start": ANY_VALUE, "end": ANY_VALUE}
USAGE = query({**_WINDOW, **PAGE_VALUES})
USAGE_OPEN = query({**_WINDOW, **PAGE_VALUES}, is_closed=False)
USAGES_UNPAGED = query({**_WINDOW, "detailed": ANY_VALUE}, is_closed=False)
USAGES = query({**_WINDOW, **PAGE_VALUES, "detailed": ANY_VALUE})
USAGES_OPEN = query({**_WINDOW, **PAGE_VALUES, "detailed": ANY_VALUE}, is_closed=False)
