"""Connections between the services of a fleet, with TLS, through relays that can cut them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from tests.simulation.many_writers.doors import ADDRESS
from tests.simulation.many_writers.fleet import PROCESSES
from tests.simulation.many_writers.nemesis import Harm
from tests.simulation.many_writers.relayed import RELAY_PORT
from tests.support.servers.ports import take_port
from tests.support.tcp_relays import TcpRelay, tcp_relay

PROGRAM = "tests.simulation.many_writers.relayed"


@dataclass(frozen=True, slots=True)
class Links:
    """One relay in front of each service, and the settings with which the service uses it."""

    relays: Sequence[TcpRelay]
    settings: Sequence[Mapping[str, str]]

    @property
    def ports(self) -> list[int]:
        """The ports of the relays, in the order of the services."""
        return [each.port for each in self.relays]

    def cuts(self) -> list[Harm]:
        """The connections between the services are cut, or lose all bytes for some seconds.

        Cut connections can be made again at once, the others after the loss.
        """
        return [
            Harm("links cut", self._cut, _nothing, (0.0, 0.5)),
            Harm("links silent", self._hold, self._pass_on, (0.5, 8.0)),
        ]

    def _hold(self) -> None:
        for each in self.relays:
            each.hold()

    def _pass_on(self) -> None:
        for each in self.relays:
            each.pass_on()

    def _cut(self) -> None:
        for each in self.relays:
            each.cut()


def _nothing() -> None:
    """Repair nothing: the services connect again."""


@contextmanager
def links(processes: int = PROCESSES) -> Iterator[Links]:
    """Relay between so many services until the block ends."""
    with ExitStack() as stack:
        relays: list[TcpRelay] = []
        settings: list[dict[str, str]] = []
        for _ in range(processes):
            port = take_port()
            relay = stack.enter_context(tcp_relay(port, is_recording=False))
            relays.append(relay)
            own = {"INNKEEPER_PEER_HOST": ADDRESS, "INNKEEPER_PEER_PORT": str(port)}
            settings.append({**own, RELAY_PORT: str(relay.port)})
        yield Links(relays, settings)
