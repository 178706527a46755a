"""Seal the entries of build plans. Clients pass entries on, and only this zone can read them.

Always true: an entry opens only with the key that sealed it, in the zone with the same name, for
the same project and request. A modified entry does not open. No two entries are the same. The first
key seals, and every key opens.

May be false: that an opened entry has not expired, and that its host still has room. An entry
reserves no capacity, so a boot checks everything again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

import msgspec
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from innkeeper.domain import key_rings
from innkeeper.domain.errors import Invalid
from innkeeper.domain.ids import ServerId
from innkeeper.domain.key_rings import KEY_BYTES, KEY_ID_BYTES, KeyRing, NotOpened
from innkeeper.domain.slices import Zoning
from innkeeper.domain.zones import Destination, EntryScope, Offer, Opened, Planned, plan_key

FORM = b"\x01"
"""The first byte of a sealed entry: the version of its format."""
HEAD_BYTES = len(FORM) + KEY_ID_BYTES
PADDED_TO_BYTES = 256
"""Entries are padded to a multiple of this, which hides the length of host names. Only with the
longest names is an entry longer than this."""
_SEALING = b"innkeeper build plan entry 1"
_NAMING = b"innkeeper build plan key id"


class NotOurs(Invalid):
    """The text does not open in this zone, or not for this project and this request.

    The message does not tell which, so that a client with another project's entry learns nothing.
    """

    def __init__(self) -> None:
        super().__init__(
            "The build plan entry was not made by this zone for this project and this request."
        )


class _Content(msgspec.Struct, frozen=True, array_like=True):
    server_id: str
    host: str
    provider_uuid: str
    expires_at: datetime


class Sealer:
    """Seals and opens the entries of one zone."""

    def __init__(self, zone_name: str, keys: Sequence[bytes], lifetime_s: float) -> None:
        assert keys, "a zone without a key makes no plans"
        self._zone_name = zone_name
        self._ring = KeyRing({key_id(key).hex(): _derived(key) for key in keys})
        self._head = FORM + bytes.fromhex(self._ring.first_id)
        self._lifetime = timedelta(seconds=lifetime_s)

    def seal(self, destination: Destination, scope: EntryScope, nonce: bytes, now: datetime) -> str:
        """Seal one entry. ``nonce`` must be random and used only once."""
        expires_at = now + self._lifetime
        content = msgspec.json.encode(
            _Content(destination.server_id, destination.host, destination.provider_uuid, expires_at)
        )
        # JSON decoders ignore trailing spaces.
        content += b" " * (-len(content) % PADDED_TO_BYTES)
        box = self._ring.seal(content, nonce, self._bound(self._head, scope))
        return key_rings.unpadded_text_of(self._head + box)

    def open(self, text: str, scope: EntryScope) -> Opened:
        """Open an entry, expired or not. Raises :class:`NotOurs`."""
        try:
            raw = key_rings.unpadded_bytes_of(text)
            head, box = raw[:HEAD_BYTES], raw[HEAD_BYTES:]
            if not head.startswith(FORM):
                raise NotOurs
            used_id = head.removeprefix(FORM).hex()
            content = self._ring.open(used_id, box, self._bound(head, scope))
            found = msgspec.json.decode(content, type=_Content)
        except (NotOpened, ValueError) as error:
            # Content of another format raises a ValueError.
            raise NotOurs from error
        server_id = ServerId(found.server_id)
        return Opened(Destination(server_id, found.host, found.provider_uuid), found.expires_at)

    def _bound(self, head: bytes, scope: EntryScope) -> bytes:
        # A JSON list keeps the texts apart.
        return head + msgspec.json.encode([self._zone_name, scope.project_id, scope.request_digest])


def sealer_of(settings: Zoning) -> Sealer | None:
    """Return the sealer that the settings describe, or ``None`` without keys."""
    keys = [plan_key(text) for text in settings.build_plan_encryption_key]
    if not keys:
        return None
    return Sealer(settings.zone_name, keys, settings.build_plan_lifetime_s)


def key_id(key: bytes) -> bytes:
    """Return the id of a key in entries. The id reveals nothing about the key."""
    return bytes.fromhex(key_rings.key_id(key, _NAMING))


def _derived(key: bytes) -> bytes:
    # Extends a 128-bit key to the length that the cipher needs, and separates the key's uses.
    return HKDF(hashes.SHA256(), KEY_BYTES, salt=None, info=_SEALING).derive(key)


def offers(
    planned: Sequence[Planned],
    scope: EntryScope,
    sealer: Sealer,
    draw: Callable[[], bytes],
    now: datetime,
) -> list[Offer]:
    """Seal each planned server. The best offer comes first; offers of equal weight keep the plan's
    order.

    ``draw`` returns an unpredictable nonce. Nothing is written or claimed, and no host name leaves
    the zone. There are no child zones yet. This function will seal their offers again, and merge
    them.
    """
    sealed = [
        Offer(each.weight, sealer.seal(each.destination, scope, draw(), now)) for each in planned
    ]
    return sorted(sealed, key=lambda offer: -offer.weight)
