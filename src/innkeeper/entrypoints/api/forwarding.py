"""Forwards requests for servers that are in zones below this zone.

Always true: the caller's rights are checked before a request is forwarded. A server of another
project gets the same answer as a missing server.
"""

from __future__ import annotations

from innkeeper.domain.ids import UUID_PATTERN
from innkeeper.engine.zones.forwarding import ClientRequest
from innkeeper.entrypoints.api import auth_zones
from innkeeper.entrypoints.api.auth_zones import SERVERS
from innkeeper.entrypoints.api.routing import Answer, Call
from innkeeper.entrypoints.api.validation import decode_json

VERSION_HEADERS = ("openstack-api-version", "x-openstack-nova-api-version", "content-type")
ONE_SERVER = SERVERS + "/{server_id}"
VERSION = "/v2.1"


async def forwarded(call: Call, target: str, raw_body: bytes) -> Answer | None:
    """Forward a request for a server in a zone below this zone, and return the answer.

    Returns ``None`` if no such zone has the server, or if the caller may not access it.

    ``target`` has the client's path and query, without the prefix of the API.
    """
    neighbours = call.site.neighbours
    assert neighbours is not None, "only zones with neighbours forward requests"
    uuid = call.params["server_id"]
    home = await neighbours.servers.home_of(uuid) if UUID_PATTERN.fullmatch(uuid) else None
    if home is None or not call.context.reaches(home.project_id):
        return None
    if not call.allows(call.rule, project_id=home.project_id, user_id=home.user_id):
        return None
    rule_of = call.route.rule_of_body
    rule = None if rule_of is None else rule_of(decode_json(raw_body))
    if rule is not None:
        call.demand(rule, project_id=home.project_id, user_id=home.user_id)
    sent = {name: call.headers[name] for name in VERSION_HEADERS if name in call.headers}
    answer = await neighbours.servers.forward(
        home,
        ClientRequest(
            call.route.method,
            call.route.path.removeprefix(ONE_SERVER),
            target.removeprefix(VERSION),
            sent,
            raw_body,
            call.context,
            call.address.removesuffix(call.mount),
        ),
    )
    body = answer.body or None
    if body is not None and call.context.hop is not None:
        body = auth_zones.without_prefix(body, call.context.hop.parent.prefix)
    return Answer(answer.status, body, dict(answer.headers))
