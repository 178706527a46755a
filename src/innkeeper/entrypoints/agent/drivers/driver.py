"""The protocol that an agent's driver implements.

Every order may arrive twice, because after a crash, the service again sends all orders without a
reported result. So all orders must be idempotent. For example, ``build`` does nothing if the server
exists, and ``destroy`` does nothing if the server does not exist. Orders for different servers come
from several threads at once. Orders for one server come in sequence, except orders that interrupt a
running order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol


class DriverFailed(Exception):
    """Raised if an order cannot be carried out. Only administrators see the message."""


@dataclass(frozen=True, slots=True)
class HostFacts:
    """One host, as a driver reports it. The reference of the agents' protocol describes the fields.

    Each inventory has a ``total``. All other fields of an inventory are optional.
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
    """An order of the service, for one server on one host."""

    order_id: int
    kind: str
    host: str
    server_id: str
    body: Mapping[str, Any]


class Driver(Protocol):
    """Drives the hosts of one agent.

    :class:`~innkeeper.domain.orders.OrderKind` defines what each order means.
    """

    def hosts(self) -> Sequence[HostFacts]:
        """Return all hosts in their current state."""

    def servers(self) -> Mapping[str, Sequence[str]]:
        """Return the ids of the servers that are now on each host."""

    def not_running(self) -> Mapping[str, Mapping[str, int]]:
        """Return the power states of the servers that are not running, by host and server id.

        3 means paused, and 4 shut down.
        """

    def build(self, order: Order) -> None:
        """Build the server.

        If this fails, remove all parts of the server, and raise :class:`DriverFailed`.
        """

    def destroy(self, order: Order) -> None:
        """Remove the server. Raises :class:`DriverFailed` if the server still exists."""

    def change(self, order: Order) -> None:
        """Carry out an order of a kind in :data:`OrderKind.CHANGES`.

        Raises :class:`DriverFailed` if this fails.
        """

    def change_volume(self, order: Order) -> None:
        """Carry out an order of a kind in :data:`OrderKind.VOLUMES`.

        Raises :class:`DriverFailed` if this fails.
        """

    def interrupt(self, order: Order) -> None:
        """Carry out an order of a kind in :data:`OrderKind.BESIDE` while another order runs.

        Raises :class:`DriverFailed` if this fails.
        """

    def close(self) -> None:
        """Release all resources. No order follows this call."""
