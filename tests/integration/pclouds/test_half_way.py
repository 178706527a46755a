"""Requests with several commits; between two commits, the pcloud gets another owner."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from innkeeper.domain.errors import Refusal, Unavailable
from innkeeper.domain.identity import RequestContext
from innkeeper.domain.moves import Initiator
from innkeeper.domain.slices import Dedicating, Settings
from innkeeper.domain.versions import Version
from innkeeper.entrypoints.api.pclouds.routes import PCLOUD_ROUTES
from innkeeper.entrypoints.api.policy import OsloPolicy
from innkeeper.entrypoints.api.routing import Answer, Call
from innkeeper.entrypoints.api.site import Site
from innkeeper.entrypoints.api.tables import COMPUTE
from innkeeper.store.queries.pclouds import pclouds as pcloud_rows
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.hosts import hosts as compute_hosts
from innkeeper.systems.compute.hosts.hosts import ServiceChange
from innkeeper.systems.pclouds import host_flavors, hosts, pclouds
from innkeeper.systems.pclouds.bulk_allocation import TAKEN_AT_ONCE
from innkeeper.systems.pclouds.context import PcloudContext
from innkeeper.systems.pclouds.hosts import HostRequest
from innkeeper.systems.pclouds.ratio_rollout import ROLLED_OUT_AT_ONCE
from tests.support.clouds import NOW, Cloud, cloud_in, reported
from tests.support.statements import Counter

SETTINGS = Dedicating(quota_pcloud_units=-1)
CONTEXT = PcloudContext(SETTINGS, 60.0, Initiator("req-1", "office", "admin"), NOW)
UUID = "b0000000-0000-4000-8000-000000000001"
LAB, SHOP = "lab", "shop"
FREE = 25
NAMES = [f"host-{number:02}" for number in range(FREE)]
PCLOUD = "/v2.1/os-pclouds/{pcloud_id}"
GONE = f"Pcloud {UUID} could not be found."


class Turns:
    """Reads and writes for a handler, with an optional action before its second write."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud
        self._count = 0
        self.happens: Callable[[], Any] = list

    async def write(self, work: Callable[[Tx], Any], lines: int = 1) -> Any:
        self._count += 1
        if self._count == 2:
            self.happens()
        return self._cloud.write(work)

    async def read(self, work: Callable[[Tx], Any]) -> Any:
        return self._cloud.read(work)


class Door:
    """Requests for a pcloud and its hosts, without HTTP."""

    def __init__(self, cloud: Cloud) -> None:
        self.cloud = cloud
        self._policy = OsloPolicy(COMPUTE.rules, None)

    def ask(
        self,
        project_id: str,
        method: str,
        path: str = PCLOUD,
        body: Any = None,
        happens: Callable[[], Any] = list,
    ) -> Answer:
        """Send a request as a project's member; ``happens`` is called before the second write."""
        (route,) = [each for each in PCLOUD_ROUTES if (each.method, each.path) == (method, path)]
        turns = Turns(self.cloud)
        turns.happens = happens
        parts: Any = turns
        site = Site(
            settings=Settings(dedicating=SETTINGS),
            engine=parts,
            recordings=parts,
            policy=self._policy,
            authenticator=parts,
            clock=lambda: NOW,
            ids=self.cloud.ids,
        )
        call = Call(
            site=site,
            api=COMPUTE,
            route=route,
            context=RequestContext("req-1", "ann", project_id, frozenset({"member"})),
            version=Version(2, 100),
            params={"pcloud_id": UUID},
            query={},
            body=body,
            headers={},
            address="",
            mount="",
            now=NOW,
        )

        async def answer() -> Answer:
            return await route.handler(call)

        return asyncio.run(answer())

    def take(
        self,
        project_id: str,
        names: list[str],
        token: str | None = None,
        happens: Callable[[], Any] = list,
    ) -> tuple[int, list[str], list[Any]]:
        """Request hosts of these names; return the allocated ones and the failures."""
        wanted = [{"name": name, "host_flavor": "large"} for name in names]
        body = {"hosts": wanted, **({} if token is None else {"client_token": token})}
        answer = self.ask(project_id, "POST", f"{PCLOUD}/hosts", body, happens)
        found, failures = answer.body["hosts"], answer.body["failures"]
        return answer.status, [each["name"] for each in found], failures

    def act(self, work: Callable[..., Any], *given: Any) -> Any:
        """Change the pcloud as an administrator."""
        return self.cloud.write(lambda tx: work(tx, pclouds.get(tx, UUID), *given, CONTEXT))


@pytest.fixture
def door(tmp_path: Path) -> Door:
    """A pcloud of the lab, and many free hosts."""
    machine_names = [f"m{number:02}" for number in range(FREE)]
    made = cloud_in(tmp_path, *(reported(name) for name in machine_names))

    def furnish(tx: Tx) -> None:
        flavor = host_flavors.create(tx, made.ids.uuid(), "large", "", 1, NOW)
        pclouds.create(tx, UUID, LAB, {"name": "ours"}, CONTEXT)
        for name in machine_names:
            closed = ServiceChange(is_disabled=True)
            compute_hosts.change_service(tx, compute_hosts.by_name(tx, name), closed, NOW)
            host_flavors.add_host(tx, flavor, name, NOW)

    made.write(furnish)
    return Door(made)


def give_away(door: Door) -> None:
    door.act(pclouds.transfer, SHOP)
    door.act(pclouds.update, {"name": "of the shop"})


def give_away_and_leave(door: Door) -> None:
    give_away(door)
    door.act(pclouds.drop, LAB)


def release_all(door: Door) -> None:
    def work(tx: Tx, pcloud: Any, context: PcloudContext) -> None:
        for member in hosts.page(tx, pcloud):
            hosts.release(tx, pcloud, member, context)

    door.act(work)


def delete(door: Door) -> None:
    release_all(door)
    door.act(pclouds.delete)


def fall_silent(_: Door) -> None:
    raise Unavailable("The database does not answer.")


def taken(door: Door) -> list[str]:
    found = door.cloud.read(lambda tx: hosts.page(tx, pclouds.get(tx, UUID)))
    return [each.name for each in found]


# -- ratios ------------------------------------------------------------------------------------


def settle(door: Door, happens: Callable[[], Any] = list) -> dict[str, Any]:
    """Change the ratio of many hosts; return the response."""
    for name in NAMES:
        door.act(hosts.allocate, HostRequest(name, "large"))
    body = {"pcloud": {"cpu_allocation_ratio": 2.0}}
    answer = door.ask(LAB, "PUT", body=body, happens=happens)
    assert answer.status == 200
    shown: dict[str, Any] = answer.body["pcloud"]
    return shown


def test_an_update_reports_the_final_state_to_the_owner(door: Door) -> None:
    assert settle(door)["hosts_settling"] == 0


@pytest.mark.parametrize("happens", [give_away, give_away_and_leave, delete])
def test_an_update_reports_its_own_state_after_a_transfer(
    door: Door, happens: Callable[[Door], Any]
) -> None:
    shown = settle(door, partial(happens, door))
    assert (shown["name"], shown["owner"], shown["cpu_allocation_ratio"]) == ("ours", LAB, 2.0)
    assert shown["hosts_settling"] == FREE - ROLLED_OUT_AT_ONCE


# -- several hosts -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("happens", "message"),
    [
        (give_away, "os-pclouds:hosts:allocate"),
        (give_away_and_leave, GONE),
        (delete, GONE),
        (fall_silent, "The database does not answer."),
    ],
)
def test_allocated_hosts_are_reported_when_a_later_step_fails(
    door: Door, happens: Callable[[Door], Any], message: str
) -> None:
    status, found, failures = door.take(LAB, NAMES, happens=partial(happens, door))
    assert (status, found) == (201, NAMES[:TAKEN_AT_ONCE])
    assert [each["name"] for each in failures] == NAMES[TAKEN_AT_ONCE:]
    (code,) = {each["code"] for each in failures}
    (told,) = {each["message"] for each in failures}
    assert code == Refusal.code
    assert message in told


def test_a_repeated_request_continues_after_a_failed_step(door: Door) -> None:
    failures = door.take(LAB, NAMES, "job-1", partial(fall_silent, door))[2]
    assert len(failures) == FREE - TAKEN_AT_ONCE
    assert door.take(LAB, NAMES, "job-1") == (201, NAMES, [])
    assert taken(door) == NAMES


def test_a_request_that_fails_before_any_allocation_is_refused(door: Door) -> None:
    give_away_and_leave(door)
    with pytest.raises(Refusal, match=GONE):
        door.take(LAB, NAMES)
    with pytest.raises(Refusal, match="does not answer"):
        # The first step fails, too, because no host is left for it.
        door.act(hosts.allocate_many, [HostRequest(name, "large") for name in NAMES])
        door.take(SHOP, NAMES, happens=partial(fall_silent, door))


# -- another owner -----------------------------------------------------------------------------


def test_a_client_token_of_the_former_owner_means_nothing(door: Door) -> None:
    assert door.take(LAB, NAMES[:3], "job-1") == (201, NAMES[:3], [])
    give_away(door)
    release_all(door)
    assert door.take(SHOP, NAMES[:3], "job-1") == (201, NAMES[:3], [])
    assert taken(door) == NAMES[:3]


# -- lists -------------------------------------------------------------------------------------


@pytest.mark.parametrize("viewer", [LAB, SHOP])
def test_listing_rollouts_takes_constant_statements(door: Door, viewer: str) -> None:
    counter, counts = Counter(door.cloud), []
    for count in (1, 4):
        door.cloud.write(partial(add_unsettled, door, count))
        counts.append(counter.of(lambda: door.ask(viewer, "GET", "/v2.1/os-pclouds")))
    few, many = counts
    assert few == many


def add_unsettled(door: Door, count: int, tx: Tx) -> None:
    """Create pclouds with rollouts, which the shop may use as well."""
    for _ in range(count):
        made = pclouds.create(tx, door.cloud.ids.uuid(), LAB, {"name": "more"}, CONTEXT)
        pclouds.authorize(tx, made, SHOP, CONTEXT)
        hosts.allocate(tx, made, HostRequest("one", "large"), CONTEXT)
        pcloud_rows.roll_out(tx, made.id, 0)


def test_rollouts_are_not_counted_for_other_projects(door: Door) -> None:
    door.cloud.write(partial(add_unsettled, door, 2))
    counter = Counter(door.cloud)
    owner, guest = (
        counter.of(partial(door.ask, viewer, "GET", "/v2.1/os-pclouds")) for viewer in (LAB, SHOP)
    )
    assert guest == owner - 2
