"""A server group that is no longer needed in a pod is removed, unless a create begins to use it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from innkeeper.clients.pods import PodAnswer, PodCall, PodSilent
from innkeeper.domain.door import GROUP, SERVER, DoorLimits
from innkeeper.domain.grouping import ServerGroup
from innkeeper.domain.pods import Pod, PodRouting
from innkeeper.engine.pods.group_provisioning import GroupProvisioning
from innkeeper.store.transactions import Store
from innkeeper.systems.compute.grouping import groups
from innkeeper.systems.pods import pod_groups, routings
from tests.support.played_engines import PlayedEngine
from tests.support.pod_rows import add_pod
from tests.support.stores import NOW

UUID = "a0000000-0000-4000-8000-000000000001"
MARK = "b0000000-0000-4000-8000-000000000001"
MINE = ServerGroup(UUID, "mine", "acme", "ann", "anti-affinity", None, NOW)
LATER = NOW + timedelta(hours=2)
TIMEOUT_S = 1.0


@dataclass
class Played(PlayedEngine):
    """An engine over a store, and a pod that does something while it deletes a group."""

    store: Store
    during: Callable[[], Awaitable[None]] | None = None
    status: int = 204
    now: datetime = LATER
    asked: list[str] = field(default_factory=list)
    groups: list[str] = field(default_factory=lambda: ["old"])

    async def send(self, _: object, call: PodCall) -> PodAnswer:
        """Answer a request about server groups."""
        self.asked.append(f"{call.method} {call.target.partition('?')[0]}")
        if call.method == "DELETE":
            if self.status == 204:
                self.groups.remove(call.target.rpartition("/")[2])
            if self.during is not None:
                await self.during()
            return PodAnswer(self.status, {}, b"")
        if call.method == "GET":
            rows = [{"id": each, "name": UUID} for each in self.groups]
            return PodAnswer(200, {}, msgspec.json.encode({"server_groups": rows}))
        self.groups.append("new")
        return PodAnswer(200, {}, msgspec.json.encode({"server_group": {"id": "new"}}))

    async def of_project(self, _: Pod, name: str) -> Any:
        """Return a login."""
        return SimpleNamespace(project_name=name)

    def provisioning(self) -> GroupProvisioning:
        """Return what makes and removes groups."""
        podding = SimpleNamespace(pod_request_timeout_s=TIMEOUT_S)
        clouds = SimpleNamespace(engine=self, client=self, clock=lambda: self.now, podding=podding)
        return GroupProvisioning(cast("Any", clouds), cast("Any", self))

    def idle(self) -> tuple[PodRouting, Pod]:
        """Make a group that is idle in a pod. Return its routing and the pod."""
        with self.store.write() as tx:
            pod = add_pod(tx, 1)
            groups.create(tx, MINE, -1)
            wanted = PodRouting(0, UUID, "old", pod.id, "acme", GROUP, NOW, NOW)
            routings.create(tx, wanted)
            (found,) = pod_groups.unused(tx, [pod.id], LATER, 10)
        return found, pod

    def begin_server(self, pod: Pod) -> None:
        """Record the begin of a server in the group."""
        wanted = PodRouting(0, MARK, None, pod.id, "acme", SERVER, LATER, LATER, number=1)
        with self.store.write() as tx:
            routings.begin(tx, replace(wanted, server_group_uuid=UUID), DoorLimits(-1))

    def left(self) -> list[str | None]:
        """Return the ids in the routings of the group."""
        with self.store.read() as tx:
            return [each.bottom_id for each in routings.of_resources(tx, [UUID], GROUP)]


def test_a_create_during_the_removal_gets_a_new_group(store: Store) -> None:
    it = Played(store)
    routing, pod = it.idle()
    creates: list[asyncio.Task[str]] = []

    async def begin() -> None:
        it.begin_server(pod)
        made = it.provisioning().group(pod, cast("Any", None), MINE)
        creates.append(asyncio.ensure_future(made))
        await asyncio.sleep(0)

    async def remove() -> str:
        it.during = begin
        assert await it.provisioning().remove(routing, pod)
        return await creates[0]

    assert asyncio.run(remove()) == "new"
    assert (it.groups, it.left()) == (["new"], ["new"])


def test_a_group_that_a_create_uses_again_is_not_removed(store: Store) -> None:
    it = Played(store)
    routing, pod = it.idle()
    it.begin_server(pod)
    assert not asyncio.run(it.provisioning().remove(routing, pod))
    with store.write() as tx:
        routings.forget(tx, routings.known(tx, MARK, SERVER)[0].id)
    # The create was refused, but another one may follow soon.
    assert asyncio.run(it.provisioning().group(pod, cast("Any", None), MINE)) == "old"
    assert not asyncio.run(it.provisioning().remove(routing, pod))
    assert (it.asked, it.left()) == ([], ["old"])


def test_a_group_that_this_service_deleted_is_removed_with_its_servers(store: Store) -> None:
    it = Played(store)
    routing, pod = it.idle()
    it.begin_server(pod)
    with store.write() as tx:
        groups.delete(tx, UUID)
    assert asyncio.run(it.provisioning().remove(routing, pod))
    assert (it.groups, it.left()) == ([], [])


def test_a_group_whose_removal_failed_is_found_by_its_name(store: Store) -> None:
    it = Played(store, status=500)
    routing, pod = it.idle()
    with pytest.raises(PodSilent):
        asyncio.run(it.provisioning().remove(routing, pod))
    assert it.left() == [None]
    it.now += timedelta(seconds=3 * TIMEOUT_S)
    assert asyncio.run(it.provisioning().group(pod, cast("Any", None), MINE)) == "old"
    assert it.left() == ["old"]
