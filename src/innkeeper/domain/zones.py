"""Types of the zones room: entries of build plans, and the scopes that they are bound to."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from innkeeper.domain.ids import ServerId

KEY_DIGITS = (32, 64)
"""The lengths of a key: 128 bits, as in the seed *Distributed Scheduler*, or 256 bits."""
_HEXADECIMAL = re.compile(r"[0-9a-fA-F]*")


@dataclass(frozen=True, slots=True)
class Destination:
    """The server to create and its host. Only the zone that made the plan can read it.

    The server's id is part of the plan, so a second execution of the entry finds the server.
    ``provider_uuid`` shows whether the host's name was reused for another host.
    """

    server_id: ServerId
    host: str
    provider_uuid: str


@dataclass(frozen=True, slots=True)
class EntryScope:
    """The project and the request that an entry is valid for.

    They are not part of the entry: the zone computes them from the request that contains it.
    """

    project_id: str
    request_digest: str


@dataclass(frozen=True, slots=True)
class Opened:
    """The content of an entry. It is invalid from ``expires_at`` on."""

    destination: Destination
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class Planned:
    """One server of a plan inside this zone. A higher weight is better."""

    destination: Destination
    weight: float


@dataclass(frozen=True, slots=True)
class Offer:
    """One server of a plan as it is returned to the parent zone: a weight and a sealed entry."""

    weight: float
    sealed: str


def digest(request: Mapping[str, Any]) -> str:
    """Return a hash of a request. The order of keys does not matter."""
    text = json.dumps(request, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def plan_key(text: str) -> bytes:
    """Parse a key from the settings. The ``ValueError`` for an invalid key does not reveal it."""
    lengths = " or ".join(map(str, KEY_DIGITS))
    if len(text) not in KEY_DIGITS:
        raise ValueError(f"a key is {lengths} hexadecimal digits, and not {len(text)}")
    if _HEXADECIMAL.fullmatch(text) is None:
        raise ValueError(f"a key is {lengths} hexadecimal digits, and nothing else")
    return bytes.fromhex(text)
