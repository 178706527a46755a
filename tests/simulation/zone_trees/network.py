"""The wires between simulated zones: they lose, delay, repeat and cut requests, by a seed.

Always true: a request that is delivered runs in the process of the zone that it goes to. The
request goes on even if the sender has given up or died. It ends if the zone dies.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol
from urllib.parse import urlsplit

import httpx

from innkeeper.clients.zone_wire import NoAnswer, NotSent, SignedRequest, ZoneAnswer
from innkeeper.domain.zone_tree import ChildZone
from tests.simulation.stepping.services import Dice

TRAVEL_S = 0.02
"""The mean time of a request, or an answer, on the wire."""
LATE_S = 110.0
"""The longest time after which a late or repeated request arrives: longer than a hop token lives.
"""


class Fate:
    """What happens to a request."""

    FINE = "fine"
    REFUSED = "refused"
    LOST = "lost"
    LATE = "late"
    REPEATED = "repeated"
    OVERTAKEN = "overtaken"
    ANSWER_LOST = "answer lost"
    CUT = "cut"
    SENDER_DIES = "sender dies"
    RECEIVER_DIES = "receiver dies"


FATES: Mapping[str, float] = {
    Fate.REFUSED: 0.04,
    Fate.LOST: 0.04,
    Fate.LATE: 0.12,
    Fate.REPEATED: 0.08,
    Fate.OVERTAKEN: 0.04,
    Fate.ANSWER_LOST: 0.08,
    Fate.CUT: 0.05,
    Fate.SENDER_DIES: 0.05,
    Fate.RECEIVER_DIES: 0.05,
}
"""The probability of each fate of a request that builds or undoes, while there are faults. At other
times, each request is fine."""
READING_SHARE = 0.3
"""The probabilities for other requests are multiplied by this."""
WRITES = ("/v2.1/servers", "/zones/undo")


class Process(Protocol):
    """The process of a zone, as the network sees it."""

    def serve(self, request: httpx.Request) -> asyncio.Task[httpx.Response]:
        """Begin to serve a request. Raises ``ConnectionRefusedError`` if the zone is down."""

    def die(self) -> None:
        """End at once, in the middle of everything."""


@dataclass(slots=True)
class Network:
    """All wires. ``dice`` decide by the ``chances`` of fates, and ``fates`` counts them."""

    dice: Dice
    processes: dict[str, Process] = field(default_factory=dict)
    chances: Mapping[str, float] = field(default_factory=lambda: FATES)
    has_faults: bool = False
    fates: Counter[str] = field(default_factory=Counter)
    sent: list[tuple[str, SignedRequest]] = field(default_factory=list)
    """All requests that were sent, with the name of the zone that they went to."""
    accidents: list[BaseException | None] = field(default_factory=list)
    """Unexpected errors in a process, and answers that report one. They must never happen."""
    _late: set[asyncio.Task[None]] = field(default_factory=set)

    def is_quiet(self) -> bool:
        """Whether no request is still on its way."""
        return not self._late

    async def travel(self) -> None:
        """Wait as long as a request takes on the wire."""
        await asyncio.sleep(self.dice.expovariate(1 / TRAVEL_S))

    def draw(self, signed: SignedRequest) -> str:
        """Decide on the fate of a request."""
        drawn = Fate.FINE
        if self.has_faults:
            is_write = signed.method == "POST" and signed.url.endswith(WRITES)
            share = 1.0 if is_write else READING_SHARE
            chances = [share * each for each in self.chances.values()]
            (drawn,) = self.dice.choices([Fate.FINE, *self.chances], [1 - sum(chances), *chances])
        self.fates[drawn] += 1
        return drawn

    def deliver_later(self, name: str, signed: SignedRequest) -> None:
        """Let a request arrive long after it was sent. Nobody waits for the answer."""
        task = asyncio.ensure_future(self._deliver_later(name, signed))
        self._late.add(task)
        task.add_done_callback(self._late.discard)

    async def _deliver_later(self, name: str, signed: SignedRequest) -> None:
        await asyncio.sleep(self.dice.random() ** 3 * LATE_S)
        try:
            serving = self.processes[name].serve(request_of(signed))
        except ConnectionRefusedError:
            return
        await asyncio.wait([serving])


class SimulatedWire:
    """The wire from one zone to its children. The name of a child's host is the zone's name."""

    def __init__(self, network: Network, sender: Process) -> None:
        self._network = network
        self._sender = sender

    async def exchange(self, child: ChildZone, signed: SignedRequest) -> ZoneAnswer:
        del child
        network, fate = self._network, self._network.draw(signed)
        name = str(urlsplit(signed.url).hostname)
        network.sent.append((name, signed))
        await network.travel()
        if fate == Fate.REFUSED:
            raise NotSent("refused")
        if fate in (Fate.LATE, Fate.REPEATED):
            network.deliver_later(name, signed)
        if fate in (Fate.LOST, Fate.LATE):
            await _forever()
        receiver = network.processes[name]
        try:
            if fate == Fate.OVERTAKEN:
                # A proxy repeats the request, or somebody has copied it.
                await asyncio.wait([receiver.serve(request_of(signed))])
            serving = receiver.serve(request_of(signed))
        except ConnectionRefusedError as error:
            raise NotSent("refused") from error
        if fate in (Fate.SENDER_DIES, Fate.RECEIVER_DIES):
            # The request is served up to some step.
            await network.travel()
            dying = self._sender if fate == Fate.SENDER_DIES else receiver
            dying.die()
        await asyncio.wait([serving])
        if serving.cancelled():
            raise NoAnswer("the connection was reset")
        answer = answer_of(serving.result())
        await network.travel()
        if fate == Fate.ANSWER_LOST:
            await _forever()
        if fate == Fate.CUT:
            raise NoAnswer("the answer ended early")
        return answer

    async def forget(self, child: ChildZone) -> None:
        """There are no connections."""

    async def close(self) -> None:
        """There are no connections."""


def request_of(signed: SignedRequest) -> httpx.Request:
    """Return a signed request as a zone receives it."""
    return httpx.Request(
        signed.method, signed.url, headers=list(signed.headers), content=signed.body
    )


def answer_of(response: httpx.Response) -> ZoneAnswer:
    """Return the answer of a zone as its zone parent receives it."""
    shown = {name.lower(): text for name, text in response.headers.items()}
    return ZoneAnswer(response.status_code, shown, response.content)


async def _forever() -> None:
    """Wait until the sender gives up."""
    await asyncio.Event().wait()
