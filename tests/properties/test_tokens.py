"""A token is valid only unchanged, until it expires, and with the key that signed it."""

from __future__ import annotations

import itertools
import string
from datetime import datetime, timedelta

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from innkeeper.domain.errors import Unauthenticated
from innkeeper.systems.identity.tokens import SKEW_US, Claims, Signer, microseconds, moment

NOON = datetime(2026, 1, 1, 12)  # noqa: DTZ001 - the core's clock is naive and in UTC
KEYS = st.binary(min_size=32, max_size=32)
ALPHABET = string.ascii_letters + string.digits + "-_"
NAMES = st.text(max_size=64)
MOMENTS = st.integers(min_value=0, max_value=2**62)


@st.composite
def claims(draw: st.DrawFn) -> Claims:
    """Claims that are valid until after noon."""
    return Claims(
        audit_ids=tuple(draw(st.lists(NAMES, min_size=1, max_size=2))),
        user_id=draw(NAMES),
        project_id=draw(st.none() | NAMES),
        methods=tuple(draw(st.lists(NAMES, max_size=3))),
        issued_us=draw(st.integers(min_value=0, max_value=microseconds(NOON))),
        expires_us=microseconds(NOON) + draw(st.integers(min_value=1, max_value=2**40)),
        stamp_us=draw(MOMENTS),
    )


@given(KEYS, claims())
def test_what_was_signed_is_what_is_opened(key: bytes, made: Claims) -> None:
    assert Signer(key).open(Signer(key).sign(made), NOON) == made


@given(KEYS, claims(), st.data())
def test_one_other_letter_and_it_is_no_token(key: bytes, made: Claims, data: st.DataObject) -> None:
    token = Signer(key).sign(made)
    place = data.draw(st.integers(min_value=0, max_value=len(token) - 1))
    other = data.draw(st.sampled_from(ALPHABET.replace(token[place], "")))
    with pytest.raises(Unauthenticated):
        Signer(key).open(token[:place] + other + token[place + 1 :], NOON)


@given(KEYS, claims())
def test_no_token_that_is_issued_reads_as_an_option(key: bytes, made: Claims) -> None:
    numbers = itertools.count()
    for _ in range(100):
        again, token = Signer(key).issue(
            lambda: msgspec.structs.replace(made, audit_ids=(str(next(numbers)),))
        )
        assert not token.startswith("-")
        assert Signer(key).open(token, NOON) == again


@given(KEYS, KEYS, claims())
def test_another_key_opens_nothing(key: bytes, other: bytes, made: Claims) -> None:
    if key == other:
        return
    with pytest.raises(Unauthenticated):
        Signer(other).open(Signer(key).sign(made), NOON)


@given(KEYS, claims(), st.integers(min_value=0, max_value=2**40))
def test_a_token_ends(key: bytes, made: Claims, later_us: int) -> None:
    token = Signer(key).sign(made)
    just_before = moment(made.expires_us) - timedelta(microseconds=1)
    assert Signer(key).open(token, just_before) == made
    with pytest.raises(Unauthenticated):
        Signer(key).open(token, moment(made.expires_us) + timedelta(microseconds=later_us))


@given(KEYS, st.text(max_size=2000) | st.text(alphabet=ALPHABET, max_size=2000))
def test_no_other_text_is_a_token(key: bytes, text: str) -> None:
    with pytest.raises(Unauthenticated):
        Signer(key).open(text, NOON)


@given(KEYS, st.integers(min_value=1, max_value=2**33), st.integers(min_value=0, max_value=2**40))
def test_what_a_wrong_clock_made_lasts_no_longer_than_twice(
    key: bytes, lasts_us: int, ahead_us: int
) -> None:
    issued_us = microseconds(NOON) + ahead_us
    made = Claims(("a",), "user", None, (), issued_us, issued_us + lasts_us, 0)
    signer = Signer(key)
    token = signer.sign(made)
    if ahead_us <= lasts_us + SKEW_US:
        assert signer.open(token, NOON) == made
    else:
        with pytest.raises(Unauthenticated):
            signer.open(token, NOON)
