"""Pieces of older bodies of a boot: devices and networks with fewer keys."""

from __future__ import annotations

from innkeeper.entrypoints.api.compute.servers.schemas import CREATED, DEVICE, NETWORK
from innkeeper.entrypoints.api.microversions import Schema


def _items(schema: Schema, *gone: str) -> Schema:
    left = {name: each for name, each in schema["properties"].items() if name not in gone}
    return {"type": "array", "items": {**schema, "properties": left}, "maxItems": 64}


DEVICES_UNTYPED = _items(DEVICE, "volume_type")
DEVICES_PLAIN = _items(DEVICE, "volume_type", "tag")
NICS = _items(NETWORK)
NICS_PLAIN = _items(NETWORK, "tag")
NETWORKS_PLAIN: Schema = {"oneOf": [NICS_PLAIN, CREATED["networks"]["oneOf"][1]]}
