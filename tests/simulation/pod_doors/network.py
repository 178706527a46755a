"""The connections from simulated doors to pods: they lose, delay and cut requests, by a seed.

Always true: a request that arrived is served to its end, unless the pod dies, even if its sender
gave up or died. A paused pod answers nothing. When it goes on, it serves the requests that came
meanwhile.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import httpx

from innkeeper.clients.kept_connections import NoAnswer, NotSent, WireAnswer, WireRequest
from tests.simulation.stepping.services import Dice

TRAVEL_S = 0.02
"""The mean time of a request, or an answer, on the wire."""
LATE_S = 12.0
"""The longest time after which a late request arrives: less than the time for which the door
regards a create as undecided."""
PAUSES_S = (1.0, 40.0)
"""How long a pod is paused: the door's timeouts may be over long before it goes on."""
JITTER_S = 0.5
"""Requests that came during a pause are served within this time after it, in any order."""


class Fate:
    """What happens to a request."""

    FINE = "fine"
    REFUSED = "refused"
    LOST = "lost"
    LATE = "late"
    REPEATED = "repeated"
    ANSWER_LOST = "answer lost"
    CUT = "cut"
    SENDER_DIES = "sender dies"
    RECEIVER_DIES = "receiver dies"
    PAUSED = "receiver is paused"


FATES: Mapping[str, float] = {
    Fate.REFUSED: 0.04,
    Fate.LOST: 0.04,
    Fate.LATE: 0.08,
    Fate.REPEATED: 0.04,
    Fate.ANSWER_LOST: 0.10,
    Fate.CUT: 0.05,
    Fate.SENDER_DIES: 0.03,
    Fate.RECEIVER_DIES: 0.03,
    Fate.PAUSED: 0.04,
}
"""The probability of each fate of a request that makes or deletes something, while there are
faults. At other times, each request is fine."""
READING_SHARE = 0.1
"""The probabilities for other requests are multiplied by this."""
CREATES = ("/v2.1/servers", "/v3/volumes")


class Receiver(Protocol):
    """A pod or a door, as the network sees it."""

    def serve(self, request: httpx.Request) -> asyncio.Task[httpx.Response]:
        """Begin to serve a request. Raises ``ConnectionRefusedError`` if it is down."""

    def die(self) -> None:
        """End at once, in the middle of everything."""


@dataclass(slots=True)
class Network:
    """All connections. ``dice`` decide by the ``chances`` of fates, and ``fates`` counts them.

    ``sends_again`` is a planted bug: a request whose answer does not arrive is sent again.
    """

    dice: Dice
    chances: Mapping[str, float] = field(default_factory=lambda: FATES)
    sends_again: bool = False
    has_faults: bool = False
    pods: dict[str, Receiver] = field(default_factory=dict)
    fates: Counter[str] = field(default_factory=Counter)
    accidents: list[BaseException | None] = field(default_factory=list)
    """Unexpected errors in a process, and answers that report one. They must never happen."""
    _paused: dict[str, float] = field(default_factory=dict)
    _tasks: set[asyncio.Task[object]] = field(default_factory=set)

    def is_quiet(self) -> bool:
        """Whether no request is on its way."""
        return not self._tasks

    async def travel(self) -> None:
        """Wait as long as a request takes on the wire."""
        await asyncio.sleep(self.dice.expovariate(1 / TRAVEL_S))

    def draw(self, request: httpx.Request) -> str:
        """Decide on the fate of a request."""
        drawn = Fate.FINE
        if self.has_faults:
            path = request.url.path
            is_write = is_create(request) or (request.method == "DELETE" and "/v" in path)
            share = 1.0 if is_write else READING_SHARE
            chances = [share * each for each in self.chances.values()]
            (drawn,) = self.dice.choices([Fate.FINE, *self.chances], [1 - sum(chances), *chances])
        if drawn == Fate.REPEATED and is_create(request):
            # Nothing between a client and a server repeats a POST. That is the planted bug.
            drawn = Fate.FINE
        self.fates[drawn] += 1
        return drawn

    def pause(self, name: str) -> None:
        """Let a pod answer nothing for a while."""
        until = asyncio.get_running_loop().time() + self.dice.uniform(*PAUSES_S)
        self._paused[name] = max(until, self._paused.get(name, 0.0))

    async def pass_pause(self, name: str) -> None:
        """Wait until a pod is not paused."""
        clock = asyncio.get_running_loop().time
        while clock() < self._paused.get(name, 0.0):
            jitter = self.dice.uniform(0, JITTER_S)
            await asyncio.sleep(self._paused[name] - clock() + jitter)

    def deliver(
        self, name: str, request: httpx.Request, after_s: float = 0.0
    ) -> asyncio.Task[httpx.Response]:
        """Let a request arrive, whether or not anybody still waits for the answer.

        The task fails with ``ConnectionError``.
        """
        task = asyncio.get_running_loop().create_task(self._deliver(name, request, after_s))
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[httpx.Response]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and not isinstance(task.exception(), ConnectionError | None):
            self.accidents.append(task.exception())

    async def _deliver(self, name: str, request: httpx.Request, after_s: float) -> httpx.Response:
        await asyncio.sleep(after_s)
        await self.pass_pause(name)
        serving = self.pods[name].serve(request)
        await asyncio.wait([serving])
        await self.pass_pause(name)
        if serving.cancelled():
            raise ConnectionResetError("the pod died")
        return serving.result()


class SimulatedPodWire:
    """The connections from one process of a door to all pods. A pod's name is its host's name."""

    def __init__(self, network: Network, sender: Receiver) -> None:
        self._network = network
        self._sender = sender

    async def exchange(self, owner: str, wanted: WireRequest) -> WireAnswer:
        """Send a request with a random fate, and return its answer if there is one."""
        del owner
        sent = httpx.Request(
            wanted.method, wanted.url, headers=list(wanted.headers), content=wanted.body
        )
        try:
            answer = await self._answered(str(sent.url.host), sent)
        except ConnectionRefusedError as error:
            raise NotSent("refused") from error
        except ConnectionError as error:
            raise NoAnswer(str(error)) from error
        return WireAnswer(answer.status_code, dict(answer.headers), answer.content)

    async def forget(self, owner: str) -> None:
        """Close nothing: nothing stays open."""

    async def close(self) -> None:
        """Close nothing."""

    async def _answered(self, name: str, sent: httpx.Request) -> httpx.Response:
        network, fate = self._network, self._network.draw(sent)
        await network.travel()
        if fate == Fate.REFUSED:
            raise ConnectionRefusedError
        if fate == Fate.PAUSED:
            network.pause(name)
        if fate in (Fate.LATE, Fate.REPEATED):
            network.deliver(name, sent, network.dice.random() ** 2 * LATE_S)
        if fate in (Fate.LOST, Fate.LATE):
            return await self._without_answer(name, sent)
        delivery = network.deliver(name, sent)
        if fate in (Fate.SENDER_DIES, Fate.RECEIVER_DIES):
            # The request is served up to some step.
            await network.travel()
            dying = self._sender if fate == Fate.SENDER_DIES else network.pods[name]
            dying.die()
        await asyncio.wait([delivery])
        answer = delivery.result()
        await network.travel()
        if fate == Fate.ANSWER_LOST:
            return await self._without_answer(name, sent)
        if fate == Fate.CUT:
            raise ConnectionResetError("the answer ended early")
        return answer

    async def _without_answer(self, name: str, sent: httpx.Request) -> httpx.Response:
        """Wait until the sender gives up, unless a bug is planted."""
        if not (self._network.sends_again and is_create(sent)):
            await asyncio.Event().wait()
        return await self._network.deliver(name, sent)


def is_create(request: httpx.Request) -> bool:
    """Return whether a request makes servers or a volume."""
    return request.method == "POST" and request.url.path.endswith(CREATES)
