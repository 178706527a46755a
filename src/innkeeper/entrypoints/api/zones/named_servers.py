"""Decodes bodies in which zone parents name many servers, without a slow JSON schema.

Always true: if :func:`decode` accepts a body, the schema accepts it too, and the results are equal.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from innkeeper.domain.versions import Version
from innkeeper.entrypoints.api.patterns import PLAIN_UUID_PATTERN

SINCE = Version(2, 1)
NAMED_MAX = 1000


class _Body(msgspec.Struct, forbid_unknown_fields=True):
    servers: Annotated[
        list[Annotated[str, msgspec.Meta(pattern=PLAIN_UUID_PATTERN)]],
        msgspec.Meta(max_length=NAMED_MAX),
    ]


_DECODER = msgspec.json.Decoder(_Body)


def decode(body: bytes) -> dict[str, list[str]] | None:
    """Decode a body, or return ``None`` if it must be validated against the schema."""
    try:
        named = _DECODER.decode(body).servers
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return None
    return {"servers": named} if len(set(named)) == len(named) else None
