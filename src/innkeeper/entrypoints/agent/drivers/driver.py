"""What an agent's driver must be able to do.

Every order may come twice: after a crash the service gives again whatever was not reported.
So ``build`` of a server that is there and ``destroy`` of one that is not are done already, and
say so by returning. Different servers' orders come from several threads at once; those of one
server come one after the other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol


class DriverFailed(Exception):
    """An order could not be carried out. The message is shown to the server's owner."""


@dataclass(frozen=True, slots=True)
class HostFacts:
    """One host as its driver sees it; see the reference of the agents' protocol.

    ``inventories`` has for each resource class a total, and what else the driver knows of it.
    """

    name: str
    inventories: Mapping[str, Mapping[str, Any]]
    traits: Sequence[str] = ()
    capabilities: Mapping[str, Any] = field(default_factory=dict)
    availability_zone: str | None = None
    host_type: str = "unknown"
    host_version: int = 0
    host_ip: str = "127.0.0.1"
    cpu_facts: Mapping[str, Any] = field(default_factory=dict)
    provider_uuid: str | None = None
    booted_at: str | None = None


@dataclass(frozen=True, slots=True)
class Order:
    """What to do with one server on one host."""

    order_id: int
    kind: str
    host: str
    server_id: str
    body: Mapping[str, Any]


class Driver(Protocol):
    """Drives the hosts of one agent."""

    def hosts(self) -> Sequence[HostFacts]:
        """All hosts, as they are now."""

    def servers(self) -> Mapping[str, Sequence[str]]:
        """The ids of the servers that are on the hosts now, by host."""

    def build(self, order: Order) -> None:
        """Have the server on the host. Raises :class:`DriverFailed`, leaving nothing behind."""

    def destroy(self, order: Order) -> None:
        """Have the server gone. Raises :class:`DriverFailed` if it is still there."""

    def close(self) -> None:
        """Let go of what is open; no order comes any more."""
