"""The program of a service that repeats unanswered writes: a bug that the checker must find.

It serves as ``innkeeper serve`` does. But when the leader does not answer, it carries out the write
itself, perhaps for the second time. As the leader, it loses some of its answers to claims.
"""

from __future__ import annotations

import itertools

from innkeeper.domain.errors import Unanswered
from innkeeper.engine.callers import ClientConnection
from innkeeper.engine.leader.connection import NotForwarded
from innkeeper.engine.leader.leadership import Leadership
from innkeeper.entrypoints.api.leader_calls import KIND, decoded
from innkeeper.wiring import Seams, Service
from tests.simulation.many_writers.own_program import serve

LOST_EACH = 10


class Repeating(Leadership):
    """Claims that a forwarded write was not forwarded. As the leader, it loses answers."""

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


if __name__ == "__main__":
    serve(lambda settings: Service(settings, seams=Seams(leadership_of=Repeating)))
