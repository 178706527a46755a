"""Types for build plans of zones: entries, and the scopes that the entries are bound to.

The objects for each server are msgspec structs, because a plan may have a thousand servers. A
frozen dataclass takes ten times as long to create.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec

from innkeeper.domain.ids import ServerId

KEY_DIGITS = (32, 64)
"""The allowed lengths of a key in hexadecimal digits: 32 (128 bits, as in the design *Distributed
Scheduler*) or 64 (256 bits)."""
_HEXADECIMAL = re.compile(r"[0-9a-fA-F]*")


class Destination(msgspec.Struct, frozen=True):
    """The server to create, and its host.

    Only the zone that made the plan can read a destination. The destination contains the id of the
    server, so that a second boot with the same entry finds the server that the first boot created.
    ``provider_uuid`` reveals whether the host name now belongs to another host.
    """

    server_id: ServerId
    host: str
    provider_uuid: str


@dataclass(frozen=True, slots=True)
class EntryBoot:
    """One server of a zone parent's request, and the server's host according to a build plan entry.

    The entry with the id ``entry_id`` can be used once, before ``expires_at``.
    """

    server_id: ServerId
    name: str
    hostname: str | None
    launch_index: int
    host: str
    provider_uuid: str
    entry_id: str
    expires_at: datetime

    @property
    def destination(self) -> Destination:
        """The server and its host."""
        return Destination(self.server_id, self.host, self.provider_uuid)


@dataclass(frozen=True, slots=True)
class EntryScope:
    """The project and the request for which a build plan entry is valid.

    The scope is not part of the entry. The zone computes it from the request that contains the
    entry.
    """

    project_id: str
    request_digest: str


class ChildEntry(msgspec.Struct, frozen=True):
    """A build plan entry of a child zone, and the id of this child."""

    child_uuid: str
    sealed: str


@dataclass(frozen=True, slots=True)
class Opened:
    """The decrypted content of an entry: a host of this zone, or an entry of a child zone.

    The entry is invalid from ``expires_at`` on.
    """

    place: Destination | ChildEntry
    expires_at: datetime


class Planned(msgspec.Struct, frozen=True):
    """One server of a plan inside this zone. A higher weight is better."""

    destination: Destination
    weight: float


@dataclass(frozen=True, slots=True)
class ZonePlan:
    """The planned servers inside this zone, and the number of servers that the quota allows."""

    servers: tuple[Planned, ...]
    count_allowed: int


class PlacedOffer(msgspec.Struct, frozen=True):
    """One server of a plan for this zone and the zones below, before its entry is encrypted.

    A higher weight is better. Two offers with the same ``item`` are for the same host. They reached
    this zone by different paths through the tree.
    """

    weight: float
    item: str
    place: Destination | ChildEntry


@dataclass(frozen=True, slots=True)
class TreePlan:
    """The best offers of a tree, best first. The quota allows at most ``count_allowed``.

    ``missing`` has the names of the child zones that did not answer. ``is_partial`` is set if a
    child zone, or a zone further below, did not answer.
    """

    offers: tuple[PlacedOffer, ...]
    count_allowed: int
    missing: tuple[str, ...] = ()
    is_partial: bool = False


def digest(request: Mapping[str, Any]) -> str:
    """Return a hash of a request. The order of the keys does not matter."""
    text = json.dumps(request, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def plan_key(text: str) -> bytes:
    """Parse a key from the settings. A ``ValueError`` does not quote the invalid key."""
    lengths = " or ".join(map(str, KEY_DIGITS))
    if len(text) not in KEY_DIGITS:
        raise ValueError(f"a key must have {lengths} hexadecimal digits, not {len(text)}")
    if _HEXADECIMAL.fullmatch(text) is None:
        raise ValueError(f"a key must have {lengths} hexadecimal digits and no other characters")
    return bytes.fromhex(text)
