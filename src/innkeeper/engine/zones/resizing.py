"""Resizes of servers in child zones. The request to the child also describes the new flavor.

Always true: during a resize, this zone counts the larger amounts of the old and the new flavor, as
for its own servers. This begins before the child is asked. After the child has confirmed or
reverted the resize, this zone counts the amounts that the child reports.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

import msgspec

from innkeeper.domain.compute import Flavor
from innkeeper.domain.converters import converter_to
from innkeeper.domain.errors import Invalid
from innkeeper.domain.identity import RequestContext
from innkeeper.domain.limits import Limits
from innkeeper.domain.zone_tree import ZoneServer
from innkeeper.engine.zones.tree_request import ZONE
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.boot import definitions
from innkeeper.systems.compute.flavors import flavors
from innkeeper.systems.compute.servers import zone_servers
from innkeeper.systems.zones import remote

RESIZE, FLAVOR = "resize", "flavor"
Amounts = tuple[int, int]
"""The vcpus and the memory in MB of a server."""


_flavors = converter_to(dict[str, Flavor])


@dataclass(frozen=True, slots=True)
class ForwardedResize:
    """A resize to send to a child: its body, and the amounts that count before and during it."""

    body: bytes
    before: Amounts
    during: Amounts


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


def begin(
    tx: Tx, server: ZoneServer, resize: _Wanted, caller: RequestContext, default: Limits
) -> ForwardedResize:
    """Count the larger amounts against the quota. Return the resize to send to the child.

    Raises :class:`Invalid` if the project cannot use the flavor, and :class:`QuotaExceeded`.
    """
    flavor = resize.told
    if flavor is None:
        flavor = flavors.for_resize(
            tx, resize.flavor_id, server.project_id, is_admin=caller.is_admin
        )
    before, during = zone_servers.begin_resize(
        tx, server, (flavor.vcpus, flavor.memory_mb), default
    )
    # The child must not get this zone's row id.
    plain = msgspec.to_builtins(replace(flavor, id=0))
    told = {**resize.arguments, ZONE: {FLAVOR: plain}}
    return ForwardedResize(msgspec.json.encode({RESIZE: told}), before, during)


def end(tx: Tx, uuid: str, resize: ForwardedResize, now: datetime, *, is_accepted: bool) -> None:
    """Count the larger amounts against the quota if the child has accepted the resize.

    Otherwise, count the amounts from before the resize.
    """
    row = remote.get(tx, uuid)
    if row is None:
        return
    counted = (row.vcpus, row.memory_mb)
    if is_accepted or counted == resize.during:
        # Set the amounts also after an accepted resize, because a repair may have changed them
        # before the child began.
        zone_servers.resize(tx, row, *(resize.during if is_accepted else resize.before))
    remote.look_soon(tx, uuid, now)
