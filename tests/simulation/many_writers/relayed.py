"""The program of a service that other processes reach through a relay of the test.

It serves as ``innkeeper serve`` does, but the leader's row has the port of the relay, and no
socket. So the test can cut the connections between processes.
"""

from __future__ import annotations

import os

import msgspec

from innkeeper.engine.leader.addresses import PeerAddress
from innkeeper.engine.leader.leadership import Leadership
from innkeeper.wiring import Seams, Service
from tests.simulation.many_writers.own_program import serve

RELAY_PORT = "SIMULATION_RELAY_PORT"


class Relayed(Leadership):
    """Has the relay's address in place of its own."""

    def advertised(self, address: PeerAddress) -> PeerAddress:
        """See :class:`Leadership`."""
        return msgspec.structs.replace(address, path="", port=int(os.environ[RELAY_PORT]))


if __name__ == "__main__":
    serve(lambda settings: Service(settings, seams=Seams(leadership_of=Relayed)))
