"""Creates that are settled after their clients have the answer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

import pytest

from innkeeper.clients.pods import PodSilent
from innkeeper.domain.errors import Unavailable
from innkeeper.domain.pods import Pod, PodRouting
from innkeeper.engine.pods.told_creates import Left, ToldCreates
from tests.support.pod_rows import pod_of

POD = pod_of(1)
NOW = POD.created_at
ID = "made"


def begun(project_id: str, mark: str = "mark", number: int = 1) -> PodRouting:
    """Return the routing of a create that a pod was asked for."""
    return PodRouting(1, mark, None, POD.id, project_id, "server", NOW, NOW, number=number)


@dataclass
class Records:
    """Records what is settled, once it may. ``marked`` is what has the mark of a create."""

    may_go_on: asyncio.Event = field(default_factory=asyncio.Event)
    settled: list[tuple[str, Sequence[str]]] = field(default_factory=list)
    fault: Exception | None = None
    left: Sequence[Left] = ()
    marked: Sequence[str] | None = (ID,)
    reads: int = 0

    def creates(self, wait_max_s: float = 5.0) -> ToldCreates:
        """Return what is tested."""
        return ToldCreates(self._settle, self._find, self._read, wait_max_s)

    async def _settle(self, routing: PodRouting, found: Sequence[str], _: Pod) -> list[str]:
        await self.may_go_on.wait()
        fault, self.fault = self.fault, None
        if fault is not None:
            raise fault
        self.settled.append((routing.project_id, found))
        return list(found)

    async def _find(self, _routing: PodRouting, _pod: Pod) -> Sequence[str]:
        if self.marked is None:
            raise PodSilent("it does not answer")
        return self.marked

    async def _read(self) -> Sequence[Left]:
        self.reads += 1
        if self.fault is not None:
            raise self.fault
        return self.left


def run(story: Callable[[Records], Awaitable[None]]) -> Records:
    """Run a story, and return what it recorded."""

    async def told() -> Records:
        records = Records()
        await story(records)
        return records

    return asyncio.run(told())


def test_only_requests_of_the_project_and_of_administrators_wait() -> None:
    async def story(records: Records) -> None:
        creates = records.creates()
        creates.begin(begun("acme"), [ID], POD)
        await creates.wait("other")
        assert records.settled == []
        waiting = [asyncio.create_task(creates.wait(each)) for each in ("acme", None)]
        await asyncio.sleep(0.01)
        assert not any(each.done() for each in waiting)
        records.may_go_on.set()
        await asyncio.gather(*waiting)
        assert records.settled == [("acme", [ID])]

    run(story)


def test_what_could_not_be_settled_is_looked_for_by_the_next_request() -> None:
    async def story(records: Records) -> None:
        records.may_go_on.set()
        creates = records.creates()
        await creates.wait("acme")
        for fault in (Unavailable("the database is away"), RuntimeError("a fault")):
            records.fault, records.settled = fault, []
            creates.begin(begun("acme"), ["told"], POD)
            await creates.wait("acme")
            assert records.settled == []
            await creates.wait("acme")
            assert records.settled == [("acme", (ID,))]

    run(story)


def test_what_an_earlier_process_left_is_looked_for_once() -> None:
    async def story(records: Records) -> None:
        records.may_go_on.set()
        records.left = [(begun("acme"), POD), (begun("acme", number=2), POD), (begun("b"), POD)]
        creates = records.creates()
        await asyncio.gather(creates.wait("acme"), creates.wait("acme"))
        # Of two servers, only one has the mark yet.
        assert records.settled == [("acme", (ID,))]
        await creates.wait(None)
        assert records.settled == [("acme", (ID,)), ("b", (ID,))]
        await creates.wait(None)
        assert len(records.settled) == 2

    assert run(story).reads == 1


def test_a_pod_that_does_not_answer_is_asked_again_only_before_a_404() -> None:
    async def story(records: Records) -> None:
        records.may_go_on.set()
        records.left, records.marked = [(begun("acme"), POD)], None
        creates = records.creates()
        for _ in range(2):
            await creates.wait("acme")
        assert not await creates.has_looked_again("other")
        with pytest.raises(Unavailable):
            await creates.has_looked_again("acme")
        records.marked = [ID]
        await creates.wait("acme")
        assert records.settled == []
        assert await creates.has_looked_again("acme")
        assert records.settled == [("acme", [ID])]
        assert not await creates.has_looked_again(None)

    run(story)


def test_nothing_is_served_while_what_was_told_is_not_recorded() -> None:
    async def story(records: Records) -> None:
        creates = records.creates(wait_max_s=0.01)
        creates.begin(begun("acme"), [ID], POD)
        with pytest.raises(Unavailable):
            await creates.wait("acme")
        records.may_go_on.set()
        await creates.wait("acme")

    run(story)


def test_what_was_left_is_read_again_if_the_database_was_away() -> None:
    async def story(records: Records) -> None:
        records.may_go_on.set()
        records.left, records.fault = [(begun("acme"), POD)], Unavailable("away")
        creates = records.creates()
        await creates.wait("acme")
        records.fault = None
        await creates.wait("acme")
        assert records.settled == [("acme", (ID,))]

    run(story)
