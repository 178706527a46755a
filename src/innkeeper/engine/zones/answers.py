"""Check the answers of child zones to requests for servers, before clients get them.

Always true: a checked answer has a status and a body that a zone's Compute API can give, and all
its links lead to this zone. An error page of a proxy between the zones counts as no answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus

import msgspec

from innkeeper.clients.zone_wire import ZoneAnswer, ZoneSilent
from innkeeper.engine.zones import links
from innkeeper.engine.zones.known_children import decoded

JSON = "application/json"
OF_THE_CHILD_ALONE = frozenset({HTTPStatus.UNAUTHORIZED, HTTPStatus.PROXY_AUTHENTICATION_REQUIRED})
"""Statuses with which a child refuses this zone itself, and not the client of the request."""
LATER = frozenset({HTTPStatus.NOT_IMPLEMENTED, HTTPStatus.SERVICE_UNAVAILABLE})
"""The only statuses of 500 and above that are passed on from a child to clients."""


def checked(answer: ZoneAnswer, server_id: str, invented: str, address: str) -> ZoneAnswer:
    """Return a child's answer to a request for a server, in the form for the client.

    Links to the host ``invented`` are changed to ``address``. Raises :class:`ZoneSilent` if the
    answer is not from a Compute API, or is about another server.
    """
    is_error = HTTPStatus.BAD_REQUEST <= answer.status < HTTPStatus.INTERNAL_SERVER_ERROR
    is_error = (is_error and answer.status not in OF_THE_CHILD_ALONE) or answer.status in LATER
    if not is_error and not HTTPStatus.OK <= answer.status < HTTPStatus.MULTIPLE_CHOICES:
        raise ZoneSilent.of_status(answer.status)
    headers: dict[str, str] = {}
    if "location" in answer.headers:
        headers["location"] = links.moved(answer.headers["location"], invented, address)
    if answer.status == HTTPStatus.NO_CONTENT or (not answer.body and not is_error):
        return ZoneAnswer(answer.status, headers, b"")
    told = decoded(answer)
    if not isinstance(told, dict) or (is_error and not _is_fault(told, answer.status)):
        raise ZoneSilent("the answer is not from a Compute API", may_have_arrived=True)
    shown = told.get("server")
    if isinstance(shown, dict) and shown.get("id", server_id) != server_id:
        raise ZoneSilent("the answer is about another server", may_have_arrived=True)
    links.move(told, invented, address)
    headers["content-type"] = JSON
    return ZoneAnswer(answer.status, headers, msgspec.json.encode(told))


def _is_fault(told: Mapping[str, object], status: int) -> bool:
    faults = list(told.values())
    fault = faults[0] if len(faults) == 1 else None
    return isinstance(fault, dict) and fault.get("code") == status and "message" in fault
