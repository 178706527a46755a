"""Resizes of servers in child zones. The request to the child also describes the new flavor.

Always true: during a resize, this zone counts the larger amounts of the old and the new flavor, as
for its own servers. This begins before the child is asked. After the child has confirmed or
reverted the resize, this zone counts the amounts that the child reports. If the child gives no
answer, this zone counts the larger amounts for as long as the request may still reach the child.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import msgspec

from innkeeper.domain.compute import Flavor
from innkeeper.domain.converters import converter_to
from innkeeper.domain.errors import Invalid
from innkeeper.domain.hops import LIFETIME_S, SKEW_S
from innkeeper.domain.identity import RequestContext
from innkeeper.domain.limits import Limits
from innkeeper.domain.zone_tree import ZoneServer
from innkeeper.engine.zones.tree_request import ZONE
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.boot import definitions
from innkeeper.systems.compute.flavors import flavors
from innkeeper.systems.compute.servers import zone_servers
from innkeeper.systems.compute.servers.zone_servers import ResizeBelow

RESIZE, FLAVOR = "resize", "flavor"
_flavors = converter_to(dict[str, Flavor])


@dataclass(frozen=True, slots=True)
class ForwardedResize:
    """A resize to send to a child: its body, and what counts against the quota."""

    body: bytes
    counted: ResizeBelow


@dataclass(frozen=True, slots=True)
class _Wanted:
    """A resize as the client sent it. ``told`` is the flavor that a zone parent has described."""

    arguments: Mapping[str, object]
    flavor_id: str
    told: Flavor | None


def wanted(arguments: object, caller: RequestContext) -> _Wanted | None:
    """Return the resize with these arguments, or ``None`` if they are malformed.

    In this case, the child reports the error.

    Raises the errors of :func:`told_flavor`.
    """
    named = arguments.get("flavorRef") if isinstance(arguments, dict) else None
    if not isinstance(arguments, dict) or not isinstance(named, str | int):
        return None
    flavor_id = str(named).rpartition("/")[2]
    told = told_flavor(arguments.get(ZONE), flavor_id, is_of_parent=caller.hop is not None)
    return _Wanted(arguments, flavor_id, told)


def told_flavor(told: object, flavor_id: str, *, is_of_parent: bool) -> Flavor | None:
    """Return the flavor that a zone parent sends with a resize, or ``None`` for other callers.

    Raises :class:`Invalid` if the flavor is unusable, if a zone parent sends no flavor, or if
    another caller sends a flavor. This zone must not use its own flavor with the same id instead,
    because the parent has counted the flavor that it sends against its quota.
    """
    if told is None:
        if is_of_parent:
            raise Invalid("A resize of a zone parent must come with the new flavor's definition.")
        return None
    if not is_of_parent:
        raise Invalid("Only zone parents may send the key 'zone'.")
    try:
        flavor = _flavors(told)[FLAVOR]
    except (KeyError, msgspec.ValidationError, RecursionError) as error:
        raise Invalid(f"The definitions are invalid: {error}.") from error
    definitions.check_flavor(flavor, flavor_id)
    return flavor


def may_begin_until(now: datetime, timeout_s: float) -> datetime:
    """Return until when a child may begin a resize that is sent now.

    The request may wait for its turn for as long as the child has for an answer. Afterwards, the
    child accepts the request until the request's token expires.
    """
    return now + timedelta(seconds=timeout_s + LIFETIME_S + SKEW_S)


def begin(
    tx: Tx,
    server: ZoneServer,
    resize: _Wanted,
    caller: RequestContext,
    default: Limits,
    until: datetime,
) -> ForwardedResize:
    """Count the larger amounts against the quota. Return the resize to send to the child.

    Raises :class:`Invalid` if the project cannot use the flavor, :class:`QuotaExceeded`, and
    :class:`NotFound` if the server is gone.
    """
    flavor = resize.told
    if flavor is None:
        flavor = flavors.for_resize(
            tx, resize.flavor_id, server.project_id, is_admin=caller.is_admin
        )
    amounts = flavor.vcpus, flavor.memory_mb
    counted = zone_servers.begin_resize(tx, server.uuid, amounts, until, default)
    # The child must not get this zone's row id.
    plain = msgspec.to_builtins(replace(flavor, id=0))
    told = {**resize.arguments, ZONE: {FLAVOR: plain}}
    return ForwardedResize(msgspec.json.encode({RESIZE: told}), counted)
