"""A service that repeats unanswered writes, as a program: the bug that the checker must find.

It serves as ``innkeeper serve`` does. But when the leader does not answer, it carries out the write
itself, which may be the second time. As the leader, it loses some of its answers to claims.
"""

from __future__ import annotations

import argparse
import itertools
import socket

import uvicorn

from innkeeper.engine.callers import ClientConnection
from innkeeper.engine.leader.leadership import Leadership
from innkeeper.engine.leader.link import NotForwarded, Unanswered
from innkeeper.entrypoints.api.leader_calls import KIND, decoded
from innkeeper.entrypoints.api.listening import config_of
from innkeeper.entrypoints.api.logs import set_up_logs
from innkeeper.settings import load
from innkeeper.wiring import Seams, Service

LOST_EACH = 10


class Repeating(Leadership):
    """Says that a write was not forwarded although it was, and loses answers as the leader."""

    async def start(self) -> None:
        """See :class:`Leadership`."""
        carry_out = self.handlers[KIND]

        numbers = itertools.count(1)

        async def lossy(payload: bytes, client: ClientConnection) -> bytes:
            answer = await carry_out(payload, client)
            is_claim = "allocations" in decoded(payload).template
            if is_claim and not next(numbers) % LOST_EACH:
                raise ConnectionError("This answer is lost.")
            return answer

        self.handlers[KIND] = lossy
        await super().start()

    async def ask(self, kind: str, payload: bytes, client: ClientConnection | None = None) -> bytes:
        """See :class:`Leadership`."""
        try:
            return await super().ask(kind, payload, client)
        except Unanswered as error:
            raise NotForwarded from error


def main() -> None:
    """Serve until killed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("command", choices=["serve"])
    parser.add_argument("--auth")
    parser.add_argument("--port", type=int)
    parser.add_argument("--data-dir")
    parser.add_argument("--database-url")
    options = vars(parser.parse_args())
    del options["command"]
    settings = load(None, overrides=options)
    set_up_logs(settings.serving)
    service = Service(settings, seams=Seams(leadership_of=Repeating))
    listener = socket.create_server(("127.0.0.1", settings.serving.port))
    service.start()
    uvicorn.Server(config_of(service.app, settings.serving)).run(sockets=[listener])


if __name__ == "__main__":
    main()
