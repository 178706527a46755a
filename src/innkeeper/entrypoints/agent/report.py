"""Turns a driver's hosts into reports that the service takes: in parts, none too large."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from innkeeper.entrypoints.agent import cutting
from innkeeper.entrypoints.agent.drivers.driver import HostFacts

HOSTS_MAX = 500
"""What the service takes in one report."""


def parts(
    hosts: Sequence[HostFacts],
    servers: Mapping[str, Sequence[str]] | None,
    not_running: Mapping[str, Mapping[str, int]] | None = None,
) -> Iterator[list[Mapping[str, Any]]]:
    """The reports of all hosts. With ``servers`` they say what is on each, and with
    ``not_running`` which of those do not run."""
    bodies = (
        host_body(
            facts,
            None if servers is None else servers.get(facts.name, ()),
            None if not_running is None else not_running.get(facts.name, {}),
        )
        for facts in hosts
    )
    return cutting.parts(bodies, HOSTS_MAX)


def host_body(
    facts: HostFacts, servers: Sequence[str] | None, not_running: Mapping[str, int] | None = None
) -> dict[str, Any]:
    """One host as the protocol has it; what the driver does not know is left out."""
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
    body.update({name: value for name, value in optional.items() if value is not None})
    return body
