"""The quotas of a project."""

from __future__ import annotations

from dataclasses import dataclass

from innkeeper.domain.compute import UNLIMITED


@dataclass(frozen=True, slots=True)
class Limits:
    """The quotas of a project. -1 means unlimited."""

    servers: int
    vcpus: int
    memory_mb: int
    metadata_items: int = UNLIMITED
    keypairs: int = UNLIMITED
    server_groups: int = UNLIMITED
    server_group_members: int = UNLIMITED
