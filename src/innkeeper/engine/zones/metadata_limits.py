"""The limit of a server's metadata items, which a zone sends to the child that has the server.

Always true: this zone sends the limit with each change of metadata. So the smallest limit of all
zones on the way applies, and a project cannot exceed the quota of the zone that it uses. If a zone
parent sends no limit, because it is older, the limits from here on apply.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import msgspec

from innkeeper.domain.compute import UNLIMITED
from innkeeper.domain.converters import converter_to
from innkeeper.domain.errors import Invalid
from innkeeper.engine.zones.tree_request import ZONE

ITEMS = "metadata_items"
PART = "/metadata"
"""The beginning of the routes' ends, after the server's id."""
WRITES = ("POST", "PUT")

_limits = converter_to(dict[str, Annotated[int, msgspec.Meta(ge=UNLIMITED)]])


def applies(method: str, part: str) -> bool:
    """Return whether a request sets metadata. ``part`` is the end of its route."""
    return method in WRITES and part.startswith(PART)


def smallest(own: int, body: Mapping[str, object], *, is_of_parent: bool) -> int:
    """Return the smaller limit of this zone's ``own`` and the one in a zone parent's request.

    Raises :class:`Invalid` if a zone parent sends an unusable limit, or if another caller sends
    one.
    """
    if ZONE not in body:
        return own
    if not is_of_parent:
        raise Invalid("Only zone parents may send the key 'zone'.")
    try:
        told = _limits(body[ZONE])[ITEMS]
    except (KeyError, msgspec.ValidationError, RecursionError) as error:
        raise Invalid("The key 'zone' of a change of metadata has no usable limit.") from error
    return min((each for each in (own, told) if each != UNLIMITED), default=UNLIMITED)


def body_below(raw: bytes, own: int, *, is_of_parent: bool) -> bytes:
    """Return the body of a change of metadata with the limit for the child.

    A malformed body stays as it is, and the child reports the error. Raises the errors of
    :func:`smallest`.
    """
    try:
        body = msgspec.json.decode(raw)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return raw
    if not isinstance(body, dict):
        return raw
    limit = smallest(own, body, is_of_parent=is_of_parent)
    return msgspec.json.encode({**body, ZONE: {ITEMS: limit}})
