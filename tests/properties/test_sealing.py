"""Entries of build plans open only for the project and request that they were made for."""

from __future__ import annotations

import base64
import string
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec import structs

from innkeeper.domain.errors import Invalid
from innkeeper.domain.ids import ServerId
from innkeeper.domain.key_rings import NONCE_BYTES
from innkeeper.domain.zones import ChildEntry, Destination, EntryScope, Opened, digest
from innkeeper.systems.zones.sealing import FORM, NotOurs, Sealer, key_id

NOON = datetime(2026, 1, 1, 12)  # noqa: DTZ001 - the core's clock is naive and in UTC
LIFETIME_S = 60.0
ALPHABET = string.ascii_letters + string.digits + "-_"
KEYS = st.sampled_from([16, 32]).flatmap(lambda size: st.binary(min_size=size, max_size=size))
NONCES = st.binary(min_size=NONCE_BYTES, max_size=NONCE_BYTES)
NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)
DESTINATIONS = st.builds(
    Destination,
    server_id=st.uuids().map(lambda each: ServerId(str(each))),
    host=NAMES,
    provider_uuid=st.uuids().map(str),
)
SCOPES = st.builds(EntryScope, project_id=NAMES, request_digest=NAMES)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)
CHILD = "4c2b1d7e-0000-4000-8000-000000000003"
OLD_ENTRY = (
    "Aa_RJa8juS3MAAECAwQFBgcICQoLzY_R1TCSpKgxQJK4KsFiRDKw1Dp7vXamw6ZWNBjBd3Z_2D9mVcDW"
    "qpgfI0YKy6Ngdnp0rvx4yladUFYlXeRywjnBoXTWJnHZaB2kbQr6Z9zqkUmo6-BI21xAdqJVgBt5gUIV"
    "ukdH6yFlkF8VIIxuV4kX8VkL9RDGxsgVB9H0ZRLmdODLaR84de7dtLgJps21ilgEPC9oAk5GoWzyeTeR"
    "zI4-J-X3HPUrUzexroIch7Pz1FbaMPOMQEahmQhbscSI-SBDyOf2Q3PSEKaYbFaY2FKVjBXkWKVO_SJb"
    "WMc2WYJf_a-o_mQkOEwOmraFbLKPf4UF08iGB6Etjduvlo1k9gCspQVNX_mBQbaDa7To6_M"
)
"""Sealed by the first version that sealed entries, in its format, with a counter as nonce."""


def sealer(*keys: bytes, zone: str = "east") -> Sealer:
    """A sealer of a zone with these keys."""
    return Sealer(zone, keys, LIFETIME_S)


def bytes_of(entry: str) -> bytearray:
    """The bytes that an entry's letters encode."""
    return bytearray(base64.urlsafe_b64decode(entry + "=" * (-len(entry) % 4)))


def letters(raw: bytes | bytearray) -> str:
    """Bytes as the letters of an entry."""
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


@given(KEYS, DESTINATIONS, SCOPES, NONCES)
def test_what_was_sealed_is_what_is_opened(
    key: bytes, destination: Destination, scope: EntryScope, nonce: bytes
) -> None:
    entry = sealer(key).seal(destination, scope, nonce, NOON)
    expires_at = NOON + timedelta(seconds=LIFETIME_S)
    assert sealer(key).open(entry, scope) == Opened(destination, expires_at)


def test_an_entry_of_an_older_program_opens() -> None:
    """A parent may hold such an entry while this zone is upgraded."""
    zone = sealer(b"p" * 16, b"q" * 32)
    destination = Destination(
        ServerId("4c2b1d7e-0000-4000-8000-000000000001"),
        "host-1",
        "4c2b1d7e-0000-4000-8000-000000000002",
    )
    scope = EntryScope("project", "digest")
    assert zone.open(OLD_ENTRY, scope).place == destination


@given(KEYS, KEYS, DESTINATIONS, SCOPES, NONCES, st.integers(1, 8))
def test_an_entry_of_a_child_is_wrapped_and_unwrapped(
    key: bytes, below: bytes, destination: Destination, scope: EntryScope, nonce: bytes, hops: int
) -> None:
    inner = sealer(below, zone="west").seal(destination, scope, nonce, NOON, hops - 1)
    wrapped = sealer(key).seal(ChildEntry(CHILD, inner), scope, nonce, NOON, hops)
    opened = sealer(key).open(wrapped, scope).place
    assert opened == ChildEntry(CHILD, inner)
    assert sealer(below, zone="west").open(inner, scope).place == destination
    own = sealer(key).seal(destination, scope, nonce, NOON, hops)
    assert len(own) == len(wrapped), "the length does not say where the host is"


def test_no_byte_of_an_entry_through_three_zones_can_be_changed() -> None:
    """Each zone notices a change in its own layer, whatever the zones above it do."""
    scope, nonces = EntryScope("project", "digest"), iter(range(10_000))
    zones = [sealer(bytes([n]) * 32, zone=f"zone-{n}") for n in range(3)]
    host = Destination(ServerId(CHILD), "host-1", CHILD)

    def sealed(place: Destination | ChildEntry, zone: int) -> str:
        nonce = next(nonces).to_bytes(NONCE_BYTES, "big")
        return zones[zone].seal(place, scope, nonce, NOON, 2 - zone)

    def wrapped(entry: str, zone: int) -> str:
        """The entry of a zone, as the first zone offers it."""
        for above in reversed(range(zone)):
            entry = sealed(ChildEntry(CHILD, entry), above)
        return entry

    assert len({len(wrapped(sealed(host, zone), zone)) for zone in range(3)}) == 1
    right = sealed(host, 2)
    for zone in (2, 1, 0):
        entry = right if zone == 2 else sealed(ChildEntry(CHILD, right), zone)
        raw = bytes_of(entry)
        for place in range(len(raw)):
            raw[place] ^= 1 << place % 8
            found = wrapped(letters(raw), zone)
            raw[place] ^= 1 << place % 8
            for above in range(zone):
                opened = zones[above].open(found, scope).place
                assert isinstance(opened, ChildEntry)
                found = opened.sealed
            with pytest.raises(NotOurs):
                zones[zone].open(found, scope)
        right = entry


@given(KEYS, SCOPES, NONCES, st.text(max_size=2000))
def test_what_a_child_calls_an_entry_is_checked(
    key: bytes, scope: EntryScope, nonce: bytes, text: str
) -> None:
    try:
        entry = sealer(key).seal(ChildEntry(CHILD, text), scope, nonce, NOON, 1)
    except Invalid:
        return
    assert sealer(key).open(entry, scope).place == ChildEntry(CHILD, text)


@given(KEYS, KEYS, DESTINATIONS, SCOPES, NONCES)
def test_another_key_opens_nothing(
    key: bytes, another: bytes, destination: Destination, scope: EntryScope, nonce: bytes
) -> None:
    assume(key != another)
    entry = sealer(key).seal(destination, scope, nonce, NOON)
    with pytest.raises(NotOurs):
        sealer(another).open(entry, scope)


@given(KEYS, DESTINATIONS, SCOPES, SCOPES, NAMES, NONCES)
def test_another_zone_project_or_request_does_not_open_an_entry(
    key: bytes,
    destination: Destination,
    scope: EntryScope,
    other: EntryScope,
    zone: str,
    nonce: bytes,
) -> None:
    entry = sealer(key).seal(destination, scope, nonce, NOON)
    # The last two cases: the end of a field cannot count as the beginning of the next.
    project_id, asked = scope.project_id, scope.request_digest
    for named, said in (
        (zone, scope),
        ("east", replace(scope, project_id=other.project_id)),
        ("east", replace(scope, request_digest=other.request_digest)),
        ("east", EntryScope(project_id + asked, "")),
        ("east" + project_id, EntryScope(asked, "")),
    ):
        if (named, said) != ("east", scope):
            with pytest.raises(NotOurs):
                sealer(key, zone=named).open(entry, said)


@given(KEYS, DESTINATIONS, SCOPES, NONCES, st.data())
def test_an_entry_with_a_flipped_bit_is_rejected(
    key: bytes, destination: Destination, scope: EntryScope, nonce: bytes, data: st.DataObject
) -> None:
    raw = bytes_of(sealer(key).seal(destination, scope, nonce, NOON))
    place = data.draw(st.integers(0, 8 * len(raw) - 1), "the bit")
    raw[place // 8] ^= 1 << place % 8
    with pytest.raises(NotOurs):
        sealer(key).open(letters(raw), scope)


@given(KEYS, DESTINATIONS, SCOPES, NONCES, st.data())
def test_an_entry_with_another_letter_is_rejected(
    key: bytes, destination: Destination, scope: EntryScope, nonce: bytes, data: st.DataObject
) -> None:
    """This is true for the last letter, too, although some of its bits are unused."""
    entry = sealer(key).seal(destination, scope, nonce, NOON)
    last = len(entry) - 1
    place = data.draw(st.just(last) | st.integers(0, last), "the place")
    letter = data.draw(st.sampled_from(ALPHABET + "=+/. \n\u00e9").filter(entry[place].__ne__))
    for other in (entry[:place] + letter + entry[place + 1 :], entry[:place], entry + letter):
        with pytest.raises(NotOurs):
            sealer(key).open(other, scope)


@given(st.text(max_size=600) | st.binary(max_size=600).map(letters), KEYS, SCOPES)
def test_what_was_never_sealed_is_none(text: str, key: bytes, scope: EntryScope) -> None:
    with pytest.raises(NotOurs):
        sealer(key).open(text, scope)
    with pytest.raises(NotOurs):
        sealer(key).open(letters(FORM + key_id(key) + text.encode(errors="replace")), scope)


@given(st.lists(KEYS, min_size=3, max_size=3, unique=True), DESTINATIONS, SCOPES, NONCES)
def test_keys_take_turns(
    keys: list[bytes], destination: Destination, scope: EntryScope, nonce: bytes
) -> None:
    old, new, newer = keys
    entry = sealer(old).seal(destination, scope, nonce, NOON)
    assert sealer(new, old).open(entry, scope).place == destination
    with pytest.raises(NotOurs):
        sealer(newer, new).open(entry, scope)
    later = sealer(new, old).seal(destination, scope, nonce, NOON)
    assert sealer(newer, new).open(later, scope).place == destination
    with pytest.raises(NotOurs):
        sealer(old).open(later, scope)


@given(KEYS, st.lists(DESTINATIONS, min_size=2, max_size=2), SCOPES, NONCES, NONCES)
def test_an_entry_reveals_nothing(
    key: bytes, places: list[Destination], scope: EntryScope, nonce: bytes, another: bytes
) -> None:
    """Not by its bytes, not by its length, and not by its similarity to another entry."""
    first, second = (
        structs.replace(each, host=each.host.encode()[:10].decode(errors="ignore"))
        for each in places
    )
    entry = sealer(key).seal(first, scope, nonce, NOON)
    assert len(entry) == len(sealer(key).seal(second, scope, another, NOON))
    assert first.server_id.encode() not in bytes_of(entry)
    assert first.provider_uuid.encode() not in bytes_of(entry)
    if nonce != another:
        assert entry != sealer(key).seal(first, scope, another, NOON)


@given(st.dictionaries(st.text(max_size=5), VALUES, max_size=4), VALUES)
def test_requests_are_alike_in_whatever_order_they_are_written(
    asked: dict[str, object], more: object
) -> None:
    backwards = dict(reversed(asked.items()))
    assert digest(asked) == digest(backwards)
    assert digest({**asked, "more": more}) != digest({**asked, "more": [more]})
