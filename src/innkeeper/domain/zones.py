"""Words of the zones room: what an entry of a build plan says, and what it is bound to."""

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
"""128 bits, as the keys of the design for the distributed scheduler have, or 256."""
_HEXADECIMAL = re.compile(r"[0-9a-fA-F]*")


@dataclass(frozen=True, slots=True)
class Destination:
    """Which server is to be made, and where: what only the zone reads that has planned it.

    The server's id is made with the plan, so whoever carries an entry out a second time finds
    the server. ``provider_uuid`` tells a host from another one that got its name later.
    """

    server_id: ServerId
    host: str
    provider_uuid: str


@dataclass(frozen=True, slots=True)
class EntryScope:
    """For whom and for what an entry is good, beside its zone and its time.

    They are not in the entry: whoever opens one works them out from the request at hand.
    """

    project_id: str
    request_digest: str


@dataclass(frozen=True, slots=True)
class Opened:
    """What an entry says, and the moment from which on it is too late."""

    destination: Destination
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class Planned:
    """One server of a plan as this zone sees it; a higher weight is better."""

    destination: Destination
    weight: float


@dataclass(frozen=True, slots=True)
class Offer:
    """One server of a plan as others see it: how good its place is, and a sealed entry."""

    weight: float
    sealed: str


def digest(asked: Mapping[str, Any]) -> str:
    """A short text that is the same for the same wishes, and for no others.

    The order in which somebody wrote the keys of an object is no part of what they mean.
    """
    text = json.dumps(asked, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def plan_key(text: str) -> bytes:
    """A key for entries, as settings write it; raises ``ValueError`` for what is none.

    What the error says may be shown to anybody: nothing of the text is in it.
    """
    lengths = " or ".join(map(str, KEY_DIGITS))
    if len(text) not in KEY_DIGITS:
        raise ValueError(f"a key is {lengths} hexadecimal digits, and not {len(text)}")
    if _HEXADECIMAL.fullmatch(text) is None:
        raise ValueError(f"a key is {lengths} hexadecimal digits, and nothing else")
    return bytes.fromhex(text)
