"""A quick way through the most common bodies of ``POST /servers``.

Always true: what :func:`decode` accepts the schema accepts too, and both mean the same; for
whatever is rare, odd or wrong it gives ``None``, and the schema finds the words.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from innkeeper.domain.versions import Version
from innkeeper.entrypoints.api.compute.servers.bodies import ServerCreateRequest
from innkeeper.entrypoints.api.compute.servers.schemas import COUNT_MAX
from innkeeper.entrypoints.api.patterns import METADATA_KEY_PATTERN

SINCE = Version(2, 57)
"""Plain bodies mean the same from here on: later versions brought keys that no plain body has,
and earlier ones take files, which have to be looked for."""

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
"""A missing key is told from one with null by leaving every body with a null to the schema."""


def decode(body: bytes) -> ServerCreateRequest | None:
    """Decode a plain good body; ``None`` leaves it to the schema."""
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
    # Printable text has neither control characters nor line ends; a space is printable.
    texts = (server.name, server.flavorRef, server.availability_zone, server.key_name)
    return (
        all(text is None or text.isprintable() for text in texts)
        and server.name == server.name.strip()
        and all(value.isprintable() for value in server.metadata.values())
    )


def _device(device: _Device) -> dict[str, Any]:
    made: dict[str, Any] = msgspec.to_builtins(device)
    return made
