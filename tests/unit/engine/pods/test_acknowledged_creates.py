"""Creates that are settled after their clients have the answer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

import pytest
from structlog.testing import capture_logs

from innkeeper.clients.pods import PodSilent
from innkeeper.domain.errors import Unavailable
from innkeeper.domain.pods import Pod, PodRouting
from innkeeper.engine.pods.acknowledged_creates import AcknowledgedCreates, Left, Reads
from tests.support.pod_rows import pod_of

POD = pod_of(1)
NOW = POD.created_at
ID = "made"


def begun(project_id: str, mark: str = "mark", number: int = 1) -> PodRouting:
    """Return the routing of a create that a pod was asked for."""
    return PodRouting(1, mark, None, POD.id, project_id, "server", NOW, NOW, number=number)


@dataclass
class Records:
    """Records what is settled, once the test allows it. ``marked`` are resources with a create's
    mark."""

    may_go_on: asyncio.Event = field(default_factory=asyncio.Event)
    settled: list[tuple[str, Sequence[str]]] = field(default_factory=list)
    fault: Exception | None = None
    left: Sequence[Left] = ()
    marked: Sequence[str] | None = (ID,)
    reads: int = 0
    hastened: int = 0

    def creates(self, wait_max_s: float = 5.0) -> AcknowledgedCreates:
        """Return the object that is tested."""
        return AcknowledgedCreates(self._settle, self._find, self._read, self._hasten, wait_max_s)

    def begin(self, creates: AcknowledgedCreates, found: Sequence[str]) -> None:
        """Begin to record what a pod has made for a project."""
        routing = begun("acme")
        creates.begin(routing, POD, self._settle(routing, found, POD))

    def _hasten(self) -> None:
        self.hastened += 1

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
        records.begin(creates, [ID])
        await creates.wait("other")
        assert records.settled == []
        assert records.hastened == 0
        waiting = [asyncio.create_task(creates.wait(each)) for each in ("acme", None)]
        await asyncio.sleep(0.01)
        assert not any(each.done() for each in waiting)
        assert records.hastened == 2
        records.may_go_on.set()
        await asyncio.gather(*waiting)
        assert records.settled == [("acme", [ID])]

    run(story)


def test_a_create_waits_for_pods_but_not_for_what_is_recorded_with_it() -> None:
    async def story(records: Records) -> None:
        creates = records.creates()
        await creates.wait("acme")
        records.begin(creates, [ID])
        await creates.wait("acme", Reads.CREATE)
        assert (records.settled, records.hastened) == ([], 0)
        records.may_go_on.set()
        await creates.wait("acme")
        records.left = [(begun("acme"), POD)]
        creates = records.creates()
        await creates.wait("acme", Reads.CREATE)
        assert records.settled == [("acme", [ID]), ("acme", (ID,))]

    run(story)


def test_what_follows_a_delete_delays_all_but_requests_for_one_resource() -> None:
    async def story(records: Records) -> None:
        creates = records.creates()
        looked = asyncio.Event()

        async def written() -> None:
            await records.may_go_on.wait()

        async def ends() -> None:
            await looked.wait()
            await creates.recorded(written())

        creates.follow("acme", ends())
        await creates.wait("acme", Reads.ONE)
        assert records.hastened == 0
        waiting = asyncio.create_task(creates.wait("acme", Reads.CREATE))
        await asyncio.sleep(0.01)
        assert records.hastened == 1
        looked.set()
        await asyncio.sleep(0.01)
        # The write came after the request that waits for it.
        assert records.hastened == 2
        assert not waiting.done()
        records.may_go_on.set()
        await waiting

    run(story)


def test_a_delete_that_is_not_settled_stops_nothing() -> None:
    async def story(records: Records) -> None:
        creates = records.creates()

        async def fails() -> None:
            raise Unavailable("the database is away")

        with capture_logs() as logs:
            creates.follow("acme", fails())
            await creates.wait("acme")
        assert [each["event"] for each in logs] == ["pod_delete_not_settled"]

    run(story)


def test_what_could_not_be_settled_is_looked_for_by_the_next_request() -> None:
    async def story(records: Records) -> None:
        records.may_go_on.set()
        creates = records.creates()
        await creates.wait("acme")
        for fault in (Unavailable("the database is away"), RuntimeError("a fault")):
            records.fault, records.settled = fault, []
            records.begin(creates, ["told"])
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


def test_no_request_of_a_project_is_served_before_its_told_creates_are_recorded() -> None:
    async def story(records: Records) -> None:
        creates = records.creates(wait_max_s=0.01)
        records.begin(creates, [ID])
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
