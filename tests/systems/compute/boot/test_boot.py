"""Booting many requests in one transaction, against a real store."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from innkeeper.domain.compute import Booted, Server
from innkeeper.domain.errors import Invalid, QuotaExceeded
from innkeeper.domain.ids import AgentId, ServerId
from innkeeper.domain.keypairs import Keypair
from innkeeper.domain.slices import Computing, Scheduling
from innkeeper.store.queries.compute import orders, quota_usages, servers
from innkeeper.store.queries.compute.quota_usages import QuotaUsage
from innkeeper.systems.compute.accounts import keypairs
from innkeeper.systems.compute.boot.drivers import scheduler_of
from innkeeper.systems.compute.flavors import flavors, images
from tests.support.clouds import AGENT, IMAGE_ID, NOW, Cloud, cloud_in, faults, image, reported


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[Cloud]:
    """A cloud of two hosts with room for four small servers each."""
    started = cloud_in(tmp_path, reported("a"), reported("b", availability_zone="south"))
    yield started
    started.judge()
    started.close()


def rows(cloud: Cloud, outcome: Any) -> list[Server]:
    assert isinstance(outcome, Booted)
    uuids = outcome.server_ids
    found = cloud.read(lambda tx: [servers.by_uuid(tx, uuid) for uuid in uuids])
    return [each for each in found if each is not None]


def usage(cloud: Cloud, project_id: str = "project") -> QuotaUsage:
    found: QuotaUsage = cloud.read(lambda tx: quota_usages.of_project(tx, project_id))
    return found


def limited(tmp_path: Path, **quotas: int) -> Cloud:
    settings: dict[str, Any] = {"quota_instances": -1, "quota_cores": -1, "quota_ram": -1}
    settings |= quotas
    return cloud_in(tmp_path, reported("a"), reported("b"), computing=Computing(**settings))


def test_a_server_gets_its_row_its_claim_its_quota_and_its_order(cloud: Cloud) -> None:
    request = cloud.request(metadata={"k": "v"}, tags=("t",), key_name=None)
    (outcome,) = cloud.boot(request)
    assert outcome == Booted(request.batch_id, request.server_ids)
    (row,) = rows(cloud, outcome)
    assert (row.status, row.task_state, row.name) == ("BUILD", "spawning", "web")
    assert row.host in {"a", "b"}
    assert (row.metadata, row.tags, row.fault) == ({"k": "v"}, ("t",), None)
    assert usage(cloud) == QuotaUsage(1, 1, 1024)
    (order,) = cloud.read(lambda tx: orders.waiting(tx, AGENT.id, 0, 10))
    assert (order.server_uuid, order.host, order.kind) == (row.uuid, row.host, "build")
    index = cloud.table.index_by_name[row.host or ""]
    assert cloud.table.used["VCPU"][index] == 1


def test_only_one_of_two_requests_gets_the_last_room(cloud: Cloud) -> None:
    cloud.boot(cloud.request(7))
    outcomes = cloud.boot(*(cloud.request() for _ in range(5)))
    placed = [fault for fault in faults(outcomes) if fault is None]
    assert len(placed) == 1
    assert faults(outcomes)[0] is None, "who came first is served first"
    for outcome in outcomes[1:]:
        (row,) = rows(cloud, outcome)
        assert (row.status, row.task_state, row.host) == ("ERROR", None, None)
        assert row.fault is not None
        assert row.fault["code"] == 500
        assert row.fault["message"].startswith("No valid host was found. Of 2 hosts, 0 passed")
        assert (
            "CapacityFilter removed 2 (the host has too little free capacity; VCPU: 1 requested, "
            in (row.fault["message"])
        )
        assert "MEMORY_MB: 1024 requested, at most 0 left on one host" in row.fault["message"]


def test_servers_in_error_count_against_the_quota_but_hold_nothing(cloud: Cloud) -> None:
    (outcome,) = cloud.boot(cloud.request(9))
    assert len(rows(cloud, outcome)) == 9
    assert usage(cloud).servers == 9
    assert cloud.table.used["VCPU"].sum() == 0


COUNTS = [
    pytest.param(1, 1, 1, id="one is one"),
    pytest.param(3, 3, 3, id="exactly three"),
    pytest.param(1, 8, 8, id="as many as there is room for, which is all"),
    pytest.param(1, 20, 8, id="no more than there is room for"),
    pytest.param(8, 20, 8, id="the least that will do"),
    pytest.param(9, 20, None, id="less than the least is none at all"),
]


@pytest.mark.parametrize(("least", "most", "placed"), COUNTS)
def test_a_request_with_a_range_gets_as_many_servers_as_fit(
    cloud: Cloud, least: int, most: int, placed: int | None
) -> None:
    (outcome,) = cloud.boot(cloud.request(least, most))
    found = rows(cloud, outcome)
    if placed is None:
        assert Counter(row.status for row in found) == {"ERROR": least}
    else:
        assert Counter(row.status for row in found) == {"BUILD": placed}
        assert max(Counter(row.host for row in found).values()) <= 4
    assert usage(cloud).servers == len(found)
    assert [row.launch_index for row in found] == list(range(len(found)))
    names = [row.name for row in found]
    assert names == (["web"] if most == 1 else [f"web-{n + 1}" for n in range(len(found))])


def test_a_quota_is_shared_by_the_requests_of_one_batch(tmp_path: Path) -> None:
    cloud = limited(tmp_path, quota_instances=3)
    outcomes = cloud.boot(
        cloud.request(2),
        cloud.request(2),
        cloud.request(1),
        cloud.request(1),
        cloud.request(1, project_id="other"),
    )
    assert faults(outcomes) == [
        None,
        "QuotaExceeded: Quota exceeded for instances: Requested 2, but already used 2 of 3 "
        "instances",
        None,
        "QuotaExceeded: Quota exceeded for instances: Requested 1, but already used 3 of 3 "
        "instances",
        None,
    ]
    assert (usage(cloud).servers, usage(cloud, "other").servers) == (3, 1)
    cloud.judge()


def test_a_batch_counts_what_earlier_requests_got_against_the_quota(tmp_path: Path) -> None:
    cloud = limited(tmp_path, quota_instances=9)
    # There is room for eight, so the hosts limit the ninth, and not the quota.
    some, none = cloud.boot(cloud.request(1, 9), cloud.request())
    assert isinstance(some, Booted)
    assert isinstance(none, Booted)
    assert (len(some.server_ids), some.fault) == (8, None)
    assert none.fault is not None
    assert "No valid host" in none.fault


@pytest.mark.parametrize(
    ("quotas", "placed"),
    [
        pytest.param({"quota_instances": 2}, 2, id="servers are few"),
        pytest.param({"quota_cores": 3}, 3, id="vcpus are few"),
        pytest.param({"quota_ram": 4 * 1024 + 1023}, 4, id="memory is short"),
        pytest.param({"quota_cores": 3, "quota_ram": 1024}, 1, id="the shortest decides"),
        pytest.param({}, 5, id="nothing is limited"),
    ],
)
def test_the_quota_lowers_the_maximum_count(
    tmp_path: Path, quotas: dict[str, int], placed: int
) -> None:
    cloud = limited(tmp_path, **quotas)
    (outcome,) = cloud.boot(cloud.request(1, 5))
    assert len(rows(cloud, outcome)) == placed
    cloud.judge()


def test_a_quota_below_the_minimum_count_rejects_the_request(tmp_path: Path) -> None:
    cloud = limited(tmp_path, quota_instances=2, quota_cores=1, quota_ram=10)
    (refusal,) = cloud.boot(cloud.request(3))
    assert isinstance(refusal, QuotaExceeded)
    assert refusal.message == (
        "Quota exceeded for instances, cores, ram: Requested 3, 3, 3072, but already used "
        "0, 0, 0 of 2, 1, 10 instances, cores, ram"
    )
    assert usage(cloud) == QuotaUsage()
    cloud.judge()


def add_image(cloud: Cloud, **more: Any) -> None:
    cloud.write(lambda tx: images.create(tx, image(**more)))


REFUSED: list[Any] = [
    pytest.param({"flavor_id": "x"}, "Flavor x could not be found", id="an unknown flavor"),
    pytest.param({"flavor_id": "secret"}, "Flavor secret could not", id="a private flavor"),
    pytest.param({"flavor_id": "off"}, "Flavor off is disabled", id="a disabled flavor"),
    pytest.param({"flavor_id": "odd"}, "can be required", id="a flavor with an odd trait"),
    pytest.param({"image_id": "x"}, "Image x could not be found", id="an unknown image"),
    pytest.param({"key_name": "x"}, "Invalid key_name", id="an unknown key"),
    pytest.param({"availability_zone": "x"}, "zone is not available", id="an unknown zone"),
    pytest.param({"forced_host": "x", "is_admin": True}, "host x could not", id="no such host"),
]


@pytest.mark.parametrize(("requested", "message"), REFUSED)
def test_a_request_with_unknown_references_is_rejected_alone(
    cloud: Cloud, requested: dict[str, Any], message: str
) -> None:
    cloud.add_flavor("secret", is_public=False)
    cloud.add_flavor("off", is_disabled=True)
    cloud.add_flavor("odd", extra_specs={"trait:HW_CPU_X86_AVX": "perhaps"})
    outcomes = cloud.boot(cloud.request(), cloud.request(**requested), cloud.request())
    assert [isinstance(each, Booted) for each in outcomes] == [True, False, True]
    assert isinstance(outcomes[1], Invalid)
    assert message in outcomes[1].message
    assert usage(cloud).servers == 2


def test_a_private_flavor_is_for_its_projects_and_administrators(cloud: Cloud) -> None:
    cloud.add_flavor("secret", is_public=False)
    cloud.write(lambda tx: flavors.add_project(tx, "secret", "chosen"))
    outcomes = cloud.boot(
        cloud.request(flavor_id="secret", project_id="chosen"),
        cloud.request(flavor_id="secret", is_admin=True),
        cloud.request(flavor_id="secret"),
    )
    assert [isinstance(each, Booted) for each in outcomes] == [True, True, False]


IMAGES: list[Any] = [
    pytest.param({}, {}, None, id="one's own image"),
    pytest.param({"owner": "other"}, {}, "could not be found", id="another's image"),
    pytest.param({"owner": "other"}, {"is_admin": True}, None, id="an administrator sees all"),
    pytest.param({"owner": "other", "visibility": "public"}, {}, None, id="a public image"),
    pytest.param({"status": "queued"}, {}, "is not active", id="an image without its bits"),
    pytest.param({"min_ram_mb": 1024}, {}, None, id="memory just enough"),
    pytest.param({"min_ram_mb": 1025}, {}, "memory is too small", id="too little memory"),
    pytest.param({"min_disk_gb": 11}, {}, "disk is smaller", id="too little disk"),
    pytest.param({"properties": {"trait:X": "odd"}}, {}, "can be required", id="an odd trait"),
]


@pytest.mark.parametrize(("facts", "requested", "message"), IMAGES)
def test_images_must_be_visible_active_and_small_enough(
    cloud: Cloud, facts: dict[str, Any], requested: dict[str, Any], message: str | None
) -> None:
    add_image(cloud, **facts)
    (fault,) = faults(cloud.boot(cloud.request(image_id=IMAGE_ID, **requested)))
    assert fault is None if message is None else fault is not None and message in fault


def test_a_key_is_looked_up_with_its_user(cloud: Cloud) -> None:
    key = Keypair("user", "mine", "ssh", "ssh-ed25519 AAAA", "f", NOW)
    cloud.write(lambda tx: keypairs.add(tx, key, -1))
    outcomes = cloud.boot(
        cloud.request(key_name="mine"), cloud.request(key_name="mine", user_id="other")
    )
    assert [isinstance(each, Booted) for each in outcomes] == [True, False]


def test_a_requested_host_is_the_only_candidate(cloud: Cloud) -> None:
    refusal, outcome = cloud.boot(
        cloud.request(forced_host="nowhere"), cloud.request(forced_host="a")
    )
    assert isinstance(refusal, Invalid)
    assert [row.host for row in rows(cloud, outcome)] == ["a"]


def test_a_requested_zone_is_used_and_stored(cloud: Cloud) -> None:
    (outcome,) = cloud.boot(cloud.request(4, availability_zone="south"))
    assert {(row.host, row.asked_az) for row in rows(cloud, outcome)} == {("b", "south")}


def test_a_zone_without_hosts_is_unknown(cloud: Cloud) -> None:
    cloud.report(reported("b", availability_zone="nova"))
    (refusal,) = cloud.boot(cloud.request(availability_zone="south"))
    assert isinstance(refusal, Invalid)


def test_hosts_with_a_silent_agent_get_no_servers(cloud: Cloud) -> None:
    late = NOW + timedelta(seconds=61)
    (fault,) = faults(cloud.boot(cloud.request(now=late)))
    assert fault is not None
    assert "ComputeFilter removed 2" in fault
    assert "2 down (no heartbeat for 60 s)" in fault


def test_traits_and_capabilities_of_the_flavor_are_required(cloud: Cloud) -> None:
    specs = {"trait:HW_CPU_X86_AVX": "required", "capabilities:cores": ">= 8"}
    cloud.add_flavor("fast", extra_specs=specs)
    fast = frozenset({"HW_CPU_X86_AVX"})
    cloud.report(
        reported("slow", traits=fast, capabilities={"cores": 4}),
        reported("fast", traits=fast, capabilities={"cores": 8}),
    )
    (outcome,) = cloud.boot(cloud.request(2, flavor_id="fast"))
    assert {row.host for row in rows(cloud, outcome)} == {"fast"}


def test_an_order_goes_to_the_agent_of_its_host(cloud: Cloud) -> None:
    (outcome,) = cloud.boot(cloud.request(8))
    given = cloud.read(lambda tx: orders.waiting(tx, AGENT.id, 0, 100))
    assert {(each.server_uuid, each.host) for each in given} == {
        (row.uuid, row.host) for row in rows(cloud, outcome)
    }
    assert cloud.read(lambda tx: orders.waiting(tx, AgentId("x"), 0, 100)) == []


def test_the_same_requests_on_the_same_cloud_go_to_the_same_hosts(tmp_path: Path) -> None:
    def run(folder: Path) -> list[str | None]:
        folder.mkdir()
        cloud = cloud_in(folder, *(reported(f"h{n}") for n in range(6)))
        outcomes = cloud.boot(*(cloud.request(2) for _ in range(8)))
        return [row.host for each in outcomes for row in rows(cloud, each)]

    assert run(tmp_path / "one") == run(tmp_path / "two")


def test_filters_that_claims_depend_on_cannot_be_removed(tmp_path: Path) -> None:
    scheduling = Scheduling(default_host_filters=("ComputeFilter",))
    names = [each.NAME for each in scheduler_of(scheduling).pipeline.filters]
    assert names == [
        "ForcedHostFilter",
        "ComputeFilter",
        "RefusedHostsFilter",
        "VolumePoolFilter",
        "PcloudFilter",
        "LeaseFilter",
        "CapacityFilter",
    ]
    cloud = cloud_in(tmp_path, reported("a"), scheduling=scheduling)
    cloud.add_flavor("gold", extra_specs={"resources:CUSTOM_GOLD": "1"})
    outcomes = cloud.boot(cloud.request(5), cloud.request(flavor_id="gold"), cloud.request(4))
    assert [fault is None for fault in faults(outcomes)] == [False, False, True]
    cloud.judge()


def test_an_unknown_filter_is_rejected() -> None:
    with pytest.raises(ValueError, match="There is no host filter 'CapacityFliter'"):
        scheduler_of(Scheduling(default_host_filters=("CapacityFliter",)))


def test_an_empty_batch_does_nothing(cloud: Cloud) -> None:
    assert cloud.boot() == []
    assert cloud.read(lambda tx: servers.alive(tx, [ServerId("x")])) == []
