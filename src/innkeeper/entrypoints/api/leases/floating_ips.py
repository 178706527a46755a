"""Handlers of floating IPs. This service has none, but Blazar's clients request them."""

from __future__ import annotations

from innkeeper.domain.errors import Invalid, NotFound
from innkeeper.entrypoints.api.routing import Answer, Call

SHOWN_MAX = 36
"""An error message repeats at most this many characters of an unknown id."""


async def index(call: Call) -> Answer:
    """List floating IPs (always empty, because networks are not managed here)."""
    return Answer(200, {"floatingips": []})


async def missing(call: Call) -> Answer:
    """Answer 404, because there are no floating IPs."""
    shown = call.params["floatingip_id"][:SHOWN_MAX]
    raise NotFound(f"Object with {{'floatingip_id': '{shown}'}} not found")


async def add(call: Call) -> Answer:
    """Create a floating IP. Not supported: the answer is always 400."""
    raise Invalid("This service has no networks, so floating IPs cannot be reserved.")
