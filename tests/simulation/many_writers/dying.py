"""The program of a service that dies as soon as it has booted servers for another process.

It serves as ``innkeeper serve`` does. But as the leader, it dies between the commit of a forwarded
boot and its answer.
"""

from __future__ import annotations

import os
import signal

from innkeeper.engine.callers import ClientConnection
from innkeeper.engine.leader.leadership import Leadership
from innkeeper.entrypoints.api.leader_calls import KIND, decoded
from innkeeper.wiring import Seams, Service
from tests.simulation.many_writers.own_program import serve

BOOT = "/v2.1/servers"


class Dying(Leadership):
    """Carries out forwarded calls like any leader, and dies before it answers a boot."""

    async def start(self) -> None:
        """See :class:`Leadership`."""
        carry_out = self.handlers[KIND]

        async def deadly(payload: bytes, client: ClientConnection) -> bytes:
            answer = await carry_out(payload, client)
            call = decoded(payload)
            if call.template == BOOT:
                os.kill(os.getpid(), signal.SIGKILL)
            return answer

        self.handlers[KIND] = deadly
        await super().start()


if __name__ == "__main__":
    serve(lambda settings: Service(settings, seams=Seams(leadership_of=Dying)))
