"""Hop tokens, with which a zone signs its users' requests to a child zone.

A hop is the step of a request from a zone to a child zone.

Always true: a token is valid for one method, one target (the path and query) and one body, for at
most ``LIFETIME_S``. Without the secret that the two zones share, no token can be made or changed.
All texts and numbers in a token are bounded, so a zone parent cannot make later code fail with
values that are too large.

A token can arrive more than once. For a request that writes, the receiver must accept the id of a
token only once. Source: ADR 0037.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from dataclasses import dataclass
from datetime import datetime, timedelta

import msgspec

from innkeeper.domain import key_rings
from innkeeper.domain.errors import Unauthenticated
from innkeeper.domain.identity import RequestContext
from innkeeper.domain.ids import UUID_PATTERN
from innkeeper.domain.key_rings import NotOpened
from innkeeper.domain.zone_tree import TreeRequest

FORM = "hop."
"""The prefix of hop tokens. No other token has it."""
LENGTH_MAX = 8192
"""The maximum length of a token. Longer text is refused without decoding."""
LIFETIME_S = 60.0
SKEW_S = 30.0
"""The largest tolerated difference between the clocks of two zones."""
REFUSED = "The request of the zone parent is not valid."
PARENT_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
"""The pattern of zone parents' names. A name has no colon, because a colon separates the name from
an id."""
OWNER_CHARS_MAX = 180
"""The maximum length of ids of users and projects. The database has room for such an id with the
prefix of its zone parent."""
NAME_CHARS_MAX = 255
VISITED_MAX = 16
TARGET_CHARS_MAX = 1024
"""The maximum length of a target in a token. For a longer target, the token has the digest of the
target instead. With a greater maximum, a token with the longest names and ids would exceed
:data:`LENGTH_MAX`."""
_ID = re.compile(r"[0-9a-f]{32}")
_OWNER = re.compile(rf"[^\0]{{0,{OWNER_CHARS_MAX}}}", re.DOTALL)
_OWNER_NAME = re.compile(rf"[^\0]{{0,{NAME_CHARS_MAX}}}", re.DOTALL)
_LINK_HOST = re.compile(r"[0-9a-z-]{1,63}\.invalid")
_PURPOSE = b"innkeeper hop 1\x00"
_DIGESTED = "sha256:"
"""The prefix of the digest of a target. A target that is not a digest begins with a slash."""
_ESCAPE = re.compile("%([0-9A-Fa-f]{2})")
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_MAC_BYTES = hashlib.sha256().digest_size
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - the core's clock is naive and in UTC
_US = timedelta(microseconds=1)


class _Content(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    parent_name: str
    id: str
    issued_us: int
    expires_us: int
    method: str
    target: str
    body_digest: str
    user_id: str
    user_name: str | None
    project_id: str | None
    project_name: str | None
    roles: tuple[str, ...]
    tree_id: str
    visited: tuple[str, ...]
    hops_left: int
    time_left_ms: int
    link_host: str


_DECODER = msgspec.msgpack.Decoder(_Content)


@dataclass(frozen=True, slots=True)
class HopClaims:
    """The content of a token: the caller in the zone parent, and the signed request.

    ``target`` is the path with the query, or the digest of both; see :func:`signed_target`. ``id``
    is a random text.
    """

    parent_name: str
    id: str
    issued_at: datetime
    expires_at: datetime
    method: str
    target: str
    body_digest: str
    caller: RequestContext
    tree: TreeRequest


def digest_of(body: bytes) -> str:
    """Return the digest of a request's body."""
    return hashlib.sha256(body).hexdigest()


def signed_target(target: str) -> str:
    """Return a target in the form that it has in tokens. A long target is replaced by its
    digest."""
    return target if len(target) <= TARGET_CHARS_MAX else _digested(target)


def is_for(target: str, signed: str) -> bool:
    """Return whether a token that contains ``signed`` is valid for a request with this target."""
    if signed.startswith(_DIGESTED):
        return _digested(target) == signed
    return target == signed or normal_target(target) == normal_target(signed)


def normal_target(target: str) -> str:
    """Return a path and query in normal form.

    Both zones use the normal form, because a proxy between them may change which characters are
    escaped. The function decodes the escapes of unreserved characters (RFC 3986, section 6.2.2).
    Other escapes stay, because they change the meaning: ``%3D`` within a value differs from ``=``.
    """
    return _ESCAPE.sub(_normal_escape, target)


def _normal_escape(found: re.Match[str]) -> str:
    char = chr(int(found[1], 16))
    return char if char in _UNRESERVED else found[0].upper()


def _digested(target: str) -> str:
    return _DIGESTED + digest_of(normal_target(target).encode())


def is_one(text: str) -> bool:
    """Return whether a text has the prefix of hop tokens. The token may still be invalid."""
    return text.startswith(FORM)


def sign(claims: HopClaims, secret: str) -> str:
    """Return a token with these claims, signed with the secret of the two zones."""
    caller, tree = claims.caller, claims.tree
    content = msgspec.msgpack.encode(
        _Content(
            claims.parent_name,
            claims.id,
            (claims.issued_at - _EPOCH) // _US,
            (claims.expires_at - _EPOCH) // _US,
            claims.method,
            claims.target,
            claims.body_digest,
            caller.user_id or "",
            caller.user_name,
            caller.project_id,
            caller.project_name,
            tuple(sorted(caller.roles)),
            tree.request_id,
            tree.visited,
            tree.hops_left,
            tree.time_left_ms,
            tree.link_host,
        )
    )
    return FORM + key_rings.unpadded_text_of(_mac(content, secret) + content)


def name_in(token: str) -> str:
    """Return the name of the zone parent in a token, without checking the signature.

    Raises :class:`Unauthenticated` if the text is not a token.
    """
    _, (_, content) = _parts(token)
    if PARENT_NAME.fullmatch(content.parent_name) is None:
        raise Unauthenticated(REFUSED)
    return content.parent_name


def opened(token: str, secret: str, now: datetime) -> HopClaims:
    """Return the claims of a token.

    Raises :class:`Unauthenticated` if the token was not signed with this secret, has expired, or is
    not valid yet.
    """
    mac, (raw, content) = _parts(token)
    if not (hmac.compare_digest(mac, _mac(raw, secret)) and _is_plausible(content)):
        raise Unauthenticated(REFUSED)
    try:
        issued_at, expires_at = _moment(content.issued_us), _moment(content.expires_us)
    except OverflowError as error:
        raise Unauthenticated(REFUSED) from error
    skew, lifetime = timedelta(seconds=SKEW_S), timedelta(seconds=LIFETIME_S)
    is_short = expires_at - issued_at <= lifetime
    if not (is_short and issued_at <= now + skew and now < expires_at + skew):
        raise Unauthenticated(REFUSED)
    caller = RequestContext(
        request_id="",
        user_id=content.user_id,
        user_name=content.user_name,
        project_id=content.project_id,
        project_name=content.project_name,
        roles=frozenset(content.roles),
    )
    tree = TreeRequest(
        content.tree_id, content.visited, content.hops_left, content.time_left_ms, content.link_host
    )
    return HopClaims(
        content.parent_name,
        content.id,
        issued_at,
        expires_at,
        content.method,
        content.target,
        content.body_digest,
        caller,
        tree,
    )


def _parts(token: str) -> tuple[bytes, tuple[bytes, _Content]]:
    if len(token) > LENGTH_MAX or not is_one(token):
        raise Unauthenticated(REFUSED)
    try:
        raw = key_rings.unpadded_bytes_of(token.removeprefix(FORM))
        mac, content = raw[:_MAC_BYTES], raw[_MAC_BYTES:]
        return mac, (content, _DECODER.decode(content))
    except (NotOpened, msgspec.MsgspecError, ValueError) as error:
        raise Unauthenticated(REFUSED) from error


def _is_plausible(content: _Content) -> bool:
    owners, names = (content.user_id, content.project_id), (content.user_name, content.project_name)
    zones = content.tree_id, *content.visited
    return (
        _ID.fullmatch(content.id) is not None
        and all(_OWNER.fullmatch(each or "") is not None for each in owners)
        and all(_OWNER_NAME.fullmatch(each or "") is not None for each in names)
        and len(content.visited) <= VISITED_MAX
        and all(UUID_PATTERN.fullmatch(each) is not None for each in zones)
        and _LINK_HOST.fullmatch(content.link_host) is not None
    )


def _mac(content: bytes, secret: str) -> bytes:
    return hmac.digest(secret.encode(), _PURPOSE + content, "sha256")


def _moment(us: int) -> datetime:
    return _EPOCH + us * _US
