"""A fast decoder for the most frequent kind of body, which has the allocations of one consumer.

Always true: the decoder accepts only bodies that the schema accepts. All other bodies are validated
against the schema, so that clients get the errors of the schema.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from innkeeper.entrypoints.api.placement.schemas import CLASS_PATTERN, LONG_NAME_MAX, UUID_PATTERN

_Uuid = Annotated[str, Meta(pattern=UUID_PATTERN)]
_ClassName = Annotated[str, Meta(pattern=CLASS_PATTERN)]
_Identifier = Annotated[str, Meta(min_length=1, max_length=LONG_NAME_MAX)]
_ConsumerType = Annotated[str, Meta(pattern=CLASS_PATTERN, max_length=LONG_NAME_MAX)]
_Amount = Annotated[int, Meta(ge=1)]


class _Line(Struct, forbid_unknown_fields=True):
    resources: Annotated[dict[_ClassName, _Amount], Meta(min_length=1)]


class _Consumer(Struct, forbid_unknown_fields=True):
    allocations: dict[_Uuid, _Line]
    project_id: _Identifier
    user_id: _Identifier
    consumer_generation: int | None
    consumer_type: _ConsumerType


_CONSUMER = msgspec.json.Decoder(_Consumer)


def decode_consumer(body: bytes) -> Any:
    """Decode a body, or return ``None`` if it must be validated against the schema."""
    if b"\\" in body:
        # Escapes may hide rejected characters. UUIDs and names need no escapes.
        return None
    try:
        _CONSUMER.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return msgspec.json.decode(body)
