"""Entries of build plans create a server once, or fail and leave nothing behind."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from innkeeper.domain import key_rings
from innkeeper.domain.compute import Booted, BootRequest, Status
from innkeeper.domain.errors import Doubtful, Invalid, QuotaExceeded
from innkeeper.domain.slices import Computing
from innkeeper.domain.zones import EntryScope, Planned, ZonePlan
from innkeeper.store.queries.compute import quota_usages, servers
from innkeeper.store.transactions import Store, Tx
from innkeeper.systems.compute.boot import dry_run, entries
from innkeeper.systems.compute.boot.entries import EntryExpired, EntryStale, EntryUsed
from innkeeper.systems.compute.hosts import hosts
from innkeeper.systems.compute.servers import servers as server_rules
from innkeeper.systems.zones import sealing
from innkeeper.systems.zones.sealing import NotOurs, Sealer
from tests.support.clouds import NOW, Cloud, cloud_in, reported

SEALER_S = 60.0
SEALER = Sealer("east", [b"k" * 16], SEALER_S)
NONCE = bytes(12)


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[Cloud]:
    """A cloud of two hosts with room for four small servers each."""
    started = cloud_in(tmp_path, reported("a"), reported("b"))
    yield started
    started.reread()
    started.judge()
    started.close()


def planned(cloud: Cloud, count: int, **more: Any) -> tuple[Planned, ...]:
    """A plan of so many servers."""
    request = cloud.request(1, count, **more)

    def work(tx: Tx, context: Any) -> ZonePlan:
        return dry_run.plan(tx, context, request)

    (answer,) = cloud.carry_out(("decide", (work, NOW)))
    assert isinstance(answer, ZonePlan), answer
    return answer.servers


def bringing(cloud: Cloud, plan: Planned, **more: Any) -> BootRequest:
    """A request with the entry of one planned server."""
    request = cloud.request(1, **{"request_id": f"req-{cloud.ids.seed()}", **more})
    sealed = SEALER.seal(plan.destination, entries.scope_of(request), NONCE, NOW)
    return opened(request, SEALER, sealed)


def opened(request: BootRequest, sealer: Sealer | None, text: str) -> BootRequest:
    """The request restricted to the entry's host, as for a boot with an entry."""
    return entries.with_entry(request, entries.found(request, sealer, text))


def test_a_plan_claims_and_writes_nothing(cloud: Cloud) -> None:
    before = cloud.table.change_id
    plan = planned(cloud, 9)
    assert sorted(each.destination.host for each in plan) == ["a"] * 4 + ["b"] * 4
    assert len({each.destination.server_id for each in plan}) == 8
    assert planned(cloud, 9) != (), "as much is free as before"
    cloud.judge()
    assert cloud.table.change_id == before
    assert cloud.table.used["VCPU"].sum() == 0


def test_a_server_is_created_where_it_was_planned(cloud: Cloud) -> None:
    plan = planned(cloud, 8)
    # The scheduler itself would prefer to spread.
    on_a = [each for each in plan if each.destination.host == "a"]
    answers = cloud.boot(*(bringing(cloud, each) for each in on_a))
    assert all(isinstance(each, Booted) and each.fault is None for each in answers), answers
    found = cloud.read(lambda tx: servers.alive(tx, [each.destination.server_id for each in on_a]))
    assert [(each.host, each.status) for each in found] == [("a", Status.BUILD)] * 4


def test_an_entry_used_twice_in_a_batch_creates_one_server(cloud: Cloud) -> None:
    (plan,) = planned(cloud, 1)
    first, second, third = (bringing(cloud, plan) for _ in range(3))
    plain = cloud.request(1)
    made, other, *told = cloud.boot(first, plain, second, third)
    assert isinstance(made, Booted) and isinstance(other, Booted)
    assert made.server_ids == (plan.destination.server_id,)
    assert [type(each) for each in told] == [EntryUsed, EntryUsed]
    assert plan.destination.server_id in str(told[0])
    assert cloud.read(lambda tx: quota_usages.of_projects(tx, {"project"}))["project"].servers == 2


def test_an_invalid_request_does_not_use_up_an_entry(cloud: Cloud) -> None:
    """An error of one request does not affect another one with the same entry."""
    (plan,) = planned(cloud, 1)
    wrong = [bringing(cloud, plan, key_name="none") for _ in range(2)]
    refused, again, made, told = cloud.boot(
        *wrong, bringing(cloud, plan), bringing(cloud, plan, key_name="none")
    )
    assert [type(each) for each in (refused, again)] == [Invalid, Invalid]
    assert isinstance(made, Booted) and made.fault is None
    assert isinstance(told, EntryUsed)


def test_an_entry_expires_unless_its_server_exists(cloud: Cloud) -> None:
    """If the server exists, an error would make the client plan again, and boot a second server."""
    made, unused = planned(cloud, 2)
    cloud.boot(bringing(cloud, made))
    late = NOW + timedelta(seconds=SEALER_S)
    answers = cloud.boot(*(replace(bringing(cloud, each), now=late) for each in (made, unused)))
    assert [type(each) for each in answers] == [EntryUsed, EntryExpired]
    assert isinstance(
        cloud.boot(replace(bringing(cloud, unused), now=late - timedelta(microseconds=1)))[0],
        Booted,
    )


def test_an_entry_used_by_two_processes_creates_one_server(cloud: Cloud) -> None:
    beside = cloud.beside()
    (plan,) = planned(cloud, 1)
    assert isinstance(beside.boot(bringing(cloud, plan))[0], Booted)
    assert [type(each) for each in cloud.boot(bringing(cloud, plan))] == [EntryUsed]
    beside.close()


def test_an_entry_of_a_deleted_server_is_used_up(cloud: Cloud) -> None:
    (plan,) = planned(cloud, 1)
    cloud.boot(bringing(cloud, plan))
    cloud.write(lambda tx: server_rules.finish_deletes(tx, [plan.destination.server_id], NOW))
    assert [type(each) for each in cloud.boot(bringing(cloud, plan))] == [EntryUsed]


def test_an_entry_for_a_full_host_is_refused_without_a_trace(cloud: Cloud) -> None:
    plan = planned(cloud, 1)[0]
    taken = [cloud.request(1, forced_host=plan.destination.host) for _ in range(4)]
    cloud.boot(*taken)
    used = cloud.read(lambda tx: quota_usages.of_projects(tx, {"project"}))
    first, second = bringing(cloud, plan), bringing(cloud, plan)
    answers = cloud.boot(first, second)
    assert [type(each) for each in answers] == [EntryStale, EntryStale], "both are told the same"
    assert plan.destination.host not in str(answers[0]).split()
    assert cloud.read(lambda tx: servers.ever_known(tx, first.server_ids)) == set()
    assert cloud.read(lambda tx: quota_usages.of_projects(tx, {"project"})) == used
    # When there is room again, the entry is valid.
    gone = taken[0].server_ids
    cloud.write(lambda tx: server_rules.finish_deletes(tx, gone, NOW))
    assert isinstance(cloud.boot(first)[0], Booted)


def test_an_entry_is_refused_after_another_process_filled_the_host(cloud: Cloud) -> None:
    plan = planned(cloud, 1)[0]
    beside = cloud.beside()
    beside.boot(*(cloud.request(1, forced_host=plan.destination.host) for _ in range(4)))
    assert [type(each) for each in cloud.boot(bringing(cloud, plan))] == [EntryStale]
    beside.close()


def test_an_entry_does_not_apply_to_a_new_host_of_the_same_name(cloud: Cloud) -> None:
    plan = planned(cloud, 1)[0]
    host = cloud.host(plan.destination.host)
    cloud.write(lambda tx: hosts.remove_service(tx, host, NOW))
    assert [type(each) for each in cloud.boot(bringing(cloud, plan))] == [EntryStale]
    cloud.report(reported(host.name))
    assert cloud.host(host.name).provider_uuid != host.provider_uuid
    assert [type(each) for each in cloud.boot(bringing(cloud, plan))] == [EntryStale]


def test_an_entry_is_refused_without_quota(tmp_path: Path) -> None:
    cloud = cloud_in(tmp_path, reported("a"), computing=Computing(quota_instances=1))
    plan = planned(cloud, 4)
    assert len(plan) == 1
    cloud.boot(cloud.request(1))
    assert [type(each) for each in cloud.boot(bringing(cloud, plan[0]))] == [QuotaExceeded]
    cloud.close()


class DeafStore(Store):
    """A store that loses the acknowledgement of its next commit."""

    is_deaf = True

    @contextmanager
    def write(self) -> Iterator[Tx]:
        """See ``Store``."""
        with super().write() as tx:
            yield tx
        if self.is_deaf:
            self.is_deaf = False
            raise Doubtful("The database did not say.")


def test_a_retry_after_a_lost_acknowledgement_finds_the_server(cloud: Cloud) -> None:
    plan = planned(cloud, 1)[0]
    cloud.store = DeafStore(cloud.store.backend, cloud.store.engines)
    mine, another = bringing(cloud, plan), bringing(cloud, plan)
    assert isinstance(cloud.boot(mine)[0], Booted)
    assert cloud.read(lambda tx: cloud.executor.already_booted(tx, mine)) is not None
    assert cloud.read(lambda tx: cloud.executor.already_booted(tx, another)) is None
    assert isinstance(cloud.boot(another)[0], EntryUsed)


def test_an_entry_is_bound_to_its_request(cloud: Cloud) -> None:
    plan = planned(cloud, 1)[0]
    asked = cloud.request(1, hints={"a": 1, "b": [2]})
    sealed = SEALER.seal(plan.destination, entries.scope_of(asked), NONCE, NOW)
    same = replace(asked, name="other", metadata={"k": "v"}, hints={"b": [2], "a": 1})
    assert opened(same, SEALER, sealed).destination == plan.destination
    for more in (
        {"flavor_id": "other"},
        {"image_id": "other"},
        {"availability_zone": "nova"},
        {"forced_host": plan.destination.host},
        {"hints": {"a": 1}},
        {"project_id": "other"},
    ):
        with pytest.raises(NotOurs):
            opened(replace(asked, **more), SEALER, sealed)
    with pytest.raises(NotOurs):
        opened(asked, None, sealed)
    with pytest.raises(Invalid, match="boots only one server"):
        opened(replace(asked, count_max=2), SEALER, sealed)


def test_every_offer_is_sealed_with_its_own_item(cloud: Cloud) -> None:
    plan = planned(cloud, 4)
    scope = EntryScope("project", "d")
    placed = sealing.planned_offers(plan, SEALER, "tree")
    # After the last number, the nonces continue at 0.
    made = SEALER.seal_all([each.place for each in placed], scope, b"\xff" * 12, NOW)
    nonces = [key_rings.unpadded_bytes_of(each)[9:21] for each in made]
    assert nonces == [b"\xff" * 12, *(bytes(11) + bytes([number]) for number in range(3))]
    told = [SEALER.open(each, scope) for each in made]
    assert [each.place for each in told] == [each.destination for each in plan]
    assert len(set(made)) == len({each.item for each in placed}) == 4
    again = sealing.planned_offers(plan, SEALER, "tree")
    other = sealing.planned_offers(plan, SEALER, "another")
    assert [each.item for each in again] == [each.item for each in placed]
    assert not {each.item for each in other} & {each.item for each in placed}
