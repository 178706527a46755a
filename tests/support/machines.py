"""Simulates agents with machines, and records which servers are really on each host.

An order is taken, started, finished and then reported. Like real agents, the simulated ones carry
out an order even if the service has timed it out in the meantime.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import partial
from random import Random

from innkeeper.domain.ids import AgentId, ServerId
from innkeeper.domain.orders import OrderKind, WorkOrder
from innkeeper.systems.compute.hosts import work
from innkeeper.systems.compute.servers.results import Result
from tests.support.clouds import AGENT
from tests.support.moves import OTHER, Movers

COMING = frozenset(
    {OrderKind.ARRIVE, OrderKind.EXPECT, OrderKind.EVACUATE, OrderKind.UNSHELVE, OrderKind.RESIZE}
)
"""Orders that may put the server, or its new size, on the host as soon as they start."""
GOING = frozenset({OrderKind.DESTROY, OrderKind.OFFLOAD})
FAILS = 0.15


@dataclass(slots=True)
class Work:
    """An order that an agent has taken, and what was on its host before it started."""

    order: WorkOrder
    has_begun: bool = False
    before: int | None = None

    @property
    def place(self) -> tuple[str, ServerId]:
        """The host and the server."""
        return self.order.host, self.order.server_uuid


class Machines:
    """Both agents; ``there`` has the vcpus of each server by host and id."""

    def __init__(self, movers: Movers, dice: Random) -> None:
        self.movers = movers
        self.dice = dice
        self.there: dict[tuple[str, ServerId], int] = {}
        self._taken: set[int] = set()
        self._queues: dict[tuple[AgentId, ServerId], deque[Work]] = {}
        self._results: list[tuple[WorkOrder, bool]] = []
        self._stopped: set[str] = set()

    def boot(self, host: str) -> ServerId:
        """Create a server that runs on a host; returns its id."""
        uuid = self.movers.boot(host)
        self.there[host, uuid] = 1
        return uuid

    @property
    def is_busy(self) -> bool:
        """Whether there are orders to carry out or results to report."""
        return bool(self._results) or any(self._queues.values())

    def take(self, agent_id: AgentId) -> None:
        """Have an agent take its new orders."""
        read = self.movers.cloud.read
        for order in read(partial(work.waiting, agent_id=agent_id, after=0, limit=1000)):
            if order.id in self._taken:
                continue
            self._taken.add(order.id)
            if order.kind == OrderKind.ABORT:
                is_there = (order.host, order.server_uuid) in self.there
                if is_there:
                    self._stopped.add(order.body["migration_id"])
                self._results.append((order, is_there))
            else:
                queue = self._queues.setdefault((agent_id, order.server_uuid), deque())
                queue.append(Work(order))

    def go_on(self) -> None:
        """Start or finish the next order of one server."""
        waiting = [queue for queue in self._queues.values() if queue]
        if not waiting:
            return
        queue = self.dice.choice(waiting)
        doing = queue[0]
        if doing.has_begun:
            queue.popleft()
            self._results.append((doing.order, self._end(doing)))
        else:
            doing.has_begun = True
            doing.before = self.there.get(doing.place)
            if doing.order.kind in COMING:
                self.there[doing.place] = max(_vcpus(doing.order), doing.before or 0)

    def _end(self, doing: Work) -> bool:
        order, place = doing.order, doing.place
        is_ok = self.dice.random() >= FAILS
        if order.kind == OrderKind.SEND:
            return self._send(order, place, is_ok)
        if order.kind in GOING:
            if is_ok:
                self.there.pop(place, None)
            return is_ok
        if order.kind not in COMING:
            is_ok = is_ok and place in self.there
        if not is_ok:
            self._put(place, doing.before)
        elif order.kind in COMING or order.kind == OrderKind.RETURN:
            self._put(place, _vcpus(order))
        return is_ok

    def _put(self, place: tuple[str, ServerId], vcpus: int | None) -> None:
        if vcpus is None:
            self.there.pop(place, None)
        else:
            self.there[place] = vcpus

    def _send(self, order: WorkOrder, place: tuple[str, ServerId], is_ok: bool) -> bool:
        if place not in self.there:
            # The order was sent before.
            return True
        if is_ok and order.body["migration_id"] not in self._stopped:
            self.there[order.body["dest_host"], order.server_uuid] = self.there.pop(place)
            return True
        return False

    def tell(self) -> None:
        """Report the result that is waiting longest."""
        if self._results:
            order, is_ok = self._results.pop(0)
            result = Result(order.id, is_ok, "" if is_ok else "No.")
            movers = self.movers
            movers.cloud.write(
                lambda tx: work.record(tx, order.agent_id, [result], movers.now, movers.settings)
            )

    def finish(self, rounds: int = 1000) -> None:
        """Carry out and report all orders, and the orders that follow from them."""
        for _ in range(rounds):
            for agent in (AGENT, OTHER):
                self.take(agent.id)
            if not self.is_busy:
                return
            self.go_on()
            self.tell()
        raise AssertionError("There are still orders after the maximum number of rounds.")

    def uncovered(self, but: Collection[tuple[str | None, ServerId]]) -> Iterator[str]:
        """Yield servers on hosts where neither the server's row nor a migration accounts for them.

        Some hosts and servers can be excluded.
        """
        for (host, uuid), vcpus in self.there.items():
            if (host, uuid) in but:
                continue
            holders = [uuid, *(each.uuid for each in self.movers.migrations(uuid))]
            held = sum(self.movers.held(each).get(host, {}).get("VCPU", 0) for each in holders)
            if held < vcpus:
                state = self.movers.state(uuid)
                yield f"{uuid} has {vcpus} on {host}, where {held} are held; it is {state}"


def _vcpus(order: WorkOrder) -> int:
    return int(order.body["flavor"]["vcpus"])
