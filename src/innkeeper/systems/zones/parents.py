"""Zone parents: the zones above this zone, with their rights and secrets.

A zone is one installation of this service. A zone parent sends requests to this zone.

Always true: a secret is shown once, when it is created, and is stored encrypted. A request of a
parent has at most the roles that this zone granted to the parent. The request may write only if one
of these roles allows writing. The ids of the request's projects and users get the parent's prefix.
So the request cannot reach resources of this zone's own users, or of other parents. If a request
writes, its id is accepted only once.

Source: ADR 0037.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from msgspec.structs import replace

from innkeeper.domain import hops, key_rings
from innkeeper.domain.compute import UNLIMITED
from innkeeper.domain.errors import AlreadyExists, Invalid, NotFound, Unauthenticated
from innkeeper.domain.hops import HopClaims
from innkeeper.domain.identity import RequestContext
from innkeeper.domain.ids import IdSource, is_uuid, secret_bytes
from innkeeper.domain.zone_tree import Hop, ZoneParent
from innkeeper.store.queries.zones import parents
from innkeeper.store.transactions import Tx
from innkeeper.systems.identity import secret_boxes
from innkeeper.systems.identity.secret_boxes import NoSuchKey, SecretBox, Spoilt

ANCESTORS_MAX = 16
"""The maximum number of stored ancestors. A tree has fewer levels."""
DEFAULT_ROLES = ("member", "reader")


@dataclass(frozen=True, slots=True)
class KnownParent:
    """A zone parent, with the secret that checks its tokens."""

    parent: ZoneParent
    secret: str


def create(
    tx: Tx,
    name: str,
    roles: Sequence[str],
    limits: Mapping[str, int],
    *,
    box: SecretBox,
    ids: IdSource,
    now: datetime,
) -> tuple[ZoneParent, str]:
    """Create a zone parent. Return the parent and its secret.

    Raises :class:`Invalid` for an unusable name. Raises :class:`AlreadyExists` if the name is in
    use.
    """
    if hops.PARENT_NAME.fullmatch(name) is None:
        raise Invalid(
            "The name of a zone parent must have 1 to 64 letters, digits, dots, dashes and "
            "underscores, and begin with a letter or a digit."
        )
    # Some databases ignore case when they compare the prefixes of ids.
    if any(each.name.lower() == name.lower() for each in parents.every(tx)):
        raise AlreadyExists(f"A zone parent named {name} already exists.")
    made = ZoneParent(
        id=0,
        uuid=ids.uuid(),
        name=name,
        roles=tuple(roles),
        servers_max=limits.get("servers_max", UNLIMITED),
        vcpus_max=limits.get("vcpus_max", UNLIMITED),
        memory_mb_max=limits.get("memory_mb_max", UNLIMITED),
        is_enabled=True,
        created_at=now,
        updated_at=now,
    )
    parents.add(tx, made)
    return get(tx, made.uuid), _new_secret(tx, made, box, ids, now)


by_name = parents.by_name


def get(tx: Tx, uuid: str) -> ZoneParent:
    """Return a zone parent. Raises :class:`NotFound`."""
    found = parents.by_uuid(tx, uuid)
    if found is None:
        raise NotFound(f"Zone parent {uuid} could not be found.")
    return found


def listing(tx: Tx) -> list[ZoneParent]:
    """Return all zone parents."""
    return parents.every(tx)


def change(tx: Tx, uuid: str, values: Mapping[str, Any], now: datetime) -> ZoneParent:
    """Change some of a parent's roles, limits and ``is_enabled``. Raises :class:`NotFound`."""
    get(tx, uuid)
    parents.change(tx, uuid, **values, updated_at=now)
    return get(tx, uuid)


def renew_secret(
    tx: Tx, uuid: str, *, box: SecretBox, ids: IdSource, now: datetime
) -> tuple[ZoneParent, str]:
    """Replace a parent's secret. Return the parent and the new secret.

    The old secret is no longer accepted.
    """
    parent = change(tx, uuid, {}, now)
    return parent, _new_secret(tx, parent, box, ids, now)


def delete(tx: Tx, uuid: str) -> None:
    """Delete a zone parent. This zone's administrators can delete the parent's servers later."""
    get(tx, uuid)
    parents.remove(tx, uuid)
    secret_boxes.forget(tx, _secret_name(uuid))


def known(tx: Tx, name: str, box: SecretBox) -> KnownParent:
    """Return an enabled parent with its secret.

    Raises :class:`Unauthenticated` if the parent is unknown or disabled, or if its secret cannot be
    read.
    """
    parent = parents.by_name(tx, name)
    if parent is None or not parent.is_enabled:
        raise Unauthenticated(hops.REFUSED)
    try:
        secret = secret_boxes.read(tx, box, _secret_name(parent.uuid))
    except (NoSuchKey, Spoilt) as error:
        raise Unauthenticated(hops.REFUSED) from error
    if secret is None:
        raise Unauthenticated(hops.REFUSED)
    return KnownParent(parent, secret.decode())


def admitted(claims: HopClaims, parent: ZoneParent) -> RequestContext:
    """Return the request context (project, user, roles) of a parent's request in this zone."""
    caller, prefix = claims.caller, parent.prefix
    hop = Hop(
        claims.id,
        parent,
        claims.method,
        claims.target,
        claims.body_digest,
        claims.expires_at,
        claims.tree,
    )
    return replace(
        caller,
        user_id=prefix + (caller.user_id or ""),
        project_id=None if caller.project_id is None else prefix + caller.project_id,
        roles=parent.admitted(caller.roles),
        hop=hop,
    )


def spend(tx: Tx, hop: Hop, *, is_repeat: bool = False) -> None:
    """Accept the id of a writing request, but only once.

    The transaction that carries out the request must call this function. Raises
    :class:`Unauthenticated` if the id was accepted before. With ``is_repeat``, it does not raise,
    because an earlier commit of the same work may have accepted the id.
    """
    hop_id = f"{hop.parent.id}.{hop.id}"
    if parents.is_spent(tx, hop_id):
        if is_repeat:
            return
        raise Unauthenticated(hops.REFUSED)
    try:
        parents.spend(tx, hop_id, hop.expires_at + timedelta(seconds=hops.SKEW_S))
    except AlreadyExists as error:
        # Another process accepted the id at the same moment.
        raise Unauthenticated(hops.REFUSED) from error


def note_ancestors(tx: Tx, hop: Hop) -> None:
    """Store the zones above this zone, as a parent's poll lists them, to detect cycles."""
    found = parents.by_uuid(tx, hop.parent.uuid)
    above = tuple(each for each in hop.tree.visited[-ANCESTORS_MAX:] if is_uuid(each))
    if found is not None and found.ancestors != above:
        parents.set_ancestors(tx, found.uuid, above)


def ancestors(tx: Tx) -> tuple[str, ...]:
    """Return the random ids of all zones above this zone, as its enabled parents listed them."""
    enabled = [each for each in parents.every(tx) if each.is_enabled]
    return tuple(dict.fromkeys(above for each in enabled for above in each.ancestors))


def prune(tx: Tx, now: datetime) -> int:
    """Forget the ids of requests whose tokens have expired. Return the number of deleted ids."""
    return parents.prune(tx, now)


def _new_secret(tx: Tx, parent: ZoneParent, box: SecretBox, ids: IdSource, now: datetime) -> str:
    secret = key_rings.unpadded_text_of(secret_bytes(ids))
    secret_boxes.keep(tx, box, _secret_name(parent.uuid), secret.encode(), now)
    return secret


def _secret_name(uuid: str) -> str:
    return f"zone_parent.{uuid}"
