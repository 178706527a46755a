"""Bodies and queries of the Identity API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

NAME_LENGTH_MAX = 255
PROJECT_NAME_LENGTH_MAX = 64
ID_LENGTH_MAX = 64
PASSWORD_LENGTH_MAX = 4096
"""Hashing takes any length; a limit keeps strangers from making it take long."""
DESCRIPTION_LENGTH_MAX = 65535
TOKEN_LENGTH_MAX = 8192
PROPERTIES_MAX = 16
"""Of objects whose keys are not ours."""

CONTROLS = {"type": "string", "pattern": "[\\u0000-\\u001f\\u007f]"}
"""Characters that no name has."""


def _object(properties: Mapping[str, Any], *required: str, **more: Any) -> dict[str, Any]:
    made: dict[str, Any] = {
        "type": "object",
        "properties": dict(properties),
        "additionalProperties": False,
        **more,
    }
    # Draft 4 wants at least one name in "required".
    return {**made, "required": list(required)} if required else made


def _name(length_max: int) -> dict[str, Any]:
    return {
        "type": "string",
        "minLength": 1,
        "maxLength": length_max,
        # A name of nothing but spaces cannot be told from none.
        "pattern": "[^\\s]",
        "not": CONTROLS,
    }


ID = {"type": "string", "minLength": 1, "maxLength": ID_LENGTH_MAX, "not": CONTROLS}
ID_OR_NULL = {**ID, "type": ["string", "null"]}
NAME = _name(NAME_LENGTH_MAX)
TEXT = {
    "type": ["string", "null"],
    "maxLength": DESCRIPTION_LENGTH_MAX,
    "not": {"type": "string", "pattern": "\\u0000"},
}
PASSWORD = {"type": "string", "minLength": 1, "maxLength": PASSWORD_LENGTH_MAX}
ENABLED = {"type": "boolean"}
NO_OPTIONS = {"type": "object", "maxProperties": 0}
STRANGE = {"type": "object", "maxProperties": PROPERTIES_MAX}
NO_TAGS = {"type": "array", "maxItems": 0}

DOMAIN = _object({"id": ID, "name": NAME}, minProperties=1)
NAMED_PROJECT = _object({"id": ID, "name": NAME, "domain": DOMAIN}, minProperties=1)
SCOPE = {
    "oneOf": [
        _object({"project": NAMED_PROJECT}, "project"),
        _object({"domain": DOMAIN}, "domain"),
        _object({"system": _object({"all": {"type": "boolean"}}, "all")}, "system"),
        _object({"unscoped": STRANGE}, "unscoped"),
        {"type": "string", "enum": ["unscoped"]},
    ]
}
LOGIN = _object(
    {
        "auth": _object(
            {
                "identity": _object(
                    {
                        "methods": {
                            "type": "array",
                            "items": {"type": "string", "maxLength": NAME_LENGTH_MAX},
                            "minItems": 1,
                            "maxItems": 10,
                        },
                        "password": _object(
                            {
                                "user": _object(
                                    {
                                        "id": ID,
                                        "name": NAME,
                                        "domain": DOMAIN,
                                        "password": PASSWORD,
                                    },
                                    "password",
                                )
                            },
                            "user",
                        ),
                        "token": _object(
                            {"id": {"type": "string", "maxLength": TOKEN_LENGTH_MAX}}, "id"
                        ),
                    },
                    "methods",
                    # Other methods bring data of their own; they are refused by name.
                    additionalProperties=STRANGE,
                    maxProperties=PROPERTIES_MAX,
                ),
                "scope": SCOPE,
            },
            "identity",
        )
    },
    "auth",
)

_PROJECT = {
    "name": _name(PROJECT_NAME_LENGTH_MAX),
    "description": TEXT,
    "enabled": ENABLED,
    "domain_id": ID_OR_NULL,
    "parent_id": ID_OR_NULL,
    "is_domain": {"type": "boolean"},
    "options": NO_OPTIONS,
    "tags": NO_TAGS,
}
PROJECT_CREATE = _object({"project": _object(_PROJECT, "name")}, "project")
PROJECT_UPDATE = _object({"project": _object(_PROJECT)}, "project")

_USER = {
    "name": NAME,
    "password": {**PASSWORD, "type": ["string", "null"]},
    "description": TEXT,
    "email": {"type": ["string", "null"], "maxLength": NAME_LENGTH_MAX, "not": CONTROLS},
    "enabled": ENABLED,
    "domain_id": ID_OR_NULL,
    "default_project_id": ID_OR_NULL,
    "options": NO_OPTIONS,
}
USER_CREATE = _object({"user": _object(_USER, "name")}, "user")
USER_UPDATE = _object({"user": _object(_USER)}, "user")
PASSWORD_CHANGE = _object(
    {
        "user": _object(
            {"password": PASSWORD, "original_password": PASSWORD}, "password", "original_password"
        )
    },
    "user",
)

_ROLE = {
    "name": NAME,
    "description": TEXT,
    # Roles of a domain are not here; the stock client says null.
    "domain_id": {"type": "null"},
    "options": NO_OPTIONS,
}
ROLE_CREATE = _object({"role": _object(_ROLE, "name")}, "role")
ROLE_UPDATE = _object({"role": _object(_ROLE)}, "role")

_ANY = {"type": "string"}
DOMAIN_QUERY = _object({"name": _ANY, "enabled": _ANY})
PROJECT_QUERY = _object(
    {"name": _ANY, "enabled": _ANY, "domain_id": _ANY, "parent_id": _ANY, "is_domain": _ANY}
)
USER_QUERY = _object({"name": _ANY, "enabled": _ANY, "domain_id": _ANY})
ROLE_QUERY = _object({"name": _ANY, "domain_id": _ANY})
SERVICE_QUERY = _object({"name": _ANY, "type": _ANY})
ENDPOINT_QUERY = _object({"service_id": _ANY, "interface": _ANY, "region_id": _ANY, "region": _ANY})
REGION_QUERY = _object({"parent_region_id": _ANY})
ASSIGNMENT_QUERY = _object(
    {
        "user.id": _ANY,
        "group.id": _ANY,
        "role.id": _ANY,
        "scope.project.id": _ANY,
        "scope.domain.id": _ANY,
        "scope.system": _ANY,
        "scope.OS-INHERIT:inherited_to": _ANY,
        "effective": _ANY,
        "include_names": _ANY,
        "include_subtree": _ANY,
    }
)
