"""Issue, check and revoke signed tokens. Tokens expire, and contain nothing secret.

A token consists of claims and their HMAC-SHA256. All processes of one database share the key.
Without the key, no token can be created or altered.

Always true: the claims alone grant nothing, because ``holder`` compares them with the store. The
user and the project must be enabled, and the user must have a role on the project. The token must
have the user's current stamp, which changes when the user's tokens are revoked. A token is not
valid if it was revoked, or derived from a revoked token.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import msgspec

from innkeeper.domain import key_rings
from innkeeper.domain.errors import Unauthenticated
from innkeeper.domain.identity import TokenOwner
from innkeeper.domain.key_rings import NotOpened
from innkeeper.store.queries.identity import identity
from innkeeper.store.transactions import Tx
from innkeeper.systems.identity import secret_boxes
from innkeeper.systems.identity.secret_boxes import SecretBox

TOKEN_LENGTH_MAX = 1024
"""The maximum length of a token. Longer text is refused without decoding. A token has about 250
characters. Each token in its chain of parents adds about 50."""
CHAIN_MAX = 12
"""The maximum length of a chain of tokens in which each token is derived from the one before.

The last token of a chain must fit in an HTTP header."""
SKEW_US = 300_000_000
"""Tokens are accepted if the clocks of two machines differ by at most this many µs."""
KEY_NAME = "token_signing"
KEY_BYTES = 32
_PURPOSE = b"innkeeper token 1\x00"
"""A prefix of the signed data. A signature that the key makes for another purpose is therefore
never a valid token."""
_MAC_BYTES = hashlib.sha256().digest_size
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - the core's clock is naive and in UTC
_US = timedelta(microseconds=1)

PASSWORD = "password"  # noqa: S105 - the name of a way to log in
TOKEN = "token"  # noqa: S105 - likewise
WRONG_TOKEN = "The token is not valid."  # noqa: S105 - a message


class Claims(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The content of a token. Times are microseconds since 1970.

    ``audit_ids`` begin with the token's own id. For a derived token, the ids of its ancestors
    follow, from its parent to the token that was issued for a password.
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
        return moment(self.issued_us)

    @property
    def expires_at(self) -> datetime:
        return moment(self.expires_us)


def microseconds(when: datetime) -> int:
    return (when - _EPOCH) // _US


def moment(us: int) -> datetime:
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
    """Return the claims of a new token. A derived token expires no later than its parent.

    Raises :class:`Unauthenticated` if the chain of parents is too long.
    """
    chain = () if parent is None else parent.audit_ids
    if len(chain) >= CHAIN_MAX:
        raise Unauthenticated("Too many tokens were derived in a row. Please log in again.")
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


_DECODER = msgspec.msgpack.Decoder(Claims)


class Signer:
    """Signs and opens tokens with one key."""

    def __init__(self, key: bytes) -> None:
        assert len(key) >= KEY_BYTES, "a short key can be guessed"
        self._mac = hmac.new(key, _PURPOSE, hashlib.sha256)

    def sign(self, claims: Claims) -> str:
        payload = msgspec.msgpack.encode(claims)
        return key_rings.unpadded_text_of(self._sealed(payload) + payload)

    def issue(self, make: Callable[[], Claims]) -> tuple[Claims, str]:
        """Return new claims from ``make``, and the token that contains them.

        A token must not begin with a hyphen, because commands would take the token for an option.
        So ``make`` is called again until the token begins with another character. Each call must
        return claims with a new id.
        """
        claims = make()
        while (token := self.sign(claims)).startswith("-"):
            claims = make()
        return claims, token

    def open(self, token: str, now: datetime) -> Claims:
        """Return a token's claims.

        Raises :class:`Unauthenticated` if this key did not sign the token, or if the token has
        expired. Also raises :class:`Unauthenticated` if the time of issue is ahead of ``now`` by
        more than the token's lifetime plus :data:`SKEW_US`. :func:`holder` checks whether the
        claims are still valid.
        """
        if len(token) > TOKEN_LENGTH_MAX:
            raise Unauthenticated(WRONG_TOKEN)
        try:
            raw = key_rings.unpadded_bytes_of(token)
        except NotOpened as error:
            raise Unauthenticated(WRONG_TOKEN) from error
        sealed, payload = raw[:_MAC_BYTES], raw[_MAC_BYTES:]
        if not hmac.compare_digest(sealed, self._sealed(payload)):
            raise Unauthenticated(WRONG_TOKEN)
        try:
            claims = _DECODER.decode(payload)
        except msgspec.DecodeError as error:
            # The token was signed by a release with another format.
            raise Unauthenticated(WRONG_TOKEN) from error
        now_us = microseconds(now)
        # If the clock of the issuing machine was far ahead, the token would last too long.
        lasts_us = claims.expires_us - claims.issued_us
        is_of_the_future = claims.issued_us - now_us > lasts_us + SKEW_US
        if claims.expires_us <= now_us or is_of_the_future:
            raise Unauthenticated(WRONG_TOKEN)
        return claims

    def _sealed(self, payload: bytes) -> bytes:
        mac = self._mac.copy()
        mac.update(payload)
        return mac.digest()


def holder(tx: Tx, claims: Claims) -> TokenOwner:
    """Return the current owner of a token. Raises :class:`Unauthenticated` for an invalid token."""
    user = identity.user_of_token(tx, claims.user_id, claims.audit_ids)
    if user is None or not user.is_enabled:
        raise Unauthenticated(WRONG_TOKEN)
    if microseconds(user.tokens_valid_from) != claims.stamp_us:
        raise Unauthenticated(WRONG_TOKEN)
    if claims.project_id is None:
        return TokenOwner(user)
    project = identity.project(tx, claims.project_id)
    roles = tuple(identity.roles_of(tx, user.id, claims.project_id))
    if project is None or not project.is_enabled or not roles:
        raise Unauthenticated(WRONG_TOKEN)
    return TokenOwner(user, project, roles)


def revoke(tx: Tx, claims: Claims, *, now: datetime) -> None:
    """Revoke a token, and all tokens that were derived from it. This is idempotent."""
    identity.prune_revoked_tokens(tx, now)
    identity.revoke_token(tx, claims.audit_ids[0], claims.expires_at)


def signing_key(
    tx: Tx, secret_box: Callable[[], SecretBox], *, draw: Callable[[int], bytes], now: datetime
) -> bytes:
    """Return the signing key that all processes of this database share.

    The first call creates the key, and stores it encrypted (sealed). An older release may have
    stored the key unsealed. This function leaves such a key unsealed, because processes of that
    release may be running. :func:`seal_signing_key` seals the key later.
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
    """Return True if an older release has stored the signing key unencrypted (unsealed)."""
    text = identity.secret(tx, KEY_NAME)
    return text is not None and not secret_boxes.is_sealed(text)


def seal_signing_key(tx: Tx, secret_box: SecretBox, now: datetime) -> bool:
    """Encrypt (seal) the stored signing key. Return False if the key is already sealed."""
    text = identity.secret(tx, KEY_NAME)
    if text is None or secret_boxes.is_sealed(text):
        return False
    secret_boxes.keep(tx, secret_box, KEY_NAME, bytes.fromhex(text), now)
    return True


def mint(tx: Tx, signer: Signer, user_name: str, project_name: str, **more: Any) -> str:
    """Create a token for one of this service's own users, without a password.

    ``more`` is passed to :func:`claims_for`. Raises :class:`Unauthenticated` if the user or the
    project is missing or disabled, or the user has no role on the project.
    """
    users = identity.find_users(tx, name=user_name, is_enabled=True)
    projects = identity.find_projects(tx, name=project_name, is_enabled=True)
    if not users or not projects:
        raise Unauthenticated(
            f"The user {user_name!r} or the project {project_name!r} does not exist or is disabled."
        )
    roles = tuple(identity.roles_of(tx, users[0].id, projects[0].id))
    if not roles:
        raise Unauthenticated(
            f"The user {user_name!r} has no role on the project {project_name!r}."
        )
    return signer.sign(claims_for(TokenOwner(users[0], projects[0], roles), **more))
