"""The life of volumes: claims, orders, results that are late, repeated or bad, and deletions."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from innkeeper.domain.compute import Booted
from innkeeper.domain.errors import InUse, Invalid, NotFound, Refusal, VolumeQuotaExceeded
from innkeeper.domain.ids import ConsumerUuid
from innkeeper.domain.orders import OrderKind
from innkeeper.domain.slices import Volumes
from innkeeper.domain.volumes import VolumeBusy, VolumeStatus, VolumeUsage
from innkeeper.systems.compute.hosts import hosts, work
from innkeeper.systems.compute.servers.results import Result
from innkeeper.systems.placement import claims
from innkeeper.systems.volumes import audit, quotas, transfers, types, volumes
from innkeeper.systems.volumes.creating import CreatedVolume
from tests.support.clouds import AGENT, NOW, cloud_in, reported
from tests.support.pools import RACK, add_pool, join, pool_uuid, used
from tests.support.statements import Counter
from tests.support.volume_clouds import VolumeCloud

AVAILABLE = {"status": VolumeStatus.AVAILABLE}


def test_volumes_fill_hosts_and_never_more(it: VolumeCloud) -> None:
    made = [it.create(60) for _ in range(3)]
    assert [each.status for each in made] == ["creating", "creating", "error"]
    assert {each.host for each in made[:2]} == {"h1", "h2"}
    assert [it.held(each.uuid) for each in made] == [60, 60, 0]
    fault = made[2].fault
    assert fault is not None
    assert "Of 2 pools, 0 passed all filters: PoolCapacityFilter removed 2" in fault
    assert "At most 40 GiB are free" in fault
    it.delete(made[2].uuid)
    assert it.status(made[2].uuid) is None


def test_servers_and_volumes_share_one_account(it: VolumeCloud) -> None:
    it.create(95)
    it.create(95)
    (refused,) = it.cloud.boot(it.cloud.request())
    assert "DISK_GB: 10 requested" in str(getattr(refused, "fault", None))


def test_a_failed_make_keeps_the_claim_until_the_volume_is_dropped(it: VolumeCloud) -> None:
    volume = it.create(5)
    (order,) = it.orders()
    it.settle(order, is_ok=False)
    failed = it.volume(volume.uuid)
    assert (failed.status, it.held(volume.uuid)) == (VolumeStatus.ERROR, 5)
    assert failed.fault == "A host could not carry out the order 'make-volume'."
    it.delete(volume.uuid)
    assert it.kinds() == [OrderKind.DROP_VOLUME]
    it.settle_all()
    assert (it.status(volume.uuid), it.held(volume.uuid)) == (None, 0)


def test_a_make_that_is_late_fails_and_its_result_changes_nothing(it: VolumeCloud) -> None:
    volume = it.create(5)
    (order,) = it.orders()
    it.sweep()
    assert it.status(volume.uuid) == VolumeStatus.ERROR
    assert it.settle(order) is False
    assert it.status(volume.uuid) == VolumeStatus.ERROR


def test_a_drop_waits_for_its_host_however_long(it: VolumeCloud) -> None:
    volume = it.made(5)
    it.delete(volume.uuid)
    it.sweep(NOW + timedelta(days=3))
    assert it.kinds() == [OrderKind.DROP_VOLUME]
    it.delete(volume.uuid)
    assert it.kinds() == [OrderKind.DROP_VOLUME]
    (order,) = it.orders()
    it.settle(order, is_ok=False)
    assert (it.status(volume.uuid), it.held(volume.uuid)) == (VolumeStatus.ERROR_DELETING, 5)
    it.delete(volume.uuid)
    it.settle_all()
    assert it.status(volume.uuid) is None


def test_an_extension_claims_first_and_gives_back_after_a_failure(it: VolumeCloud) -> None:
    volume = it.made(5)
    it.extend(volume.uuid, 50)
    assert it.held(volume.uuid) == 50
    (order,) = it.orders()
    assert order.body["size_gb"] == 50
    it.settle(order, is_ok=False)
    failed = it.volume(volume.uuid)
    assert (failed.status, failed.size_gb) == (VolumeStatus.ERROR_EXTENDING, 5)
    assert it.held(volume.uuid) == 5


@pytest.mark.parametrize("is_late", [False, True])
def test_a_failed_extension_without_an_allocation_holds_up_no_other_order(
    it: VolumeCloud, *, is_late: bool
) -> None:
    extended = it.made(5)
    it.extend(extended.uuid, 50)
    other = it.create(3)
    it.cloud.write(lambda tx: claims.release(tx, [ConsumerUuid(extended.uuid)], NOW))
    if is_late:
        it.sweep()
    else:
        results = [Result(each.id, each.kind == OrderKind.MAKE_VOLUME, "") for each in it.orders()]
        it.cloud.write(lambda tx: work.record(tx, AGENT.id, results, NOW))
    failed = it.volume(extended.uuid)
    assert (failed.status, failed.size_gb, failed.growing_to_gb) == ("error_extending", 5, None)
    assert it.status(other.uuid) == ("error" if is_late else "available")
    assert usage_of(it) == (2, 8)
    found = it.cloud.read(lambda tx: [each.text for each in audit.findings(tx)])
    assert found == [
        f"volume {extended.uuid} should hold 5 GiB on its pool, but holds 0 there, with 0 "
        "allocations"
    ]
    it.delete(extended.uuid)
    it.settle_all()


@pytest.mark.parametrize("size_gb", [5, 4, 101])
def test_an_impossible_extension_changes_nothing(it: VolumeCloud, size_gb: int) -> None:
    volume = it.made(5)
    with pytest.raises(Invalid):
        it.extend(volume.uuid, size_gb)
    assert (it.status(volume.uuid), it.held(volume.uuid)) == (VolumeStatus.AVAILABLE, 5)
    assert it.orders() == []


def test_quotas_count_the_size_to_which_a_volume_grows(it: VolumeCloud) -> None:
    it.settings = Volumes(quota_volumes=2, quota_gigabytes=20)
    volume = it.made(5)
    it.extend(volume.uuid, 15)
    with pytest.raises(VolumeQuotaExceeded, match="15G has been consumed"):
        it.create(6)
    it.create(5)
    with pytest.raises(VolumeQuotaExceeded, match="Maximum number of volumes"):
        it.create(1)


def usage_of(it: VolumeCloud, project_id: str = "project") -> tuple[int, int]:
    """The recorded usage of a project: its volumes and their GiB."""
    used = quotas.total(it.cloud.read(lambda tx: quotas.usages(tx, project_id)))
    return used.volumes, used.gigabytes


def test_the_usage_of_quotas_follows_each_change(it: VolumeCloud) -> None:
    kept, volume = it.made(2), it.made(5)
    assert usage_of(it) == (2, 7)
    it.extend(volume.uuid, 9)
    assert usage_of(it) == (2, 11)
    (order,) = it.orders()
    it.settle(order, is_ok=False)
    assert usage_of(it) == (2, 7)
    it.cloud.write(lambda tx: volumes.write(tx, it.volume(volume.uuid), AVAILABLE, NOW))
    it.extend(volume.uuid, 6)
    it.settle_all()
    assert usage_of(it) == (2, 8)
    assert it.create(1000).status == VolumeStatus.ERROR
    assert usage_of(it) == (3, 1008), "a volume without a pool counts until it is deleted"
    it.delete(kept.uuid)
    assert usage_of(it) == (3, 1008)
    it.settle_all()
    assert usage_of(it) == (2, 1006)


def test_a_volume_that_still_grows_is_given_with_all_that_it_holds(it: VolumeCloud) -> None:
    volume = it.made(5)
    it.extend(volume.uuid, 9)
    it.cloud.write(lambda tx: volumes.write(tx, it.volume(volume.uuid), AVAILABLE, NOW))
    new_id, growing = it.cloud.ids.uuid(), it.volume(volume.uuid)
    it.cloud.write(lambda tx: transfers.create(tx, growing, new_id, None, "key", "salt", NOW))

    def accept(quota_gigabytes: int) -> None:
        settings = Volumes(quota_gigabytes=quota_gigabytes)
        it.cloud.write(lambda tx: transfers.accept(tx, new_id, "key", "other", "b", settings, NOW))

    with pytest.raises(VolumeQuotaExceeded):
        accept(8)
    accept(9)
    assert (usage_of(it), usage_of(it, "other")) == ((0, 0), (1, 9))
    assert it.held(volume.uuid) == 9
    it.settle_all()
    assert (it.held(volume.uuid), usage_of(it, "other")) == (9, (1, 9))


def test_a_type_is_deleted_with_what_was_counted_for_it(it: VolumeCloud) -> None:
    uuid = it.cloud.ids.uuid()
    it.cloud.write(lambda tx: types.create(tx, uuid, "t", None, {}, is_public=True, now=NOW))
    it.delete(it.made(1, type_name="t").uuid)
    it.settle_all()
    it.cloud.write(lambda tx: types.delete(tx, uuid, "__DEFAULT__"))
    assert usage_of(it) == (0, 0)


def test_quotas_read_the_recorded_usage_and_an_audit_corrects_it(it: VolumeCloud) -> None:
    it.settings = Volumes(quota_volumes=10, quota_gigabytes=10)
    it.create(4)
    it.cloud.write(lambda tx: quotas.add(tx, {("project", 1): VolumeUsage(2, 6)}))
    with pytest.raises(VolumeQuotaExceeded, match="10G has been consumed"):
        it.create(1)
    (found,) = it.cloud.read(lambda tx: list(audit.findings(tx)))
    assert found.text == (
        "the volume quota usage (volumes, GiB) of project project and type __DEFAULT__ is (3, 10), "
        "but its volumes add up to (1, 4)"
    )
    told = it.cloud.write(lambda tx: audit.count_again(tx, [found.key], NOW))
    assert told == ["the volume quota usage of project project and type __DEFAULT__ is now (1, 4)"]
    it.create(1)
    assert usage_of(it) == (2, 5)


def test_a_shared_pool_is_used_through_any_host_that_it_serves(it: VolumeCloud) -> None:
    it.settings = Volumes(volumes_on_hosts=False)
    assert it.create(1).status == VolumeStatus.ERROR
    host = it.cloud.host("h2")
    it.cloud.write(lambda tx: join(tx, host.provider_uuid, RACK))
    it.cloud.write(add_pool)
    volume = it.create(30)
    assert (volume.status, volume.host) == (VolumeStatus.CREATING, "h2")
    assert it.cloud.read(lambda tx: used(tx, pool_uuid())) == {"DISK_GB": 30}
    (order,) = it.orders()
    assert (order.host, order.body["pool"]) == ("h2", "pool-0")
    it.settle_all()
    it.delete(volume.uuid)
    it.settle_all()
    assert it.cloud.read(lambda tx: used(tx, pool_uuid())) == {"DISK_GB": 0}


def test_a_type_names_a_pool_by_its_name(it: VolumeCloud) -> None:
    specs = {"volume_backend_name": "h2"}
    it.cloud.write(
        lambda tx: types.create(tx, it.cloud.ids.uuid(), "t", None, specs, is_public=True, now=NOW)
    )
    assert {it.create(10, type_name="t").host for _ in range(4)} == {"h2"}
    with pytest.raises(NotFound):
        it.create(1, type_name="unknown")


def test_affinity_to_and_away_from_a_volume(it: VolumeCloud) -> None:
    first = it.create(10)
    beside = it.create(1, same_as=(first.uuid,))
    apart = it.create(1, different_from=(first.uuid,))
    assert beside.provider_id == first.provider_id != apart.provider_id
    nowhere = it.create(1, different_from=(first.uuid, apart.uuid))
    assert "PoolAffinityFilter removed 2" in str(nowhere.fault)


def test_a_volume_is_transferred_once_with_its_claim(it: VolumeCloud) -> None:
    volume = it.made(5)
    new_id = it.cloud.ids.uuid()
    it.cloud.write(lambda tx: transfers.create(tx, volume, new_id, None, "key", "salt", NOW))
    with pytest.raises(VolumeBusy):
        it.delete(volume.uuid)

    def accept(key: str, quota_gigabytes: int = 100) -> None:
        settings = Volumes(quota_gigabytes=quota_gigabytes)
        it.cloud.write(lambda tx: transfers.accept(tx, new_id, key, "other", "bob", settings, NOW))

    with pytest.raises(Invalid, match="invalid auth key"):
        accept("Key")
    with pytest.raises(VolumeQuotaExceeded):
        accept("key", quota_gigabytes=4)
    accept("key")
    moved = it.volume(volume.uuid)
    assert (moved.project_id, moved.user_id, moved.status) == ("other", "bob", "available")
    with pytest.raises(NotFound):
        accept("key")


def test_a_copy_is_at_least_as_large_as_its_source(it: VolumeCloud) -> None:
    source = it.made(5)
    with pytest.raises(Invalid, match="cannot be smaller than original"):
        it.create(4, source_uuid=source.uuid)
    copy = it.create(None, source_uuid=source.uuid)
    assert (copy.size_gb, copy.source_uuid) == (5, source.uuid)
    assert it.orders()[0].body["source_volume_id"] == source.uuid
    other = it.request(1, source_uuid=source.uuid, project_id="other")
    with pytest.raises(NotFound):
        it.create(1, source_uuid=source.uuid, project_id=other.project_id)


def test_a_disabled_or_silent_host_is_no_pool(it: VolumeCloud) -> None:
    it.create(1)
    late = NOW + timedelta(hours=1)
    silent = it.create(1, now=late)
    assert "PoolUpFilter removed 2" in str(silent.fault)


def test_volumes_of_one_batch_see_each_other(it: VolumeCloud) -> None:
    answers = it.create_together(*(it.request(60) for _ in range(4)))
    made = [each.volume for each in answers if isinstance(each, CreatedVolume)]
    assert [each.status for each in made] == ["creating", "creating", "error", "error"]
    assert {each.host for each in made[:2]} == {"h1", "h2"}
    assert [it.held(each.uuid) for each in made] == [60, 60, 0, 0]
    assert "At most 40 GiB are free" in str(made[2].fault)
    assert [order.body["volume_id"] for order in it.orders()] == [made[0].uuid, made[1].uuid]


def test_a_refused_volume_changes_nothing_for_the_others(it: VolumeCloud) -> None:
    it.settings = Volumes(quota_volumes=3, quota_gigabytes=10)
    missing = it.cloud.ids.uuid()
    answers = it.create_together(
        it.request(4),
        it.request(1, type_name="unknown"),
        it.request(7),
        it.request(6, image_id=missing),
        it.request(6, availability_zone="nowhere"),
        it.request(0),
        it.request(1, source_uuid=missing),
        it.request(6),
        it.request(5, project_id="other"),
        it.request(1),
    )
    kinds = [type(each) for each in answers]
    assert kinds == [
        CreatedVolume,
        NotFound,
        VolumeQuotaExceeded,
        Invalid,
        Invalid,
        Invalid,
        NotFound,
        CreatedVolume,
        CreatedVolume,
        VolumeQuotaExceeded,
    ]
    assert (usage_of(it), usage_of(it, "other")) == ((2, 10), (1, 5))
    assert len(it.orders()) == 3


def test_volumes_of_a_batch_are_those_of_requests_that_come_alone(tmp_path: Path) -> None:
    """A batch decides as if each request were committed before the next one is decided."""
    sizes = (30, 30, 50, 20, 90, 10, 0, 40)
    outcomes = []
    for name in ("alone", "together"):
        (tmp_path / name).mkdir()
        it = VolumeCloud(cloud_in(tmp_path / name, reported("h1"), reported("h2")))
        it.settings = Volumes(quota_volumes=7, quota_gigabytes=250)
        wanted = [it.request(each) for each in sizes]
        batches = [wanted] if name == "together" else [[each] for each in wanted]
        answers = [each for batch in batches for each in it.create_together(*batch)]
        outcomes.append([_told(each) for each in answers])
        it.cloud.reread()
        it.cloud.judge()
        it.cloud.close()
    assert outcomes[0] == outcomes[1]


def _told(answer: CreatedVolume | Refusal) -> object:
    if isinstance(answer, Refusal):
        return str(answer)
    made = answer.volume
    return made.uuid, made.status, made.host, made.provider_id, made.fault, made.size_gb


def test_a_batch_of_volumes_takes_few_more_statements_than_one(it: VolumeCloud) -> None:
    statements = Counter(it.cloud)
    it.create(1)
    alone = statements.of(lambda: it.create(1))
    together = statements.of(lambda: it.create_together(*(it.request(1) for _ in range(16))))
    assert together <= alone


def test_a_stale_row_of_the_table_fails_no_volume(it: VolumeCloud) -> None:
    """The volume's claim fails the batch. The row is reread before each request is tried alone."""
    it.create(1)
    for provider_id in it.cloud.table.index_of:
        it.cloud.table.expect_no_claim([provider_id])
    wanted = (it.request(1), it.request(0), it.request(1))
    answers = it.create_together(*wanted)
    assert [type(each) for each in answers] == [CreatedVolume, Invalid, CreatedVolume]
    assert usage_of(it) == (3, 3)


def test_boots_and_volumes_of_one_batch_share_one_account(it: VolumeCloud) -> None:
    batch = [it.creating(it.request(95)), ("boot", it.cloud.request()), it.creating(it.request(95))]
    first, booted, second = it.cloud.carry_out(*batch)
    assert isinstance(booted, Booted)
    assert booted.fault is None
    assert [first.volume.status, second.volume.status] == ["creating", "error"]


def test_a_host_with_volumes_is_not_removed(it: VolumeCloud) -> None:
    volume = it.made(1)
    host = it.cloud.host(str(volume.host))
    with pytest.raises(InUse, match="volumes on its disks"):
        it.cloud.write(lambda tx: hosts.remove_service(tx, host, NOW))
    it.delete(volume.uuid)
    it.settle_all()
    it.cloud.write(lambda tx: hosts.remove_service(tx, host, NOW))


def test_an_unknown_volume_is_not_found(it: VolumeCloud) -> None:
    with pytest.raises(NotFound):
        it.cloud.read(lambda tx: volumes.get(tx, "nonsense"))


def test_a_reset_status_ends_an_offer(it: VolumeCloud) -> None:
    volume = it.made(1)
    ids, given = it.cloud.ids, it.settings

    def offer() -> str:
        uuid, now_offered = ids.uuid(), it.volume(volume.uuid)
        it.cloud.write(lambda tx: transfers.create(tx, now_offered, uuid, None, "key", "salt", NOW))
        return uuid

    def accept(uuid: str) -> None:
        it.cloud.write(lambda tx: transfers.accept(tx, uuid, "key", "other", "user", given, NOW))

    first = offer()
    offered = it.volume(volume.uuid)
    it.cloud.write(lambda tx: volumes.write(tx, offered, {"status": "available"}, NOW))
    with pytest.raises(VolumeBusy):
        accept(first)
    second = offer()
    with pytest.raises(NotFound):
        accept(first)
    accept(second)
    assert it.volume(volume.uuid).project_id == "other"


def test_a_reset_status_does_not_start_a_second_extension(it: VolumeCloud) -> None:
    volume = it.made(1)
    it.extend(volume.uuid, 5)
    growing = it.volume(volume.uuid)
    it.cloud.write(lambda tx: volumes.write(tx, growing, {"status": "available"}, NOW))
    with pytest.raises(VolumeBusy, match="still being extended to 5"):
        it.extend(volume.uuid, 3)
    it.settle_all()
    assert (it.volume(volume.uuid).size_gb, it.held(volume.uuid)) == (5, 5)


def test_a_reset_status_does_not_hide_that_the_data_is_gone(it: VolumeCloud) -> None:
    volume = it.made(1)
    it.delete(volume.uuid)
    going = it.volume(volume.uuid)
    it.cloud.write(lambda tx: volumes.write(tx, going, {"status": "available"}, NOW))
    it.settle_all()
    assert it.volume(volume.uuid).status == VolumeStatus.ERROR
    it.delete(volume.uuid)
    it.settle_all()
    assert it.status(volume.uuid) is None
