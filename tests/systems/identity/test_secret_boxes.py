"""Secrets at rest."""

from __future__ import annotations

import base64
import os

import pytest
import sqlalchemy as sa

from innkeeper.store.queries.identity import identity
from innkeeper.store.tables.identity import secrets
from innkeeper.store.transactions import Store
from innkeeper.systems.identity import secret_boxes
from innkeeper.systems.identity.secret_boxes import NoSuchKey, SecretBox, Spoilt
from tests.support.stores import NOW

SECRET = b"the login of another cloud"
FIRST, SECOND = b"1" * 32, b"2" * 32


def kept(store: Store, name: str) -> str:
    with store.read() as tx:
        return str(tx.execute(sa.select(secrets.c.value).where(secrets.c.name == name)).scalar())


def test_a_kept_secret_can_be_opened_but_not_read(store: Store) -> None:
    secret_box = SecretBox([FIRST], os.urandom)
    with store.write() as tx:
        secret_boxes.keep(tx, secret_box, "pod 1", SECRET, NOW)
        secret_boxes.keep(tx, secret_box, "pod 2", SECRET * 100, NOW)
        secret_boxes.keep(tx, secret_box, "pod 1", SECRET + b"!", NOW)
    with store.read() as tx:
        for name, secret in (("pod 1", SECRET + b"!"), ("pod 2", SECRET * 100)):
            assert secret_box.open(name, identity.secret(tx, name) or "") == secret
        assert identity.secret(tx, "pod 3") is None
    assert SECRET not in base64.urlsafe_b64decode(kept(store, "pod 1").rpartition(".")[2])


OLD_TEXTS = {
    SECRET: "sealed.1.bc6da602b8e6dbef.AAECAwQFBgcICQoLCZ1lB4CFzb7CQgw95zGIWhhyM0VWMKfdVl_jjLnE"
    "QVX0l6Z1CozTudiP",
    SECRET + b"s": "sealed.1.bc6da602b8e6dbef.AAECAwQFBgcICQoLCZ1lB4CFzb7CQgw95zGIWhhyM0VWMKfd"
    "Vl9-UEVgARN6v33ly45XRuZ8kg==",
}
"""Sealed by the first version that sealed secrets, with a counter as nonce."""


@pytest.mark.parametrize("secret", OLD_TEXTS)
def test_a_secret_that_an_older_program_sealed_opens(secret: bytes) -> None:
    secret_box = SecretBox([FIRST, SECOND], lambda size: bytes(range(size)))
    assert secret_box.open("pod 1", OLD_TEXTS[secret]) == secret
    assert secret_box.seal("pod 1", secret) == OLD_TEXTS[secret]


def test_two_seals_of_one_secret_differ() -> None:
    secret_box = SecretBox([FIRST], os.urandom)
    assert secret_box.seal("a", SECRET) != secret_box.seal("a", SECRET)


def test_a_sealed_text_opens_under_its_name_alone() -> None:
    secret_box = SecretBox([FIRST], os.urandom)
    with pytest.raises(Spoilt, match="'b'"):
        secret_box.open("b", secret_box.seal("a", SECRET))


@pytest.mark.parametrize("place", [-1, -20, 26, 30])
def test_a_modified_text_is_detected(place: int) -> None:
    secret_box = SecretBox([FIRST], os.urandom)
    text = secret_box.seal("a", SECRET)
    other = "A" if text[place] != "A" else "B"
    spoilt = text[:place] + other + text[place:][1:]
    with pytest.raises((Spoilt, NoSuchKey)):
        secret_box.open("a", spoilt)
    for cut in ("", "sealed.1.", text[:30], text[:-1], text + "é"):
        with pytest.raises((Spoilt, NoSuchKey)):
            secret_box.open("a", cut)


def test_a_missing_key_is_named() -> None:
    text = SecretBox([FIRST], os.urandom).seal("a", SECRET)
    with pytest.raises(NoSuchKey, match=secret_boxes.key_id(FIRST)):
        SecretBox([SECOND], os.urandom).open("a", text)
    assert SecretBox([SECOND, FIRST], os.urandom).open("a", text) == SECRET
    assert FIRST.hex()[:16] not in text
