"""Child zones: the zones below this zone, and the results of polls.

A zone is one installation of this service. A zone forwards requests to its child zones.

Always true: the secret with which this zone authenticates at a child is stored encrypted, and never
returned. A child is active only if one of its last polls succeeded.

Source: the design *Distributed Scheduler*; ADR 0037.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from innkeeper.domain.errors import Conflict, InUse, Invalid, NotFound
from innkeeper.domain.ids import IdSource
from innkeeper.domain.zone_tree import ChildState, ChildZone
from innkeeper.store.queries.zones import children
from innkeeper.store.transactions import Tx
from innkeeper.systems.identity import secret_boxes
from innkeeper.systems.identity.secret_boxes import SecretBox

ERROR_CHARS_MAX = 1000
WEIGHT_MAX = 1e15
"""The largest offset or scale. With larger numbers, weights would lose digits."""
ZONE_ID = "zone_id"
"""The name of the secret that holds this zone's own random id."""

# Queries that are re-exported unchanged.
every = children.every
found = children.by_uuid
server_counts = children.server_counts


@dataclass(frozen=True, slots=True)
class NewChild:
    """A child zone to add. ``password`` is the secret that the child issued."""

    name: str
    api_url: str
    username: str
    password: str
    weight_offset: float = 0.0
    weight_scale: float = 1.0
    is_enabled: bool = True


@dataclass(frozen=True, slots=True)
class Reached:
    """What a child zone answered about itself when it was contacted."""

    zone_id: str
    latency_ms: float
    capabilities: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Contact:
    """The answer of a child that was contacted before a change.

    ``child`` is the child's row at the time of the contact. If this zone has records of servers in
    the child, the same zone as before must answer, under the same user name, unless
    ``may_be_another`` is True.
    """

    child: ChildZone
    reached: Reached
    may_be_another: bool = False


def check_weights(offset: float, scale: float) -> None:
    """Raise :class:`Invalid` if a weight offset or scale is out of bounds.

    The check also works for integers of any length, and rejects NaN.
    """
    if not -WEIGHT_MAX <= offset <= WEIGHT_MAX:
        raise Invalid(f"weight_offset must be a number between -{WEIGHT_MAX:g} and {WEIGHT_MAX:g}.")
    if not 0 < scale <= WEIGHT_MAX:
        raise Invalid(f"weight_scale must be a number above 0, and at most {WEIGHT_MAX:g}.")


def create(
    tx: Tx, wanted: NewChild, reached: Reached, *, box: SecretBox, ids: IdSource, now: datetime
) -> ChildZone:
    """Add a child zone. The caller has just reached the zone.

    Raises :class:`Conflict` if the zone is a child already.
    """
    check_weights(wanted.weight_offset, wanted.weight_scale)
    _check_new(tx, reached.zone_id, "")
    made = ChildZone(
        id=0,
        uuid=ids.uuid(),
        name=wanted.name,
        api_url=wanted.api_url,
        username=wanted.username,
        weight_offset=wanted.weight_offset,
        weight_scale=wanted.weight_scale,
        is_enabled=wanted.is_enabled,
        is_draining=False,
        created_at=now,
        updated_at=now,
        state=after_success(ChildState(), reached, now),
    )
    children.add(tx, made)
    secret_boxes.keep(tx, box, _secret_name(made.uuid), wanted.password.encode(), now)
    return get(tx, made.uuid)


def get(tx: Tx, uuid: str) -> ChildZone:
    """Return a child zone. Raises :class:`NotFound`."""
    found = children.by_uuid(tx, uuid)
    if found is None:
        raise NotFound(f"Zone {uuid} could not be found.")
    return found


def change(
    tx: Tx,
    uuid: str,
    values: Mapping[str, Any],
    contact: Contact | None,
    *,
    password: str | None,
    box: SecretBox,
    now: datetime,
) -> ChildZone:
    """Set fields of a child zone.

    If the address, user name or password changes, the caller must contact the child first. With
    ``contact``, the state is set from the child's answer. Raises :class:`Conflict` if the child was
    changed meanwhile, if another zone answers, or if this zone has servers in the child under
    another user name.
    """
    child = get(tx, uuid)
    if contact is not None:
        _check_contact(tx, child, contact, values.get("username", child.username))
    check_weights(
        values.get("weight_offset", child.weight_offset),
        values.get("weight_scale", child.weight_scale),
    )
    children.change(tx, uuid, **values, updated_at=now)
    if contact is not None:
        children.record(tx, uuid, after_success(child.state, contact.reached, now))
    if password is not None:
        secret_boxes.keep(tx, box, _secret_name(uuid), password.encode(), now)
    return get(tx, uuid)


def _check_contact(tx: Tx, child: ChildZone, contact: Contact, username: str) -> None:
    if child.updated_at != contact.child.updated_at:
        raise Conflict(f"Zone {child.name} was changed at the same moment. Try again.")
    _check_new(tx, contact.reached.zone_id, child.uuid)
    if contact.may_be_another or not children.has_servers(tx, child.id):
        return
    if username != child.username:
        # In the child, the ids of the servers' projects begin with the user name.
        raise Conflict(
            f"This zone has servers in zone {child.name} under the user name {child.username}, and "
            "cannot reach them under another user name. To give up these servers, repeat the "
            "request with replaced=true. They are then forgotten, even if they still run."
        )
    if child.state.zone_id not in (None, contact.reached.zone_id):
        raise Conflict(
            f"Another zone answers, not the zone that has the servers of zone {child.name}. "
            "If the old zone is lost, repeat the request with replaced=true. The servers that the "
            "new zone does not have are then forgotten."
        )


def _check_new(tx: Tx, zone_id: str, uuid: str) -> None:
    """Raise :class:`Conflict` if another child is the zone that answered.

    ``zone_id`` is the id of the zone that answered, and ``uuid`` is the contacted child. If one
    zone were two children, its servers and its capacity would count twice.
    """
    for other in children.every(tx):
        if other.state.zone_id == zone_id and other.uuid != uuid:
            raise Conflict(
                f"The zone at this address is a child already, with the name {other.name}."
            )


def delete(tx: Tx, uuid: str) -> None:
    """Remove a child zone.

    Raises :class:`InUse` while this zone has records of servers in the child zone.
    """
    child = get(tx, uuid)
    if children.has_servers(tx, child.id):
        raise InUse(f"Zone {child.name} still has servers of this zone's projects.")
    children.remove(tx, uuid)
    secret_boxes.forget(tx, _secret_name(uuid))


def password_of(tx: Tx, child: ChildZone, box: SecretBox) -> str:
    """Return the secret with which this zone authenticates at a child."""
    secret = secret_boxes.read(tx, box, _secret_name(child.uuid))
    if secret is None:
        raise NotFound(f"No password is stored for zone {child.name}. Set the password again.")
    return secret.decode()


def passwords_of(tx: Tx, zones: Sequence[ChildZone], box: SecretBox) -> dict[str, str]:
    """Return the secrets of several child zones, by the child's id.

    See :func:`password_of`. Secrets that cannot be read are left out.
    """
    found = secret_boxes.readable(tx, box, [_secret_name(each.uuid) for each in zones])
    names = {each.uuid: _secret_name(each.uuid) for each in zones}
    return {uuid: found[name].decode() for uuid, name in names.items() if name in found}


def record_success(
    tx: Tx, uuid: str, reached: Reached, now: datetime, *, is_above: bool = False
) -> None:
    """Record a successful poll of a child zone.

    With ``is_above``, the child zone is also above this zone, so the zones form a cycle. The error
    of the child then names the cycle, but the child stays usable. A cycle does no harm, because a
    plan asks no zone twice.
    """
    child = children.by_uuid(tx, uuid)
    if child is not None:
        state = after_success(child.state, reached, now)
        if is_above:
            state = replace(state, last_error="the zone is also above this zone", failed_at=now)
        children.record(tx, uuid, state)


def record_failure(tx: Tx, uuid: str, error: str, failures_max: int, now: datetime) -> None:
    """Record a failed poll.

    After ``failures_max`` failures in a row, the child zone is inactive.
    """
    child = children.by_uuid(tx, uuid)
    if child is not None:
        children.record(tx, uuid, after_failure(child.state, error, failures_max, now))


def fault_of(child: ChildZone, reached: Reached, own_id: str) -> str | None:
    """Return why a child that answered a poll must not be used, or ``None`` if it is usable."""
    if reached.zone_id == own_id:
        return "the zone is this zone itself"
    if child.state.zone_id not in (None, reached.zone_id):
        return "another zone answers at this address. If this is intended, set the address again."
    return None


def after_success(state: ChildState, reached: Reached, now: datetime) -> ChildState:
    """Return the state of a child after a poll that succeeded."""
    return replace(
        state,
        zone_id=reached.zone_id,
        is_active=True,
        last_seen_at=now,
        latency_ms=reached.latency_ms,
        failures=0,
        capabilities=reached.capabilities,
    )


def after_failure(state: ChildState, error: str, failures_max: int, now: datetime) -> ChildState:
    """Return the state of a child after a poll that failed."""
    failures = state.failures + 1
    return replace(
        state,
        last_error=error[:ERROR_CHARS_MAX],
        failed_at=now,
        failures=failures,
        is_active=state.is_active and failures < failures_max,
    )


def own_zone_id(tx: Tx, box: SecretBox, ids: IdSource, now: datetime) -> str:
    """Return the random id of this zone, which is used to detect cycles.

    The first call creates the id.
    """
    found = secret_boxes.read(tx, box, ZONE_ID)
    if found is None:
        found = ids.uuid().encode()
        secret_boxes.keep(tx, box, ZONE_ID, found, now)
    return found.decode()


def _secret_name(uuid: str) -> str:
    return f"child_zone.{uuid}"
