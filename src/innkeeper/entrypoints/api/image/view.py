"""Converts images to JSON values for answers of the Image API."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from innkeeper.domain.images import Image

FIELDS = {
    "id": "id",
    "name": "name",
    "owner": "owner",
    "visibility": "visibility",
    "status": "status",
    "disk_format": "disk_format",
    "container_format": "container_format",
    "min_ram": "min_ram_mb",
    "min_disk": "min_disk_gb",
    "size": "size_bytes",
    "checksum": "checksum",
    "os_hash_value": "sha512",
    "protected": "is_protected",
    "os_hidden": "is_hidden",
    "tags": "tags",
    "created_at": "created_at",
    "updated_at": "updated_at",
}
"""The API's attributes, and the field of :class:`Image` for each."""
PLAIN_FORMATS = frozenset({"raw", "iso"})
"""Disk formats in which an image's virtual size equals its file size."""


def shown(image: Image) -> dict[str, Any]:
    """Return the JSON value of an image, with its properties."""
    path = f"/v2/images/{image.id}"
    is_plain = image.disk_format in PLAIN_FORMATS
    return {
        **image.properties,
        "name": image.name,
        "disk_format": image.disk_format,
        "container_format": image.container_format,
        "visibility": image.visibility,
        "size": image.size_bytes,
        "virtual_size": image.size_bytes if is_plain else None,
        "status": image.status,
        "checksum": image.checksum,
        "protected": image.is_protected,
        "min_ram": image.min_ram_mb,
        "min_disk": image.min_disk_gb,
        "owner": image.owner,
        "os_hidden": image.is_hidden,
        "os_hash_algo": None if image.sha512 is None else "sha512",
        "os_hash_value": image.sha512,
        "id": image.id,
        "created_at": _moment(image.created_at),
        "updated_at": _moment(image.updated_at),
        "tags": list(image.tags),
        # The links are relative to the API's root. Clients prepend the root's address.
        "self": path,
        "file": f"{path}/file",
        "schema": "/v2/schemas/image",
    }


def _moment(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
