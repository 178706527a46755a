"""Scheduler hints: what users say about where their servers should go, in the words of hosts.

Always true: a hint names nothing that its project may not know of; a stranger's server and a
server that does not exist are told the same. What is kept with a server names pclouds and
reservations by their ids, so renaming one changes nothing.

Hints of other names are kept with the server and mean nothing here: filters of one's own may
read them. See :mod:`innkeeper.systems.compute.grouping.hint_names`.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from innkeeper.domain.errors import Invalid
from innkeeper.domain.grouping import GroupState
from innkeeper.domain.ids import canonical_uuid
from innkeeper.domain.placing import Expression, GroupPolicy, Network
from innkeeper.scheduling import expressions, variables
from innkeeper.scheduling.filters.catalogue import FILTERS
from innkeeper.store.queries.compute import servers
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.grouping import dedicated_names, dedications, groups, hint_names
from innkeeper.systems.compute.grouping.hint_names import FILTER_HINTS, Readers

GROUP, QUERY = "group", "query"
SAME_HOST, DIFFERENT_HOST = "same_host", "different_host"
NEAR_ADDRESS, NEAR_RANGE = "build_near_host_ip", "cidr"
DEFAULT_RANGE = "/24"
"""How near is near where the hint does not say so."""
HARD_POLICIES = (GroupPolicy.AFFINITY, GroupPolicy.ANTI_AFFINITY)
"""Policies of groups that filters keep; the others are wishes, which weighers follow."""
ReadersOf = Callable[[tuple[str, ...] | None], Readers]
"""Who reads hints of a request that names these filters, or none."""


@dataclass(frozen=True, slots=True)
class Resolved:
    """Hints as a request spec has them; see :class:`innkeeper.domain.placing.RequestSpec`.

    ``filters`` are the names of those that decide in place of the default ones. ``kept`` are
    the hints as the server keeps them, and ``unread`` those of which nothing is known, with
    what is to be said of each.
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
        """Whether hosts of a pcloud or of a reservation are wanted, and no others."""
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
) -> Resolved:
    """Look up what hints of a new request name.

    Raises :class:`Invalid` for what is not there, or is no form, for a misspelt hint, and for
    one that nothing in force reads.
    """
    if not hints:
        return NOTHING
    filters = _filters(hints)
    readers = readers_of(filters)
    unread = hint_names.judge(hints, readers)
    _refuse_halves(hints)
    hints = _by_ids(tx, hints, project_id, now)
    group = _group(tx, hints, project_id)
    is_hard = group is not None and group.rule.policy in HARD_POLICIES
    if is_hard and GROUP not in readers.by_filters:
        raise hint_names.not_in_force(GROUP, readers)
    same, different = _uuids(hints, SAME_HOST), _uuids(hints, DIFFERENT_HOST)
    homes = _homes(tx, {*same, *different}, project_id, is_admin=is_admin)
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
    """Whether a query among hints asks which host it is that it is asked of.

    Raises :class:`Invalid` for a query that is none.
    """
    query = _query(hints.get(QUERY))
    return not variables.HOST_NAMES.isdisjoint(expressions.variables(query or ()))


def still_meant(tx: Tx, hints: Mapping[str, Any], *, is_nowhere: bool = False) -> Resolved:
    """The hints of a server that is to be moved, but for its group, which its row tells.

    The one host of a pcloud that was named is meant by a server that ``is_nowhere``, as long as
    a host is called so; one that is there is to go to another. Servers that are gone since it
    was booted are passed over, as is what nobody checked in days when hints were only kept:
    that must not keep the server where it is. Near to servers none of which is left is
    anywhere.
    """
    if not hints:
        return NOTHING
    try:
        near, query = _near(hints), _query(hints.get(QUERY))
    except Invalid:
        near, query = None, None
    same, different = _uuids(hints, SAME_HOST), _uuids(hints, DIFFERENT_HOST)
    homes = _known_homes(tx, {*same, *different})
    left = [uuid for uuid in same if uuid in homes]
    return Resolved(
        same_hosts=_hosts(homes, left) if left else None,
        different_hosts=_hosts(homes, [uuid for uuid in different if uuid in homes]),
        near=near,
        query=query,
        pclouds=dedications.named(hints),
        pcloud_host=_host_still_meant(tx, hints) if is_nowhere else None,
        reservation=dedications.named_reservation(hints),
    )


def _host_still_meant(tx: Tx, hints: Mapping[str, Any]) -> str | None:
    # Its owner may have renamed it, or given it back: that is nothing that a guest could know.
    name, pclouds = dedications.named_host(hints), dedications.named(hints)
    return name if name is not None and dedications.is_name_used(tx, pclouds, name) else None


def _by_ids(tx: Tx, hints: Mapping[str, Any], project_id: str, now: datetime) -> Mapping[str, Any]:
    """These hints, with the ids of pclouds and reservations in the place of their names."""
    pclouds = _full_texts(hints, dedications.HINT)
    reserved = _full_texts(hints, dedications.RESERVATION_HINT)
    if len(reserved) > 1:
        raise _malformed(dedications.RESERVATION_HINT)
    named = [each for each in (*pclouds, *reserved) if canonical_uuid(each) is None]
    if not named:
        return hints
    kept = dict(hints)
    if pclouds:
        uuids = [dedicated_names.pcloud(tx, each, project_id) for each in pclouds]
        kept[dedications.HINT] = uuids if len(uuids) > 1 else uuids[0]
    if reserved:
        uuid = dedicated_names.reservation(tx, reserved[0], project_id, now)
        kept[dedications.RESERVATION_HINT] = uuid
    return kept


def _pcloud_host(hints: Mapping[str, Any]) -> str | None:
    if len(_full_texts(hints, dedications.HOST_HINT)) > 1:
        raise _malformed(dedications.HOST_HINT)
    return dedications.named_host(hints)


def _full_texts(hints: Mapping[str, Any], name: str) -> list[str]:
    """As :func:`_texts`, and refuses a hint that is present but empty.

    A script whose variable is empty would have its server anywhere but where it is to be.
    """
    if name not in hints:
        return []
    found, given = _texts(hints, name), hints[name]
    count = len(given) if isinstance(given, list | tuple) else 1
    if not 0 < len(found) == count:
        raise _malformed(name)
    return found


def _texts(hints: Mapping[str, Any], name: str) -> list[str]:
    """A hint that is a text, or a list of texts."""
    given = hints.get(name)
    if given is None:
        return []
    values: Sequence[Any] = given if isinstance(given, list | tuple) else [given]
    if not all(isinstance(each, str) for each in values):
        raise _malformed(name)
    return [each for each in values if each]


def _malformed(name: str) -> Invalid:
    return Invalid(f"The scheduler hint {name} is not in the form that such a hint has.")


def _uuids(hints: Mapping[str, Any], name: str) -> list[str]:
    # In the form in which they came, if they are none: they are unknown then.
    return [canonical_uuid(each) or each for each in _texts(hints, name)]


def _homes(
    tx: Tx, uuids: Collection[str], project_id: str, *, is_admin: bool
) -> Mapping[str, str | None]:
    """Where servers are; raises for any that the caller may not know of."""
    found = _known_homes(tx, uuids, None if is_admin else project_id)
    unknown = sorted(set(uuids) - found.keys())
    if unknown:
        raise Invalid(f"Server {unknown[0]} could not be found.")
    return found


def _known_homes(
    tx: Tx, uuids: Collection[str], project_id: str | None = None
) -> dict[str, str | None]:
    """Where those of these servers are that exist, and are of the project if one is named."""
    return {
        str(each.uuid): each.host
        for each in servers.alive(tx, sorted(uuids))
        if project_id in (None, each.project_id)
    }


def _hosts(homes: Mapping[str, str | None], uuids: Collection[str]) -> frozenset[str]:
    there = (homes[uuid] for uuid in uuids)
    return frozenset(host for host in there if host is not None)


def _group(tx: Tx, hints: Mapping[str, Any], project_id: str) -> GroupState | None:
    named = _texts(hints, GROUP)
    if len(named) > 1:
        raise Invalid("A server can be in one server group only.")
    return groups.rule_for(tx, named[0], project_id) if named else None


def _refuse_halves(hints: Mapping[str, Any]) -> None:
    # Of new requests alone: servers from days when these meant nothing keep them, and move.
    if hints.get(NEAR_RANGE) is not None and hints.get(NEAR_ADDRESS) is None:
        raise Invalid(
            f"The scheduler hint {NEAR_RANGE} says how near, and {NEAR_ADDRESS} is to say to "
            "which address; it is missing."
        )
    if hints.get(dedications.HOST_HINT) is not None and not hints.get(dedications.HINT):
        raise Invalid(
            f"The scheduler hint {dedications.HOST_HINT} names a host, and "
            f"{dedications.HINT} is to say of which pcloud; it is missing."
        )
    names = (dedications.HINT, dedications.RESERVATION_HINT)
    if all(hints.get(name) is not None for name in names):
        raise Invalid(
            f"The scheduler hints {' and '.join(names)} exclude each other: no host is both a "
            "pcloud's and a reservation's."
        )
    for word in expressions.variables(_query(hints.get(QUERY)) or ()):
        if variables.is_nameless(word):
            kind = word.partition(".")[0]
            raise Invalid(
                f"The query for hosts cannot be used: the variable ${word} names none of the "
                f"{kind}; it is written as ${kind}.NAME."
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
        raise Invalid(f"{address}{reach} is no range of addresses.") from error
    return Network(network.version, int(network.network_address), network.prefixlen)


def _query(given: Any) -> Expression | None:
    # A text that holds JSON, as clients of the field send it, or what is in such a text.
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
