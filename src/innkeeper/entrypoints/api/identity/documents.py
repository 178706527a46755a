"""Handlers of the version documents, which clients request first."""

from __future__ import annotations

from typing import Any

from innkeeper.entrypoints.api.routing import Answer, Call

VERSION = "v3.14"
UPDATED = "2020-04-07T00:00:00Z"
"""The date of this API version, which clients only display."""


def _version(call: Call) -> dict[str, Any]:
    media_type = "application/vnd.openstack.identity-v3+json"
    return {
        "id": VERSION,
        "status": "stable",
        "updated": UPDATED,
        "links": [{"rel": "self", "href": f"{call.address}/v3/"}],
        "media-types": [{"base": "application/json", "type": media_type}],
    }


async def choices(call: Call) -> Answer:
    """List the versions of the Identity API."""
    body = {"versions": {"values": [_version(call)]}}
    return Answer(300, body, {"location": f"{call.address}/v3/"})


async def show(call: Call) -> Answer:
    """Show version 3 of the Identity API."""
    return Answer(200, {"version": _version(call)})
