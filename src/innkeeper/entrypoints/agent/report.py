"""Builds an agent's host reports, and splits lists to the sizes that the service accepts.

Always true: a part is too large only if it consists of a single item that is too large.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from innkeeper.entrypoints.agent.drivers.driver import HostFacts

HOSTS_MAX = 500
"""The service's limit for one report."""
BYTES_MAX = 800_000
"""The maximum size of a part in bytes. It is below the service's limit for bodies, because a body
has more than the list."""


def split(bodies: Iterable[Mapping[str, Any]], most: int) -> Iterator[list[Mapping[str, Any]]]:
    """Split a list into parts of at most ``most`` items and ``BYTES_MAX`` bytes, in its order."""
    part: list[Mapping[str, Any]] = []
    size = 0
    for body in bodies:
        # Add one for the comma after the item.
        length = len(msgspec.json.encode(body)) + 1
        if part and (len(part) >= most or size + length > BYTES_MAX):
            yield part
            part, size = [], 0
        part.append(body)
        size += length
    if part:
        yield part


def parts(
    hosts: Sequence[HostFacts],
    servers: Mapping[str, Sequence[str]] | None,
    not_running: Mapping[str, Mapping[str, int]] | None = None,
) -> Iterator[list[Mapping[str, Any]]]:
    """Yield the reports of all hosts.

    If ``servers`` is given, the reports contain the servers on each host.

    ``not_running`` has, for each host, the power states of the servers that are not running.
    """
    bodies = (
        host_body(
            facts,
            None if servers is None else servers.get(facts.name, ()),
            None if not_running is None else not_running.get(facts.name, {}),
        )
        for facts in hosts
    )
    return split(bodies, HOSTS_MAX)


def host_body(
    facts: HostFacts, servers: Sequence[str] | None, not_running: Mapping[str, int] | None = None
) -> dict[str, Any]:
    """Return one host in the form of the protocol.

    Facts that the driver does not report are omitted.
    """
    body: dict[str, Any] = {
        "name": facts.name,
        "inventories": {name: dict(has) for name, has in facts.inventories.items()},
        "traits": list(facts.traits),
        "capabilities": dict(facts.capabilities),
        "host_type": facts.host_type,
        "host_version": facts.host_version,
        "host_ip": facts.host_ip,
        "cpu_facts": dict(facts.cpu_facts),
    }
    optional = {
        "availability_zone": facts.availability_zone,
        "provider_uuid": facts.provider_uuid,
        "booted_at": facts.booted_at,
        "servers": None if servers is None else list(servers),
        "not_running": None if not_running is None else dict(not_running),
    }
    return body | {name: value for name, value in optional.items() if value is not None}
