"""Booting with concurrent writers: stale claims, retries, and failed commits."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from innkeeper.domain.compute import BootRequest
from innkeeper.domain.errors import ConcurrentUpdate
from innkeeper.domain.ids import ProviderId
from innkeeper.snapshot.follower import Follower
from innkeeper.store import changes
from innkeeper.store.queries.compute import quota_usages, servers
from innkeeper.store.queries.placement import capacity, names
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.hosts import hosts
from innkeeper.systems.compute.hosts.hosts import ServiceChange
from innkeeper.systems.compute.servers.servers import finish_deletes
from tests.support.clouds import NOW, Cloud, cloud_in, faults, reported
from tests.support.outdated_snapshot import boot_outdated


@pytest.fixture
def near(tmp_path: Path) -> Iterator[Cloud]:
    """A process on a cloud of three hosts with room for four small servers each."""
    cloud = cloud_in(tmp_path, *(reported(name) for name in ("a", "b", "c")))
    yield cloud
    cloud.close()


@pytest.fixture
def far(near: Cloud) -> Iterator[Cloud]:
    """Another process on the same cloud, whose table does not change any more."""
    cloud = near.beside()
    yield cloud
    cloud.close()


def on(cloud: Cloud, host: str, count: int = 1) -> BootRequest:
    """An administrator's request for servers on this host."""
    return cloud.request(count, forced_host=host, is_admin=True)


def held(cloud: Cloud) -> dict[str, int]:
    """The number of small servers on each host, according to the store."""

    def look(tx: Tx) -> dict[str, int]:
        ids = cloud.table.index_of
        vcpu = names.class_ids(tx)["VCPU"]
        views = capacity.views(tx, list(ids))
        return {cloud.table.names[i]: views[p].used.get(vcpu, 0) for p, i in ids.items()}

    counts: dict[str, int] = cloud.read(look)
    return counts


def test_a_stale_claim_is_retried_and_succeeds(near: Cloud, far: Cloud) -> None:
    near.boot(on(near, "a"))
    assert faults(boot_outdated(far, on(far, "a"))) == [None]
    assert held(near)["a"] == 2
    far.judge()


def test_a_stale_claim_is_retried_on_another_host(near: Cloud, far: Cloud) -> None:
    near.boot(on(near, "a", 4), on(near, "b", 4))
    assert faults(boot_outdated(far, far.request(4))) == [None]
    assert held(near) == {"a": 4, "b": 4, "c": 4}
    far.judge()


def test_a_stale_claim_without_room_is_rejected(near: Cloud, far: Cloud) -> None:
    near.boot(near.request(12))
    (fault,) = faults(boot_outdated(far, far.request()))
    assert fault is not None
    assert "CapacityFilter removed 3" in fault
    far.judge()


def test_claims_after_a_stale_one_are_checked_again(near: Cloud, far: Cloud) -> None:
    """The first claim is planned at an old generation. The second claim is planned at the
    generation that the other process has written, but without that process's claim."""
    near.boot(on(near, "a", 4))
    outcomes = boot_outdated(far, on(far, "a", 2), on(far, "a", 2))
    assert held(near)["a"] == 4, "the host was sold twice"
    assert all(fault and "CapacityFilter" in fault for fault in faults(outcomes))
    far.judge()


@pytest.mark.parametrize("taken", range(5))
@pytest.mark.parametrize("moves", range(1, 4))
def test_no_number_of_moves_makes_stale_claims_look_proven(
    near: Cloud, far: Cloud, taken: int, moves: int
) -> None:
    near.boot(*(on(near, "a") for _ in range(taken)))
    for _ in range(moves - taken):
        near.report(reported("a", disk_gb=200 + near.ids.seed()))
    outcomes = boot_outdated(far, *(on(far, "a") for _ in range(4)))
    assert faults(outcomes).count(None) == 4 - taken
    assert held(near)["a"] == 4
    far.judge()


def test_claims_unrelated_to_a_stale_one_are_committed(near: Cloud, far: Cloud) -> None:
    near.boot(on(near, "a"))
    outcomes = boot_outdated(far, on(far, "b"), on(far, "a"), on(far, "c"), on(far, "a"))
    assert faults(outcomes) == [None] * 4
    assert held(near) == {"a": 3, "b": 1, "c": 1}
    far.judge()


def test_a_host_that_moves_to_another_row_keeps_its_orders(near: Cloud, far: Cloud) -> None:
    """A retry can renumber the rows; earlier claims must keep their hosts."""
    late = far.table.names[-1]
    first = far.table.names[0]

    def forget_first(tx: Tx) -> None:
        hosts.remove_service(tx, hosts.by_name(tx, first), NOW)

    near.write(forget_first)
    near.boot(on(near, "b"))
    placed, beaten = on(far, late), on(far, "b")
    assert faults(boot_outdated(far, placed, beaten)) == [None, None]
    server = far.read(lambda tx: servers.by_uuid(tx, placed.server_ids[0]))
    assert server is not None
    assert server.host == late
    far.judge()


class Deaf(Follower):
    """A follower that reads no changes, so that its claims are stale."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0

    def catch_up(self, tx: Tx) -> None:
        """Count the call, and read nothing."""
        self.asked += 1

    def reread(self, tx: Tx, providers: Collection[ProviderId]) -> None:
        """Read nothing."""


def test_a_claim_detects_a_row_that_the_feed_left_wrong(near: Cloud, far: Cloud) -> None:
    near.boot(on(near, "a", 2))
    # Pretend that the change row was lost.
    far.table.bookmark = far.read(changes.newest)
    with capture_logs() as logs:
        assert faults(far.boot(on(far, "a"), on(far, "b"))) == [None, None]
    assert [each["event"] for each in logs] == ["rows_beside_the_feed"]
    assert held(far) == {"a": 3, "b": 1, "c": 0}
    far.judge()


@pytest.mark.parametrize("attempts_max", [1, 2, 7])
def test_retries_are_limited(near: Cloud, far: Cloud, attempts_max: int) -> None:
    deaf = Deaf()
    with near.store.read() as tx:
        deaf.load(tx)
    near.boot(on(near, "a"))
    requests = on(far, "a"), on(far, "b"), on(far, "a")
    outcomes = boot_outdated(far, *requests, follower=deaf, attempts_max=attempts_max)
    assert [isinstance(each, ConcurrentUpdate) for each in outcomes] == [True, False, True]
    assert deaf.asked == attempts_max - 1
    assert held(near) == {"a": 1, "b": 1, "c": 0}
    refused = (*requests[0].server_ids, *requests[2].server_ids)
    assert far.read(lambda tx: servers.alive(tx, refused)) == []
    usage = far.read(lambda tx: quota_usages.of_project(tx, "project"))
    assert usage.servers == 2, "who was refused counts nothing"
    far.judge()


# -- the executor reads changes before it decides --------------------------------------------


def test_decisions_see_what_other_processes_wrote(near: Cloud, far: Cloud) -> None:
    near.boot(near.request(11))
    outcomes = far.boot(far.request(2), far.request(1))
    assert [fault is None for fault in faults(outcomes)] == [False, True]
    far.judge()


def test_decisions_see_capacity_that_other_processes_released(near: Cloud, far: Cloud) -> None:
    request = near.request(12)
    near.boot(request)
    assert faults(far.boot(far.request())) != [None]
    near.write(lambda tx: finish_deletes(tx, request.server_ids, NOW))
    assert faults(far.boot(far.request(12))) == [None]
    far.judge()


def test_decisions_skip_hosts_that_other_processes_closed(near: Cloud, far: Cloud) -> None:
    """Closing a host advances no generation, so a claim does not detect it."""

    def close(tx: Tx) -> None:
        for name in ("a", "b"):
            hosts.change_service(tx, hosts.by_name(tx, name), ServiceChange(is_disabled=True), NOW)

    near.write(close)
    far.boot(far.request(2), far.request(2))
    assert held(near) == {"a": 0, "b": 0, "c": 4}
    far.judge()


def test_decisions_see_zones_and_hosts_that_other_processes_added(near: Cloud, far: Cloud) -> None:
    near.report(reported("d", availability_zone="north"))
    requests = far.request(availability_zone="north"), on(far, "d")
    assert faults(far.boot(*requests)) == [None, None]
    far.judge()
