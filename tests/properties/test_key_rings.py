"""A text is canonical base64 if decoding and encoding it gives the same text."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from innkeeper.domain.key_rings import NotOpened, is_unpadded, unpadded_bytes_of, unpadded_text_of

TEXTS = st.text(alphabet="ABQRwxYZ0189-_=+/ \né", max_size=9)


@given(st.binary(max_size=99))
def test_what_was_encoded_is_canonical(raw: bytes) -> None:
    text = unpadded_text_of(raw)
    assert is_unpadded(text)
    assert unpadded_bytes_of(text) == raw


@given(TEXTS)
def test_any_other_text_is_not(text: str) -> None:
    try:
        raw = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except ValueError:
        is_canonical = False
    else:
        is_canonical = unpadded_text_of(raw) == text
    assert is_unpadded(text) == is_canonical
    if not is_canonical:
        with pytest.raises(NotOpened):
            unpadded_bytes_of(text)
