"""Schemas of the bodies and queries of the Identity API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

NAME_LENGTH_MAX = 255
PROJECT_NAME_LENGTH_MAX = 64
ID_LENGTH_MAX = 64
PASSWORD_LENGTH_MAX = 4096
"""This limits the work that an unauthenticated client can cause. Hashing accepts any length."""
DESCRIPTION_LENGTH_MAX = 65535
TOKEN_LENGTH_MAX = 8192
PROPERTIES_MAX = 16
"""Maximum number of properties in objects with arbitrary keys."""

CONTROLS = {"type": "string", "pattern": "[\\u0000-\\u001f\\u007f]"}
"""Characters that are rejected in names."""


def _object(properties: Mapping[str, Any], *required: str, **more: Any) -> dict[str, Any]:
    schema = {
        "type": "object",
        "properties": dict(properties),
        "additionalProperties": False,
        **more,
    }
    # Draft 4 requires at least one name in "required".
    return {**schema, "required": list(required)} if required else schema


def _name(length_max: int) -> dict[str, Any]:
    return {
        "type": "string",
        "minLength": 1,
        "maxLength": length_max,
        # A name that consists of spaces looks empty.
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
ANY_OBJECT = {"type": "object", "maxProperties": PROPERTIES_MAX}
NO_TAGS = {"type": "array", "maxItems": 0}

DOMAIN = _object({"id": ID, "name": NAME}, minProperties=1)
NAMED_PROJECT = _object({"id": ID, "name": NAME, "domain": DOMAIN}, minProperties=1)
SCOPE = {
    "oneOf": [
        _object({"project": NAMED_PROJECT}, "project"),
        _object({"domain": DOMAIN}, "domain"),
        _object({"system": _object({"all": {"type": "boolean"}}, "all")}, "system"),
        _object({"unscoped": ANY_OBJECT}, "unscoped"),
        {"type": "string", "enum": ["unscoped"]},
    ]
}
_METHODS = {
    "type": "array",
    "items": {"type": "string", "maxLength": NAME_LENGTH_MAX},
    "minItems": 1,
    "maxItems": 10,
}
_LOGIN_USER = _object({"id": ID, "name": NAME, "domain": DOMAIN, "password": PASSWORD}, "password")
_IDENTITY = _object(
    {
        "methods": _METHODS,
        "password": _object({"user": _LOGIN_USER}, "user"),
        "token": _object({"id": {"type": "string", "maxLength": TOKEN_LENGTH_MAX}}, "id"),
    },
    "methods",
    # Other methods of authentication have other keys. ``tokens.issue`` rejects these methods.
    additionalProperties=ANY_OBJECT,
    maxProperties=PROPERTIES_MAX,
)
LOGIN = _object({"auth": _object({"identity": _IDENTITY, "scope": SCOPE}, "identity")}, "auth")

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
_PASSWORDS = {"password": PASSWORD, "original_password": PASSWORD}
PASSWORD_CHANGE = _object({"user": _object(_PASSWORDS, *_PASSWORDS)}, "user")

_ROLE = {
    "name": NAME,
    "description": TEXT,
    # Domain-specific roles are not supported. The stock client sends null.
    "domain_id": {"type": "null"},
    "options": NO_OPTIONS,
}
ROLE_CREATE = _object({"role": _object(_ROLE, "name")}, "role")
ROLE_UPDATE = _object({"role": _object(_ROLE)}, "role")


def _query(*names: str) -> dict[str, Any]:
    return _object({name: {"type": "string"} for name in names})


DOMAIN_QUERY = _query("name", "enabled")
PROJECT_QUERY = _query("name", "enabled", "domain_id", "parent_id", "is_domain")
USER_QUERY = _query("name", "enabled", "domain_id")
ROLE_QUERY = _query("name", "domain_id")
SERVICE_QUERY = _query("name", "type")
ENDPOINT_QUERY = _query("service_id", "interface", "region_id", "region")
REGION_QUERY = _query("parent_region_id")
ASSIGNMENT_QUERY = _query(
    "user.id",
    "group.id",
    "role.id",
    "scope.project.id",
    "scope.domain.id",
    "scope.system",
    "scope.OS-INHERIT:inherited_to",
    "effective",
    "include_names",
    "include_subtree",
)
