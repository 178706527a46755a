"""Tokens: signed, ending, revocable; a token says whom it is for and nothing secret.

A token is the text of a few claims and their HMAC-SHA256 under a key that all processes of
one database share. Who has no key cannot make one; who has one token cannot make another.

Always true: the claims alone never open a door. ``holder`` compares them with the store: the
user and the project are enabled, the user has a role there, its stamp is the user's present
one, and neither the token is revoked nor any of those by way of which it was got.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import msgspec

from innkeeper.domain.errors import Unauthenticated
from innkeeper.domain.identity import TokenOwner
from innkeeper.store.queries.identity import identity
from innkeeper.store.transactions import Tx
from innkeeper.systems.identity import secret_boxes
from innkeeper.systems.identity.secret_boxes import SecretBox

TOKEN_LENGTH_MAX = 1024
"""Longer text is refused before it costs anything; ours are some 250 characters, and some 50
more for every token by way of which they were got."""
CHAIN_MAX = 12
"""Tokens in a row that were each got by the one before. Whoever needs more logs in again, so
that a token stays short enough for a header."""
SKEW_US = 300_000_000
"""By how much the clocks of two machines may differ without anybody being logged out."""
KEY_NAME = "token_signing"
KEY_BYTES = 32
_PURPOSE = b"innkeeper token 1\x00"
"""Part of what is signed: the key's signatures for anything else are no tokens."""
_MAC_BYTES = hashlib.sha256().digest_size
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - the core's clock is naive and in UTC
_US = timedelta(microseconds=1)

PASSWORD = "password"  # noqa: S105 - the name of a way to log in
TOKEN = "token"  # noqa: S105 - likewise
WRONG_TOKEN = "The token is not valid."  # noqa: S105 - a message


class Claims(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """What a token says. Moments are microseconds since 1970.

    ``audit_ids`` are the token's own id and, if it was got by another token, that one's, and so
    on to the one that was got by a password.
    """

    audit_ids: tuple[str, ...]
    user_id: str
    project_id: str | None
    methods: tuple[str, ...]
    issued_us: int
    expires_us: int
    stamp_us: int

    @property
    def issued_at(self) -> datetime:
        """When the token was made."""
        return moment(self.issued_us)

    @property
    def expires_at(self) -> datetime:
        """When the token ends by itself."""
        return moment(self.expires_us)


def microseconds(when: datetime) -> int:
    """A moment as a number."""
    return (when - _EPOCH) // _US


def moment(us: int) -> datetime:
    """A number as a moment."""
    return _EPOCH + us * _US


def claims_for(
    holder: TokenOwner,
    audit_id: str,
    *,
    methods: tuple[str, ...] = (PASSWORD,),
    now: datetime,
    lifetime_s: float,
    parent: Claims | None = None,
) -> Claims:
    """The claims of a new token. Got by another token, it ends when that one does.

    Raises :class:`Unauthenticated` where that one is at the end of a chain too long.
    """
    chain = () if parent is None else parent.audit_ids
    if len(chain) >= CHAIN_MAX:
        raise Unauthenticated("The token was got by too many others. Please log in again.")
    expires_us = microseconds(now + timedelta(seconds=lifetime_s))
    if parent is not None:
        expires_us = min(expires_us, parent.expires_us)
    return Claims(
        audit_ids=(audit_id, *chain),
        user_id=holder.user.id,
        project_id=None if holder.project is None else holder.project.id,
        methods=methods,
        issued_us=microseconds(now),
        expires_us=expires_us,
        stamp_us=microseconds(holder.user.tokens_valid_from),
    )


class Signer:
    """Makes and opens tokens with one key."""

    def __init__(self, key: bytes) -> None:
        assert len(key) >= KEY_BYTES, "a short key can be guessed"
        self._mac = hmac.new(key, _PURPOSE, hashlib.sha256)
        self._decoder = msgspec.msgpack.Decoder(Claims)

    def sign(self, claims: Claims) -> str:
        """Make a token."""
        payload = msgspec.msgpack.encode(claims)
        return _text(self._sealed(payload) + payload)

    def issue(self, make: Callable[[], Claims]) -> tuple[Claims, str]:
        """Make a token for a client, of claims with another id each time they are asked for.

        None begins with a hyphen: a command that is given such a word takes it for an option.
        """
        claims = make()
        while (token := self.sign(claims)).startswith("-"):
            claims = make()
        return claims, token

    def open(self, token: str, now: datetime) -> Claims:
        """Give a token's claims; raises :class:`Unauthenticated` unless we signed them.

        A token that has ended is refused as well, and one that was made further in the future
        than it lasts. Nothing is said about the present: see
        :func:`holder`.
        """
        raw = _bytes(token)
        sealed, payload = raw[:_MAC_BYTES], raw[_MAC_BYTES:]
        if not hmac.compare_digest(sealed, self._sealed(payload)):
            raise Unauthenticated(WRONG_TOKEN)
        try:
            claims = self._decoder.decode(payload)
        except msgspec.DecodeError as error:
            # Signed, but of another time of this program.
            raise Unauthenticated(WRONG_TOKEN) from error
        now_us = microseconds(now)
        # Made by a clock that was wrong: it would not end for as long as that was ahead.
        lasts_us = claims.expires_us - claims.issued_us
        is_of_the_future = claims.issued_us - now_us > lasts_us + SKEW_US
        if claims.expires_us <= now_us or is_of_the_future:
            raise Unauthenticated(WRONG_TOKEN)
        return claims

    def _sealed(self, payload: bytes) -> bytes:
        mac = self._mac.copy()
        mac.update(payload)
        return mac.digest()


def _text(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def _bytes(token: str) -> bytes:
    if len(token) > TOKEN_LENGTH_MAX:
        raise Unauthenticated(WRONG_TOKEN)
    try:
        raw = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
    except (ValueError, binascii.Error) as error:
        raise Unauthenticated(WRONG_TOKEN) from error
    # Several texts decode to the same bytes. Only one of them is the token.
    if _text(raw) != token:
        raise Unauthenticated(WRONG_TOKEN)
    return raw


def holder(tx: Tx, claims: Claims) -> TokenOwner:
    """Whom a token stands for now; raises :class:`Unauthenticated` if it is void."""
    user = identity.user_of_token(tx, claims.user_id, claims.audit_ids)
    is_void = (
        user is None
        or not user.is_enabled
        or microseconds(user.tokens_valid_from) != claims.stamp_us
    )
    if user is None or is_void:
        raise Unauthenticated(WRONG_TOKEN)
    if claims.project_id is None:
        return TokenOwner(user)
    project = identity.project(tx, claims.project_id)
    roles = tuple(identity.roles_of(tx, user.id, claims.project_id))
    if project is None or not project.is_enabled or not roles:
        raise Unauthenticated(WRONG_TOKEN)
    return TokenOwner(user, project, roles)


def revoke(tx: Tx, claims: Claims, *, now: datetime) -> None:
    """Void a token for good, and all that were got by way of it; doing it twice is well."""
    identity.prune_revoked_tokens(tx, now)
    identity.revoke_token(tx, claims.audit_ids[0], claims.expires_at)


def signing_key(
    tx: Tx, secret_box: Callable[[], SecretBox], *, draw: Callable[[int], bytes], now: datetime
) -> bytes:
    """The key that all processes of this database share; made and sealed at the first call.

    One that an older program left unsealed is used as it is: others of that program may be
    at work, and :func:`seal_signing_key` is for when they are gone.
    """
    text = identity.secret(tx, KEY_NAME)
    if text is None:
        key = draw(KEY_BYTES)
        secret_boxes.keep(tx, secret_box(), KEY_NAME, key, now)
        return key
    return (
        secret_box().open(KEY_NAME, text) if secret_boxes.is_sealed(text) else bytes.fromhex(text)
    )


def is_signing_key_open(tx: Tx) -> bool:
    """Whether the key lies unsealed in the database, as an older program left it."""
    text = identity.secret(tx, KEY_NAME)
    return text is not None and not secret_boxes.is_sealed(text)


def seal_signing_key(tx: Tx, secret_box: SecretBox, now: datetime) -> bool:
    """Seal the key if it is not; tell whether it was to be done."""
    text = identity.secret(tx, KEY_NAME)
    if text is None or secret_boxes.is_sealed(text):
        return False
    secret_boxes.keep(tx, secret_box, KEY_NAME, bytes.fromhex(text), now)
    return True


def mint(tx: Tx, signer: Signer, user_name: str, project_name: str, **more: Any) -> str:
    """Make a token for a user of this service's own, without a password.

    ``more`` goes to :func:`claims_for`. Raises :class:`Unauthenticated` where user and project
    would not get a token by a password either.
    """
    users = identity.find_users(tx, name=user_name, is_enabled=True)
    projects = identity.find_projects(tx, name=project_name, is_enabled=True)
    if not users or not projects:
        raise Unauthenticated(f"There is no user {user_name!r} on {project_name!r}.")
    roles = tuple(identity.roles_of(tx, users[0].id, projects[0].id))
    if not roles:
        raise Unauthenticated(f"The user {user_name!r} has no role on {project_name!r}.")
    return signer.sign(claims_for(TokenOwner(users[0], projects[0], roles), **more))
