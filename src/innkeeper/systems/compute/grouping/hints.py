"""Resolve scheduler hints for a request spec. Hints are users' rules for the hosts of servers.

Always true: if a hint names a server of another project, the refusal is the same as for an unknown
server. The stored hints of a server name pclouds and reservations by id, so a rename has no effect
on them. Hints with unknown names are stored too, because an operator's own filters may read them.
See :mod:`innkeeper.systems.compute.grouping.hint_names`.

Servers in hints may be in child zones. The zone that received the client's request refuses unknown
servers. Its child zones ignore servers that they do not have.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from innkeeper.domain.compute import Definitions
from innkeeper.domain.errors import Invalid
from innkeeper.domain.grouping import GroupState
from innkeeper.domain.ids import canonical_uuid
from innkeeper.domain.placing import Expression, GroupPolicy, Network
from innkeeper.domain.zone_tree import PREFIX_END, ZoneServerState, payer_of
from innkeeper.scheduling import expressions, variables
from innkeeper.scheduling.filters.catalogue import FILTERS
from innkeeper.store.queries.compute import servers
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.grouping import dedications, groups, hint_names
from innkeeper.systems.compute.grouping.hint_names import FILTER_HINTS, Readers
from innkeeper.systems.zones import remote

GROUP, QUERY = "group", "query"
SAME_HOST, DIFFERENT_HOST = "same_host", "different_host"
NEAR_ADDRESS, NEAR_RANGE = "build_near_host_ip", "cidr"
DEFAULT_RANGE = "/24"
"""The default range of addresses that count as near."""
HARD_POLICIES = (GroupPolicy.AFFINITY, GroupPolicy.ANTI_AFFINITY)
"""The group policies that a filter enforces. Weighers apply the other policies."""
ReadersOf = Callable[[tuple[str, ...] | None], Readers]
"""A function that returns the readers of a request's hints. The argument is the filters that the
request names."""


@dataclass(frozen=True, slots=True)
class Resolved:
    """Hints in the form of a request spec. See :class:`innkeeper.domain.placing.RequestSpec`.

    ``filters`` are the filters that the request names instead of the default filters. ``kept`` are
    the hints to store with the server. ``unread`` has a note about each unknown hint.
    """

    group: GroupState | None = None
    same_hosts: frozenset[str] | None = None
    different_hosts: frozenset[str] = frozenset()
    near: Network | None = None
    query: Expression | None = None
    filters: tuple[str, ...] | None = None
    pclouds: tuple[str, ...] = ()
    pcloud_host: str | None = None
    reservation: str | None = None
    kept: Mapping[str, Any] = field(default_factory=dict, compare=False)
    unread: Mapping[str, str] = field(default_factory=dict, compare=False)

    @property
    def names_dedicated(self) -> bool:
        """Whether the hints request hosts of a pcloud or of a reservation."""
        return bool(self.pclouds) or self.reservation is not None


NOTHING = Resolved()


def resolve(
    tx: Tx,
    hints: Mapping[str, Any],
    readers_of: ReadersOf,
    *,
    project_id: str,
    is_admin: bool,
    now: datetime,
    definitions: Definitions | None = None,
) -> Resolved:
    """Resolve the hints of a new request. A request from a zone parent has ``definitions``.

    Raises :class:`Invalid` for unknown or malformed values, for a misspelt hint, and for a known
    hint that no filter in force reads.
    """
    if not hints:
        return NOTHING
    filters = _filters(hints)
    readers = readers_of(filters)
    unread = hint_names.check(hints, readers)
    _check_combinations(hints)
    hints = _by_ids(tx, hints, project_id, now)
    group = _group(tx, hints, project_id, definitions)
    is_hard = group is not None and group.rule.policy in HARD_POLICIES
    if is_hard and GROUP not in readers.by_filters:
        raise hint_names.not_in_force(GROUP, readers)
    same, different = _uuids(hints, SAME_HOST), _uuids(hints, DIFFERENT_HOST)
    homes = (
        _homes(tx, {*same, *different}, project_id, is_admin=is_admin)
        if definitions is None
        else _homes_of_parent(tx, same, different, project_id)
    )
    return Resolved(
        group=group,
        same_hosts=_hosts(homes, same) if same else None,
        different_hosts=_hosts(homes, different),
        near=_near(hints),
        query=_query(hints.get(QUERY)),
        filters=filters,
        pclouds=dedications.named(hints),
        pcloud_host=_pcloud_host(hints),
        reservation=dedications.named_reservation(hints),
        kept=hints,
        unread=unread,
    )


def names_hosts(hints: Mapping[str, Any]) -> bool:
    """Return True if the query in these hints compares the names of hosts.

    Raises :class:`Invalid` for a malformed query.
    """
    query = _query(hints.get(QUERY))
    return not variables.HOST_NAMES.isdisjoint(expressions.variables(query or ()))


def still_meant(tx: Tx, hints: Mapping[str, Any], *, is_nowhere: bool = False) -> Resolved:
    """Resolve the stored hints of a server that is to be moved, except the hint ``group``.

    ``is_nowhere`` means that the server has no host. The hint that names a host of a pcloud is used
    only if the server has no host, and a host of the pcloud still has this name. Deleted servers
    and malformed values from older versions are ignored, because they must not prevent the move.
    """
    if not hints:
        return NOTHING
    try:
        near, query = _near(hints), _query(hints.get(QUERY))
    except Invalid:
        near, query = None, None
    same, different = _uuids(hints, SAME_HOST), _uuids(hints, DIFFERENT_HOST)
    homes = _known_homes(tx, {*same, *different})
    remaining = [uuid for uuid in same if uuid in homes]
    return Resolved(
        same_hosts=_hosts(homes, remaining) if remaining else None,
        different_hosts=_hosts(homes, different),
        near=near,
        query=query,
        pclouds=dedications.named(hints),
        pcloud_host=_present_host(tx, hints) if is_nowhere else None,
        reservation=dedications.named_reservation(hints),
    )


def _present_host(tx: Tx, hints: Mapping[str, Any]) -> str | None:
    # The owner of the pcloud may have renamed or released the host.
    name, pclouds = dedications.named_host(hints), dedications.named(hints)
    return name if name is not None and dedications.is_name_used(tx, pclouds, name) else None


def _by_ids(tx: Tx, hints: Mapping[str, Any], project_id: str, now: datetime) -> Mapping[str, Any]:
    """Return these hints with the ids of pclouds and reservations instead of their names."""
    pclouds = _full_texts(hints, dedications.HINT)
    reserved = _full_texts(hints, dedications.RESERVATION_HINT)
    if len(reserved) > 1:
        raise _malformed(dedications.RESERVATION_HINT)
    named = [each for each in (*pclouds, *reserved) if canonical_uuid(each) is None]
    if not named:
        return hints
    kept = dict(hints)
    if pclouds:
        uuids = [dedications.pcloud_named(tx, each, project_id) for each in pclouds]
        kept[dedications.HINT] = uuids if len(uuids) > 1 else uuids[0]
    if reserved:
        uuid = dedications.reservation_named(tx, reserved[0], project_id, now)
        kept[dedications.RESERVATION_HINT] = uuid
    return kept


def _pcloud_host(hints: Mapping[str, Any]) -> str | None:
    if len(_full_texts(hints, dedications.HOST_HINT)) > 1:
        raise _malformed(dedications.HOST_HINT)
    return dedications.named_host(hints)


def _full_texts(hints: Mapping[str, Any], name: str) -> list[str]:
    """Return the texts of a hint. Unlike :func:`_texts`, refuse empty texts.

    An empty text may come from a script with an empty variable. If the empty text were accepted,
    the server could be placed on a wrong host.
    """
    if name not in hints:
        return []
    found, given = _texts(hints, name), hints[name]
    count = len(given) if isinstance(given, list | tuple) else 1
    if not 0 < len(found) == count:
        raise _malformed(name)
    return found


def _texts(hints: Mapping[str, Any], name: str) -> list[str]:
    given = hints.get(name)
    if given is None:
        return []
    values: Sequence[Any] = given if isinstance(given, list | tuple) else [given]
    if not all(isinstance(each, str) for each in values):
        raise _malformed(name)
    return [each for each in values if each]


def _malformed(name: str) -> Invalid:
    return Invalid(f"The scheduler hint {name} is malformed.")


def _uuids(hints: Mapping[str, Any], name: str) -> list[str]:
    # Texts that are not ids are kept, and are then treated as unknown servers.
    return [canonical_uuid(each) or each for each in _texts(hints, name)]


def _homes(
    tx: Tx, uuids: Collection[str], project_id: str, *, is_admin: bool
) -> Mapping[str, str | None]:
    found: dict[str, str | None] = {
        str(each.uuid): each.host
        for each in servers.alive(tx, sorted(uuids))
        if is_admin or each.project_id == project_id
    }
    others = set(uuids) - found.keys()
    found |= dict.fromkeys(below(tx, others, None if is_admin else project_id))
    unknown = sorted(others - found.keys())
    if unknown:
        raise Invalid(f"Server {unknown[0]} could not be found.")
    return found


def below(tx: Tx, uuids: Collection[str], project_id: str | None) -> dict[str, int]:
    """Return the child zones of these servers, by server id.

    Servers that are in no child zone are left out. With a ``project_id``, servers of other projects
    are left out.
    """
    return {
        str(each.uuid): each.child_id
        for each in (remote.by_uuids(tx, sorted(uuids)) if uuids else ())
        if each.state != ZoneServerState.UNDOING and project_id in (None, each.project_id)
    }


def _homes_of_parent(
    tx: Tx, same: Collection[str], different: Collection[str], project_id: str
) -> dict[str, str | None]:
    """Return the hosts of the servers that are in this zone, by server id.

    The zone that received the client's request has checked the owner of each server. This zone
    does not rely on that check. A server in ``same`` is left out if it does not belong to the zone
    parent that sent the request. A server that is only in ``different`` may also belong to another
    zone parent.
    """
    found: dict[str, str | None] = {}
    for each in servers.alive(tx, sorted({*same, *different})):
        is_of_parent = payer_of(each.project_id) == payer_of(project_id)
        if is_of_parent or (PREFIX_END in each.project_id and each.uuid not in same):
            found[str(each.uuid)] = each.host
    return found


def _known_homes(tx: Tx, uuids: Collection[str]) -> dict[str, str | None]:
    """Return the hosts of the servers that exist in this zone, by server id."""
    return {str(each.uuid): each.host for each in servers.alive(tx, sorted(uuids))}


def _hosts(homes: Mapping[str, str | None], uuids: Collection[str]) -> frozenset[str]:
    there = (homes.get(uuid) for uuid in uuids)
    return frozenset(host for host in there if host is not None)


def _group(
    tx: Tx, hints: Mapping[str, Any], project_id: str, definitions: Definitions | None
) -> GroupState | None:
    named = group_of(hints)
    if named is None:
        return None
    if definitions is not None and definitions.group is not None:
        return groups.state_of_parent(tx, definitions.group)
    return groups.rule_for(tx, named, project_id)


def group_of(hints: Mapping[str, Any]) -> str | None:
    """Return the server group that hints name. Raises :class:`Invalid` for several groups."""
    named = _texts(hints, GROUP)
    if len(named) > 1:
        raise Invalid("A server can be in one server group only.")
    return named[0] if named else None


def servers_of(hints: Mapping[str, Any], name: str) -> list[str]:
    """Return the ids of the servers that the hint ``same_host`` or ``different_host`` names."""
    return _uuids(hints, name)


def _check_combinations(hints: Mapping[str, Any]) -> None:
    # Only new requests are checked. Old servers may have such hints, but must stay movable.
    if hints.get(NEAR_RANGE) is not None and hints.get(NEAR_ADDRESS) is None:
        raise Invalid(
            f"The scheduler hint {NEAR_RANGE} needs the hint {NEAR_ADDRESS}, which is missing."
        )
    if hints.get(dedications.HOST_HINT) is not None and not hints.get(dedications.HINT):
        raise Invalid(
            f"The scheduler hint {dedications.HOST_HINT} needs the hint {dedications.HINT}, "
            "which is missing."
        )
    names = (dedications.HINT, dedications.RESERVATION_HINT)
    if all(hints.get(name) is not None for name in names):
        raise Invalid(
            f"The scheduler hints {' and '.join(names)} exclude each other: no host belongs to "
            "both a pcloud and a reservation."
        )
    for word in expressions.variables(_query(hints.get(QUERY)) or ()):
        if variables.is_nameless(word):
            kind = word.partition(".")[0]
            raise Invalid(
                f"The query for hosts is not valid: the variable ${word} has no name. Write it as "
                f"${kind}.NAME."
            )


def _near(hints: Mapping[str, Any]) -> Network | None:
    address = hints.get(NEAR_ADDRESS)
    if address is None:
        return None
    reach = hints.get(NEAR_RANGE, DEFAULT_RANGE)
    if not isinstance(address, str) or not isinstance(reach, str) or "%" in address:
        raise _malformed(NEAR_ADDRESS)
    try:
        ipaddress.ip_address(address)
        network = ipaddress.ip_network(address + reach, strict=False)
    except ValueError as error:
        raise Invalid(f"{address}{reach} is not a range of addresses.") from error
    return Network(network.version, int(network.network_address), network.prefixlen)


def _query(given: Any) -> Expression | None:
    # OpenStack clients send the query as a string that contains JSON. Other clients send it as
    # JSON.
    if given is None:
        return None
    return expressions.parse(given) if isinstance(given, str) else expressions.read(given)


def _filters(hints: Mapping[str, Any]) -> tuple[str, ...] | None:
    given = [name for name in FILTER_HINTS if hints.get(name) is not None]
    named = tuple(dict.fromkeys(each for name in given for each in _texts(hints, name)))
    unknown = [name for name in named if name not in FILTERS]
    if unknown:
        raise Invalid(f"There is no host filter {unknown[0]}.")
    return named if given else None
