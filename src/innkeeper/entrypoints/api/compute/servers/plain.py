"""This module decodes the most common bodies of ``POST /servers`` without a slow JSON schema.

Always true: if :func:`decode` accepts a body, the schema accepts it too, and the results are equal.
For all other bodies, :func:`decode` returns ``None``. Such bodies are then validated against the
schema.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec

from innkeeper.domain.converters import converter_to
from innkeeper.domain.errors import Invalid
from innkeeper.domain.versions import Version
from innkeeper.entrypoints.api.compute.servers.bodies import ServerCreateRequest
from innkeeper.entrypoints.api.compute.servers.schemas import COUNT_MAX, ENTRIES_MAX
from innkeeper.entrypoints.api.patterns import (
    BATCH_PATTERN,
    METADATA_KEY_PATTERN,
    PLAIN_UUID_PATTERN,
)
from innkeeper.entrypoints.api.validation import decode_json

SINCE = Version(2, 57)
"""The first microversion for which the decoder is correct. The decoder rejects keys that later
versions added. Earlier versions accept personality files, which need a separate check."""

Word = Annotated[str, msgspec.Meta(min_length=1, max_length=255)]
Text = Annotated[str, msgspec.Meta(max_length=255)]
Count = Annotated[int, msgspec.Meta(ge=1, le=COUNT_MAX)]
Id = Annotated[str, msgspec.Meta(pattern=PLAIN_UUID_PATTERN)]
Image = Annotated[str, msgspec.Meta(pattern=r"^([0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})?\Z")]
Batch = Annotated[str, msgspec.Meta(max_length=64, pattern=BATCH_PATTERN)]
Entries = Annotated[list[Any], msgspec.Meta(min_length=1, max_length=ENTRIES_MAX)]
Key = Annotated[str, msgspec.Meta(pattern=METADATA_KEY_PATTERN)]


class _Device(msgspec.Struct, forbid_unknown_fields=True):
    source_type: Literal["blank", "image"]
    destination_type: Literal["local"]
    boot_index: Literal[0]
    delete_on_termination: bool | msgspec.UnsetType = msgspec.UNSET
    uuid: Word | msgspec.UnsetType = msgspec.UNSET


class _Server(msgspec.Struct, forbid_unknown_fields=True):
    name: Word
    flavorRef: Word
    imageRef: Image = ""
    networks: Literal["auto", "none"] | None = None
    block_device_mapping_v2: list[_Device] = []
    metadata: dict[Key, Text] = {}
    min_count: Count | None = None
    max_count: Count | None = None
    availability_zone: Word | None = None
    key_name: Word | None = None
    return_reservation_id: bool = False


class _Hints(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """The scheduler hints whose values are the id or name of a single object."""

    group: Id = ""
    same_host: Id = ""
    different_host: Id = ""
    reservation: Word = ""
    pcloud: Word = ""


class _Zone(msgspec.Struct, forbid_unknown_fields=True):
    """The object that a zone parent adds to the body of its user."""

    definitions: Annotated[dict[str, Any], msgspec.Meta(max_length=8)]
    batch_id: Batch | msgspec.UnsetType = msgspec.UNSET
    entries: Entries | msgspec.UnsetType = msgspec.UNSET
    servers: Entries | msgspec.UnsetType = msgspec.UNSET
    is_numbered: bool | msgspec.UnsetType = msgspec.UNSET


class _Body(msgspec.Struct, forbid_unknown_fields=True):
    server: _Server
    hints: _Hints | None = msgspec.field(default=None, name="os:scheduler_hints")
    zone: msgspec.Raw = msgspec.field(default_factory=msgspec.Raw)


_DECODER = msgspec.json.Decoder(_Body)
_check_zone = converter_to(_Zone)
NULL = b"null"
"""If a body has this text, the schema must check it, because the structs treat null like a missing
key. Nulls in the part that a zone parent adds do not matter, because no struct decodes this
part."""


def decode(body: bytes) -> ServerCreateRequest | None:
    """Decode a common body, or return ``None`` if the body must be validated against the schema."""
    try:
        decoded = _DECODER.decode(body)
        zone = _zone(bytes(decoded.zone))
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError, Invalid):
        return None
    if body.count(NULL) != bytes(decoded.zone).count(NULL):
        return None
    server = decoded.server
    hints: dict[str, str] = {} if decoded.hints is None else msgspec.to_builtins(decoded.hints)
    if not _is_plain(server, hints):
        return None
    return ServerCreateRequest(
        name=server.name,
        flavor=server.flavorRef,
        image=server.imageRef or None,
        networks=server.networks,
        devices=[_device(each) for each in server.block_device_mapping_v2],
        metadata=server.metadata,
        count_min=server.min_count,
        count_max=server.max_count,
        availability_zone=server.availability_zone,
        key_name=server.key_name,
        is_batch_id_wanted=server.return_reservation_id,
        hints=hints,
        zone=zone,
    )


def _zone(raw: bytes) -> dict[str, Any] | None:
    """Decode the object that a zone parent adds to a body.

    Raises an error if the object is invalid.
    """
    if not raw:
        return None
    # Decode this part inside a body, because the depth of the whole body is limited.
    told: dict[str, Any] = decode_json(b'{"zone":%b}' % raw)["zone"]
    _check_zone(told)
    return told


def _is_plain(server: _Server, hints: Mapping[str, str]) -> bool:
    # Printable text may have spaces, but no control characters or line breaks.
    texts = (server.name, server.flavorRef, server.availability_zone, server.key_name)
    return (
        all(text is None or text.isprintable() for text in texts)
        and server.name == server.name.strip()
        and all(value.isprintable() for value in (*server.metadata.values(), *hints.values()))
    )


def _device(device: _Device) -> dict[str, Any]:
    made: dict[str, Any] = msgspec.to_builtins(device)
    return made
