"""Fast decoding of the most common bodies of ``POST /servers``.

Always true: if :func:`decode` accepts a body, the schema accepts it with the same meaning. For
all other bodies it returns ``None``, and the schema validates them and words the errors.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from innkeeper.domain.versions import Version
from innkeeper.entrypoints.api.compute.servers.bodies import ServerCreateRequest
from innkeeper.entrypoints.api.compute.servers.schemas import COUNT_MAX
from innkeeper.entrypoints.api.patterns import METADATA_KEY_PATTERN

SINCE = Version(2, 57)
"""The decoder is correct from this version on: later versions only added keys that it rejects.
Earlier versions accept personality files, which need a separate check."""

Word = Annotated[str, msgspec.Meta(min_length=1, max_length=255)]
Text = Annotated[str, msgspec.Meta(max_length=255)]
Count = Annotated[int, msgspec.Meta(ge=1, le=COUNT_MAX)]
Image = Annotated[str, msgspec.Meta(pattern=r"^([0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})?\Z")]
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


class _Body(msgspec.Struct, forbid_unknown_fields=True):
    server: _Server


_DECODER = msgspec.json.Decoder(_Body)
NULL = b"null"
"""Bodies with this text go to the schema, because the structs treat null like a missing key."""


def decode(body: bytes) -> ServerCreateRequest | None:
    """Decode a common body, or return ``None`` to leave the body to the schema."""
    if NULL in body:
        return None
    try:
        server = _DECODER.decode(body).server
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return None
    if not _is_plain(server):
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
    )


def _is_plain(server: _Server) -> bool:
    # Printable text may have spaces, but no control characters or line breaks.
    texts = (server.name, server.flavorRef, server.availability_zone, server.key_name)
    return (
        all(text is None or text.isprintable() for text in texts)
        and server.name == server.name.strip()
        and all(value.isprintable() for value in server.metadata.values())
    )


def _device(device: _Device) -> dict[str, Any]:
    made: dict[str, Any] = msgspec.to_builtins(device)
    return made
