"""What several resources of the Identity API share: links, lists, truth, domains."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from innkeeper.domain.errors import NotFound
from innkeeper.domain.identity import DEFAULT_DOMAIN_ID, DEFAULT_DOMAIN_NAME
from innkeeper.entrypoints.api.routing import Call

DOMAIN = {"id": DEFAULT_DOMAIN_ID, "name": DEFAULT_DOMAIN_NAME}
_FALSE = frozenset({"0", "false", "no", "off"})


def origin(call: Call) -> str:
    """Scheme, host and port under which the client reaches this service."""
    return call.address.removesuffix(call.mount)


def self_link(call: Call, *parts: str) -> dict[str, str]:
    """A thing's link to itself."""
    return {"self": "/".join((f"{call.address}/v3", *parts))}


def listed(call: Call, name: str, things: list[dict[str, Any]]) -> dict[str, Any]:
    """A list, whole, as the API gives lists."""
    link = f"{call.address}{call.route.path}".format_map(call.params)
    return {name: things, "links": {"next": None, "self": link, "previous": None}}


def is_true(text: str | None) -> bool:
    """Whether a parameter says yes; one without a value does."""
    return text is not None and text.lower() not in _FALSE


def yes_or_no(text: str | None) -> bool | None:
    """The truth a filter asks for; ``None`` where it is not given."""
    return None if text is None else is_true(text)


def check_domain(fields: Mapping[str, Any]) -> None:
    """Raise :class:`NotFound` unless a body's domain is the one there is."""
    domain_id = fields.get("domain_id")
    if domain_id not in (None, DEFAULT_DOMAIN_ID):
        raise NotFound(f"Could not find domain: {domain_id}.")


def is_elsewhere(call: Call) -> bool:
    """Whether a list asks for the things of another domain, where there are none."""
    return call.last("domain_id", DEFAULT_DOMAIN_ID) != DEFAULT_DOMAIN_ID


def time_text(when: datetime) -> str:
    """A moment as tokens show it."""
    return when.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def new_id(call: Call) -> str:
    """A new id, without dashes as this API has them."""
    return call.site.ids.uuid().replace("-", "")
