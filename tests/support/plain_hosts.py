"""Describes hosts as plain objects, and converts them to a table of columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from innkeeper.domain.placing import RequestSpec
from innkeeper.snapshot.columns import HostTable
from innkeeper.snapshot.dedications import FREEPOOL, of_reservation
from tests.support.host_facts import at_addresses, in_aggregates, say, with_servers
from tests.support.tables import Sketch, table_of

Metadata = Mapping[str, str]
PCLOUDS = {
    "one": (frozenset({"mine"}), frozenset[str]()),
    "two": (frozenset({"mine", "theirs"}), frozenset({"mine"})),
    "nobody's": (frozenset[str](), frozenset[str]()),
    of_reservation("held"): (frozenset({"mine"}), frozenset[str]()),
    FREEPOOL: (frozenset[str](), frozenset[str]()),
}
"""Owners and guests of each pcloud, and whether it takes plain requests; a reservation; and the
freepool."""


@dataclass(frozen=True)
class PlainHost:
    """Everything about one host; ``aggregates`` are numbers in the cloud's list of metadata."""

    sketch: Sketch
    seen_s: float
    aggregates: frozenset[int] = frozenset()
    servers: Mapping[str, int] = field(default_factory=dict)
    busy: int = 0
    address: str | None = None


@dataclass(frozen=True)
class PlainCloud:
    """Hosts, and the aggregates' metadata."""

    hosts: Sequence[PlainHost]
    metadata: Sequence[Metadata]

    def said(self, host: PlainHost) -> list[Metadata]:
        return [self.metadata[number] for number in sorted(host.aggregates)]


def table_for(cloud: PlainCloud) -> HostTable:
    """Return the same hosts as a table of columns."""
    table = table_of(*(each.sketch for each in cloud.hosts))
    named = {each.sketch.name: each for each in cloud.hosts}
    say(table, dict(enumerate(cloud.metadata)))
    in_aggregates(table, {name: tuple(each.aggregates) for name, each in named.items()})
    at_addresses(table, {n: each.address for n, each in named.items() if each.address})
    with_servers(
        table,
        {name: each.servers for name, each in named.items()},
        {name: each.busy for name, each in named.items()},
    )
    for uuid, (projects, taken_in) in PCLOUDS.items():
        table.dedications.set_facts(uuid, projects, taken_in)
    for name, each in named.items():
        table.set_facts_seen(table.index_by_name[name], each.seen_s)
    return table


def fact(host: PlainHost, spec: RequestSpec, name: str) -> Any:
    """Return a capability that has not expired, or ``None``."""
    if host.seen_s < spec.now_s - spec.rules.capabilities_max_age_s:
        return None
    facts: Any = host.sketch.capabilities
    if name in facts:
        return facts[name]
    for part in name.split("."):
        if not isinstance(facts, dict) or part not in facts:
            return None
        facts = facts[part]
    return facts


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
