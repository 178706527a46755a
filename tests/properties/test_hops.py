"""Hop tokens are valid only unchanged, with their secret, and for a short time."""

from __future__ import annotations

import base64
import hmac
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from innkeeper.domain import hops
from innkeeper.domain.errors import Unauthenticated
from innkeeper.domain.hops import LENGTH_MAX, LIFETIME_S, OWNER_CHARS_MAX, SKEW_S, HopClaims
from innkeeper.domain.identity import RequestContext
from innkeeper.domain.zone_tree import TreeRequest

NOON = datetime(2026, 1, 1, 12)  # noqa: DTZ001 - the core's clock is naive and in UTC
SECRET = "a secret of two zones"
UUIDS = st.uuids().map(str)
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40)
LOTS = 2**40


def second(seconds: float) -> datetime:
    """A moment after noon."""
    return NOON + timedelta(seconds=seconds)


CALLERS = st.builds(
    RequestContext,
    request_id=st.just(""),
    user_id=TEXTS,
    user_name=st.none() | TEXTS,
    project_id=st.none() | TEXTS,
    project_name=st.none() | TEXTS,
    roles=st.frozensets(TEXTS, max_size=4),
)
TREES = st.builds(
    TreeRequest,
    request_id=UUIDS,
    visited=st.lists(UUIDS, max_size=4).map(tuple),
    hops_left=st.integers(-LOTS, LOTS),
    time_left_ms=st.integers(-LOTS, LOTS),
    link_host=UUIDS.map(lambda each: f"{each}.invalid"),
)
CLAIMS = st.builds(
    HopClaims,
    parent_name=st.from_regex(hops.PARENT_NAME, fullmatch=True),
    id=st.uuids().map(lambda each: each.hex),
    issued_at=st.just(NOON),
    expires_at=st.just(second(LIFETIME_S)),
    method=st.sampled_from(["GET", "POST", "PUT", "DELETE"]),
    target=TEXTS,
    body_digest=st.binary(max_size=20).map(hops.digest_of),
    caller=CALLERS,
    tree=TREES,
)
PLAIN = HopClaims(
    "up",
    UUID(int=1).hex,
    NOON,
    second(LIFETIME_S),
    "GET",
    "/v2.1/servers",
    hops.digest_of(b""),
    RequestContext("", "ann", "lab"),
    TreeRequest(str(UUID(int=2)), (), 2, 1000, "x.invalid"),
)


@given(CLAIMS)
def test_a_token_says_what_was_signed(claims: HopClaims) -> None:
    token = hops.sign(claims, SECRET)
    assume(len(token) <= LENGTH_MAX)
    assert hops.is_one(token)
    assert hops.name_in(token) == claims.parent_name
    assert hops.opened(token, SECRET, NOON) == claims


@given(CLAIMS, st.text(max_size=30))
def test_another_secret_opens_nothing(claims: HopClaims, secret: str) -> None:
    assume(secret != SECRET)
    token = hops.sign(claims, SECRET)
    with pytest.raises(Unauthenticated):
        hops.opened(token, secret, NOON)


def test_no_byte_of_a_token_can_be_changed() -> None:
    raw = bytearray(_raw_of(hops.sign(PLAIN, SECRET)))
    for place in range(len(raw)):
        for bit in range(8):
            raw[place] ^= 1 << bit
            with pytest.raises(Unauthenticated):
                hops.opened(_token_of(bytes(raw)), SECRET, NOON)
            raw[place] ^= 1 << bit


@given(st.data())
def test_no_letter_of_a_token_can_be_changed_added_or_removed(data: st.DataObject) -> None:
    token = hops.sign(PLAIN, SECRET)
    start = data.draw(st.integers(0, len(token)))
    end = data.draw(st.integers(start, min(len(token), start + 4)))
    changed = token[:start] + data.draw(st.text(max_size=4)) + token[end:]
    assume(changed != token)
    with pytest.raises(Unauthenticated):
        hops.opened(changed, SECRET, NOON)


@pytest.mark.parametrize(
    ("issued_s", "expires_s", "is_valid"),
    [
        (0, LIFETIME_S, True),
        (SKEW_S, SKEW_S + LIFETIME_S, True),
        (SKEW_S + 1, SKEW_S + LIFETIME_S, False),
        (-LIFETIME_S - SKEW_S + 1, -SKEW_S + 1, True),
        (-LIFETIME_S - SKEW_S, -SKEW_S, False),
        (0, LIFETIME_S + 1, False),
        (0, -SKEW_S - 1, False),
        (-1e9, 1e9, False),
        (1e9, 1e9, False),
    ],
)
def test_a_token_is_valid_for_its_short_life(
    issued_s: float, expires_s: float, is_valid: bool
) -> None:
    claims = replace(PLAIN, issued_at=second(issued_s), expires_at=second(expires_s))
    token = hops.sign(claims, SECRET)
    if is_valid:
        assert hops.opened(token, SECRET, NOON) == claims
    else:
        with pytest.raises(Unauthenticated):
            hops.opened(token, SECRET, NOON)


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (1, ""),
        (1, "a" * 4000),
        (1, "A" * 32),
        (2, 2**63 - 1),
        (2, -(2**63)),
        (3, 2**63 - 1),
        (7, "u" * (OWNER_CHARS_MAX + 1)),
        (7, "a\0b"),
        (8, "a\0b"),
        (9, "p" * (OWNER_CHARS_MAX + 1)),
        (9, "a\0b"),
        (12, "no id"),
        (13, [str(UUID(int=1))] * 100),
        (13, ["elsewhere"]),
        (16, "evil.example.org"),
        (16, "a\r\nset-cookie: b.invalid"),
        (16, "a/b.invalid"),
        (16, ".invalid"),
        (16, "a.invalid\n"),
        (0, 7),
        (11, "admin"),
        (14, 0.5),
        (14, None),
    ],
)
def test_a_parent_cannot_sign_values_that_make_later_steps_fail(place: int, value: Any) -> None:
    fields = _fields_of(PLAIN)
    fields[place] = value
    with pytest.raises(Unauthenticated):
        hops.opened(_signed(fields), SECRET, NOON)


@pytest.mark.parametrize("name", ["", ":", "up:", "a\0", "ü", "a" * 65, "-a"])
def test_no_name_of_a_parent_is_looked_up_that_none_can_have(name: str) -> None:
    fields = _fields_of(PLAIN)
    fields[0] = name
    with pytest.raises(Unauthenticated):
        hops.name_in(_signed(fields))


def test_a_token_has_exactly_the_known_fields() -> None:
    fields = _fields_of(PLAIN)
    assert hops.opened(_signed(fields), SECRET, NOON) == PLAIN
    for changed in ([*fields, 1], fields[:-1], [], {"parent_name": "up"}, [fields], None):
        with pytest.raises(Unauthenticated):
            hops.opened(_signed(changed), SECRET, NOON)


@given(st.binary(max_size=300))
def test_rubbish_is_refused(raw: bytes) -> None:
    for text in (_token_of(raw), raw.decode("latin-1"), hops.FORM + raw.decode("latin-1")):
        with pytest.raises(Unauthenticated):
            hops.name_in(text)
        with pytest.raises(Unauthenticated):
            hops.opened(text, SECRET, NOON)


def test_a_long_token_is_refused_even_with_a_good_signature() -> None:
    roles = frozenset(f"role-{number}" for number in range(LENGTH_MAX // 8))
    token = hops.sign(
        replace(PLAIN, caller=msgspec.structs.replace(PLAIN.caller, roles=roles)), SECRET
    )
    assert len(token) > LENGTH_MAX
    with pytest.raises(Unauthenticated):
        hops.opened(token, SECRET, NOON)


def test_deeply_nested_rubbish_is_refused() -> None:
    with pytest.raises(Unauthenticated):
        hops.name_in(_token_of(bytes(32) + b"\x91" * 5000))


def _raw_of(token: str) -> bytes:
    text = token.removeprefix(hops.FORM)
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _token_of(raw: bytes) -> str:
    return hops.FORM + base64.urlsafe_b64encode(raw).decode().rstrip("=")


def _fields_of(claims: HopClaims) -> list[Any]:
    fields: list[Any] = msgspec.msgpack.decode(_raw_of(hops.sign(claims, SECRET))[32:])
    return fields


def _signed(fields: Any) -> str:
    """Return the token that a parent with another program would send."""
    content = msgspec.msgpack.encode(fields)
    mac = hmac.digest(SECRET.encode(), b"innkeeper hop 1\x00" + content, "sha256")
    return _token_of(mac + content)
