"""Functions that the handlers of the Identity API share."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from innkeeper.domain.errors import NotFound
from innkeeper.domain.identity import DEFAULT_DOMAIN_ID, DEFAULT_DOMAIN_NAME
from innkeeper.entrypoints.api.routing import Answer, Call

DOMAIN = {"id": DEFAULT_DOMAIN_ID, "name": DEFAULT_DOMAIN_NAME}
_FALSE = frozenset({"0", "false", "no", "off"})


def origin(call: Call) -> str:
    """Return the scheme, host and port at which the client reaches this service."""
    return call.address.removesuffix(call.mount)


def self_link(call: Call, *parts: str) -> dict[str, str]:
    """Return a resource's link to itself."""
    return {"self": "/".join((f"{call.address}/v3", *parts))}


def listed(call: Call, name: str, things: list[dict[str, Any]]) -> Answer:
    """Return an answer with a list. The list is complete, because this API has no paging."""
    link = f"{call.address}{call.route.path}".format_map(call.params)
    return Answer(200, {name: things, "links": {"next": None, "self": link, "previous": None}})


def changes(fields: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """Return the new values in a body, by the names of the stored fields.

    A body may have the fields in ``names``, and ``description`` and ``enabled``. Other fields are
    ignored.
    """
    found = {name: fields[name] for name in names if name in fields}
    if "description" in fields:
        found["description"] = fields["description"] or ""
    if "enabled" in fields:
        found["is_enabled"] = fields["enabled"]
    return found


def is_true(text: str | None) -> bool:
    """Return whether a parameter is true. A parameter without a value is true."""
    return text is not None and text.lower() not in _FALSE


def yes_or_no(text: str | None) -> bool | None:
    """Return the value of a boolean filter, or ``None`` if the query has no such filter."""
    return None if text is None else is_true(text)


def check_domain(fields: Mapping[str, Any]) -> None:
    """Raise :class:`NotFound` if a body names a domain other than the default one."""
    domain_id = fields.get("domain_id")
    if domain_id not in (None, DEFAULT_DOMAIN_ID):
        raise NotFound(f"Could not find domain: {domain_id}.")


def is_elsewhere(call: Call) -> bool:
    """Return whether a query filters by an unknown domain, for which a list is empty."""
    return call.last("domain_id", DEFAULT_DOMAIN_ID) != DEFAULT_DOMAIN_ID


def time_text(when: datetime) -> str:
    """Format a UTC time in the format of tokens."""
    return when.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def new_id(call: Call) -> str:
    """Return a new id, which is a UUID without hyphens."""
    return call.site.ids.uuid().replace("-", "")
