"""Encrypt (seal) the entries of build plans.

An entry is one item of a build plan: a server id and a host. Clients pass entries on, and cannot
read them.

Always true: an entry opens only with the key that sealed it, in the zone with the same name, for
the same project and request. A modified entry does not open. No two entries are equal. The first
key in the settings seals entries, and every key in the settings can open them. All entries of an
answer have the same length.

An opened entry may have expired, and its host may be full. An entry reserves no capacity, so a boot
repeats all checks.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

import msgspec
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from innkeeper.domain import key_rings
from innkeeper.domain.errors import Invalid
from innkeeper.domain.ids import ServerId
from innkeeper.domain.key_rings import (
    KEY_BYTES,
    KEY_ID_BYTES,
    NONCE_BYTES,
    TAG_BYTES,
    KeyRing,
    NotOpened,
)
from innkeeper.domain.slices import Zoning
from innkeeper.domain.zones import (
    ChildEntry,
    Destination,
    EntryScope,
    Opened,
    PlacedOffer,
    Planned,
    plan_key,
)

FIRST_FORM, FORM = b"\x01", b"\x02"
"""The first byte of a sealed entry: the version of its format. Entries of the first form could name
only hosts of this zone."""
HEAD_BYTES = len(FORM) + KEY_ID_BYTES
LENGTH_BYTES = 2
CONTENT_BYTES = 384
"""The length of an entry's content if no hops are left. The longest host name fits into this
length."""
LAYER_BYTES = 128
"""The number of bytes that each hop adds to an entry, for the child's id, key id, nonce and tag."""
BOX_BYTES = LENGTH_BYTES + NONCE_BYTES + TAG_BYTES
"""The number of bytes that sealing adds to the padded content of an entry."""
NONCE_MASK = (1 << 8 * NONCE_BYTES) - 1
ITEM_BYTES = 16
_ITEMS = b"innkeeper build plan item 1"
_SEALING = b"innkeeper build plan entry 1"
_NAMING = b"innkeeper build plan key id"


class NotOurs(Invalid):
    """A build plan entry cannot be opened in this zone for this project and this request.

    The message does not give the reason, so that a client with another project's entry learns
    nothing.
    """

    def __init__(self) -> None:
        super().__init__(
            "The build plan entry was not made by this zone for this project and this request."
        )


class _HostContent(msgspec.Struct, frozen=True, array_like=True, tag="h"):
    server_id: str
    host: str
    provider_uuid: str
    expires_at: datetime


class _ChildContent(msgspec.Struct, frozen=True, array_like=True, tag="c"):
    child_uuid: str
    sealed: bytes
    expires_at: datetime


_DECODER = msgspec.msgpack.Decoder(_HostContent | _ChildContent)
_FIRST_DECODER = msgspec.json.Decoder(tuple[str, str, str, datetime])


class Sealer:
    """Seals and opens the entries of one zone."""

    def __init__(self, zone_name: str, keys: Sequence[bytes], lifetime_s: float) -> None:
        assert keys, "a sealer needs at least one key"
        self._zone_name = zone_name
        self._ring = KeyRing({key_id(key).hex(): _derived(key) for key in keys})
        self._head = FORM + bytes.fromhex(self._ring.first_id)
        self._lifetime = timedelta(seconds=lifetime_s)
        self._item_key = hmac.digest(keys[0], _ITEMS, "sha256")
        self._last_bound: tuple[bytes, EntryScope, bytes] | None = None
        self._encoder = msgspec.msgpack.Encoder()

    def seal(
        self,
        place: Destination | ChildEntry,
        scope: EntryScope,
        nonce: bytes,
        now: datetime,
        hops_left: int = 0,
    ) -> str:
        """Seal one entry. ``nonce`` must be random and used only once.

        Raises :class:`Invalid` for a child's entry that is malformed or too long.
        """
        return self._sealed(place, scope, nonce, now + self._lifetime, hops_left)

    def seal_all(
        self,
        places: Iterable[Destination | ChildEntry],
        scope: EntryScope,
        first_nonce: bytes,
        now: datetime,
        hops_left: int = 0,
    ) -> list[str]:
        """Seal entries as :meth:`seal` does.

        ``first_nonce`` must be unpredictable. The next entries get the next numbers as nonces. The
        risk of equal nonces in two plans is no higher than with random nonces.
        """
        first, expires_at = int.from_bytes(first_nonce, "big"), now + self._lifetime
        return [
            self._sealed(
                place,
                scope,
                (first + number & NONCE_MASK).to_bytes(NONCE_BYTES, "big"),
                expires_at,
                hops_left,
            )
            for number, place in enumerate(places)
        ]

    def _sealed(
        self,
        place: Destination | ChildEntry,
        scope: EntryScope,
        nonce: bytes,
        expires_at: datetime,
        hops_left: int,
    ) -> str:
        content = self._encoder.encode(_content_of(place, expires_at))
        most = CONTENT_BYTES + LAYER_BYTES * max(hops_left, 0)
        if len(content) > most:
            raise Invalid("The entry of the child zone is too long.")
        # The length of an entry depends only on the number of hops left.
        padded = len(content).to_bytes(LENGTH_BYTES, "big") + content.ljust(most, b"\0")
        box = self._ring.seal(padded, nonce, self._bound(self._head, scope))
        return key_rings.unpadded_text_of(self._head + box)

    def open(self, text: str, scope: EntryScope) -> Opened:
        """Open an entry, even if it has expired. Raises :class:`NotOurs`."""
        try:
            raw = key_rings.unpadded_bytes_of(text)
            head, box = raw[:HEAD_BYTES], raw[HEAD_BYTES:]
            form, used_id = head[: len(FORM)], head[len(FORM) :].hex()
            if form not in (FIRST_FORM, FORM):
                raise NotOurs
            padded = self._ring.open(used_id, box, self._bound(head, scope))
            found = _first_content(padded) if form == FIRST_FORM else self._content(padded)
        except (NotOpened, ValueError) as error:
            # Content of another format raises a ValueError.
            raise NotOurs from error
        if isinstance(found, _ChildContent):
            sealed = key_rings.unpadded_text_of(found.sealed)
            return Opened(ChildEntry(found.child_uuid, sealed), found.expires_at)
        server_id = ServerId(found.server_id)
        return Opened(Destination(server_id, found.host, found.provider_uuid), found.expires_at)

    def _content(self, padded: bytes) -> _HostContent | _ChildContent:
        length = int.from_bytes(padded[:LENGTH_BYTES], "big")
        found: _HostContent | _ChildContent = _DECODER.decode(
            padded[LENGTH_BYTES : LENGTH_BYTES + length]
        )
        return found

    def item(self, tree_id: str, index: int) -> str:
        """Return a text that stands for the offered place.

        Within a tree of zones, the same place always gets the same text. Clients cannot guess the
        text.
        """
        text = f"{tree_id}:{index}".encode()
        # BLAKE2b has a built-in keyed mode, which takes a third of the time of an HMAC.
        return hashlib.blake2b(text, key=self._item_key, digest_size=ITEM_BYTES).hexdigest()

    def _bound(self, head: bytes, scope: EntryScope) -> bytes:
        # The last result is kept, because successive entries are mostly for the same request.
        last = self._last_bound
        if last is not None and last[1] is scope and last[0] == head:
            return last[2]
        # A JSON list keeps the texts apart, so no part of a text can pass for part of the next.
        texts = [self._zone_name, scope.project_id, scope.request_digest]
        bound = head + msgspec.json.encode(texts)
        self._last_bound = head, scope, bound
        return bound


def _first_content(padded: bytes) -> _HostContent:
    """Return the content of an entry that an older release has sealed in the first form."""
    # JSON decoders ignore trailing spaces.
    row = _FIRST_DECODER.decode(padded)
    return _HostContent(*row)


def _content_of(
    place: Destination | ChildEntry, expires_at: datetime
) -> _HostContent | _ChildContent:
    if isinstance(place, Destination):
        return _HostContent(place.server_id, place.host, place.provider_uuid, expires_at)
    try:
        sealed = key_rings.unpadded_bytes_of(place.sealed)
    except NotOpened as error:
        raise Invalid("The entry of the child zone is malformed.") from error
    return _ChildContent(place.child_uuid, sealed, expires_at)


def are_entries_of(texts: Sequence[str], hops_left: int) -> bool:
    """Return True if each text has the form of an entry of a child zone's build plan.

    ``hops_left`` is the number of hops that the request to the child had left. The more hops were
    left, the longer an entry may be. Only the length and the characters of a text are checked. This
    zone can seal the texts again, but cannot check their content.
    """
    bytes_max = HEAD_BYTES + BOX_BYTES + CONTENT_BYTES + LAYER_BYTES * max(hops_left, 0)
    chars_max = bytes_max * 4 // 3 + 1
    return all(0 < len(text) <= chars_max for text in texts) and key_rings.are_unpadded(texts)


def sealer_of(settings: Zoning) -> Sealer | None:
    """Return the sealer with the keys in the settings, or ``None`` if there are no keys."""
    keys = [plan_key(text) for text in settings.build_plan_encryption_key]
    if not keys:
        return None
    return Sealer(settings.zone_name, keys, settings.build_plan_lifetime_s)


def key_id(key: bytes) -> bytes:
    """Return the id of a key. Entries contain this id, which reveals nothing about the key."""
    return bytes.fromhex(key_rings.key_id(key, _NAMING))


def _derived(key: bytes) -> bytes:
    # The derived key has the length that the cipher needs, even if ``key`` has only 128 bits. With
    # ``info``, the derived key differs from keys that are derived for other purposes.
    return HKDF(hashes.SHA256(), KEY_BYTES, salt=None, info=_SEALING).derive(key)


def planned_offers(planned: Sequence[Planned], sealer: Sealer, tree_id: str) -> list[PlacedOffer]:
    """Return the offers of this zone's own hosts, in the order of the plan."""
    return [
        PlacedOffer(each.weight, sealer.item(tree_id, index), each.destination)
        for index, each in enumerate(planned)
    ]
