"""Images of the catalogue."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Image:
    """An image of the catalogue. The scheduler reads its minimum sizes and its properties."""

    id: str
    name: str | None
    owner: str
    visibility: str
    status: str
    disk_format: str | None
    container_format: str | None
    min_ram_mb: int
    min_disk_gb: int
    size_bytes: int | None
    checksum: str | None
    sha512: str | None
    is_protected: bool
    is_hidden: bool
    tags: tuple[str, ...]
    properties: Mapping[str, str]
    created_at: datetime
    updated_at: datetime
