"""Booting when others write as well: claims that come too late, retries, and failed commits."""

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
    """Another process on the same cloud, whose table is what it was at the start."""
    cloud = near.beside()
    yield cloud
    cloud.close()


def on(cloud: Cloud, host: str, count: int = 1) -> BootRequest:
    """A request for servers on a host of the administrator's choice."""
    return cloud.request(count, forced_host=host, is_admin=True)


def held(cloud: Cloud) -> dict[str, int]:
    """How many small servers hold something of each host, as the store has it."""

    def look(tx: Tx) -> dict[str, int]:
        ids = cloud.table.index_of
        vcpu = names.class_ids(tx)["VCPU"]
        views = capacity.views(tx, list(ids))
        return {cloud.table.names[i]: views[p].used.get(vcpu, 0) for p, i in ids.items()}

    counts: dict[str, int] = cloud.read(look)
    return counts


def test_a_claim_that_came_too_late_looks_again_and_succeeds(near: Cloud, far: Cloud) -> None:
    near.boot(on(near, "a"))
    assert faults(boot_outdated(far, on(far, "a"))) == [None]
    assert held(near)["a"] == 2
    far.judge()


def test_a_claim_that_came_too_late_finds_another_host(near: Cloud, far: Cloud) -> None:
    near.boot(on(near, "a", 4), on(near, "b", 4))
    assert faults(boot_outdated(far, far.request(4))) == [None]
    assert held(near) == {"a": 4, "b": 4, "c": 4}
    far.judge()


def test_a_claim_that_came_too_late_for_the_last_room_is_told_so(near: Cloud, far: Cloud) -> None:
    near.boot(near.request(12))
    (fault,) = faults(boot_outdated(far, far.request()))
    assert fault is not None
    assert "CapacityFilter removed 3" in fault
    far.judge()


def test_claims_behind_one_that_came_too_late_are_not_taken_for_proven(
    near: Cloud, far: Cloud
) -> None:
    """The first claim is planned at a generation that is gone; the second one, behind it, at
    the very generation that the other process made, without having seen what it took."""
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


def test_claims_that_had_nothing_to_do_with_a_late_one_stand(near: Cloud, far: Cloud) -> None:
    near.boot(on(near, "a"))
    outcomes = boot_outdated(far, on(far, "b"), on(far, "a"), on(far, "c"), on(far, "a"))
    assert faults(outcomes) == [None] * 4
    assert held(near) == {"a": 3, "b": 1, "c": 1}
    far.judge()


def test_a_host_that_moves_to_another_row_keeps_its_orders(near: Cloud, far: Cloud) -> None:
    """Looking again can renumber the rows; what was claimed before must not go astray."""
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
    """A follower who hears nothing and looks at nothing: his claims come too late."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0

    def catch_up(self, tx: Tx) -> None:
        """Count instead of looking."""
        self.asked += 1

    def reread(self, tx: Tx, providers: Collection[ProviderId]) -> None:
        """Leave everything as it is."""


def test_a_row_that_the_feed_leaves_wrong_is_found_out_by_a_claim(near: Cloud, far: Cloud) -> None:
    near.boot(on(near, "a", 2))
    # As if the change had been lost on its way.
    far.table.bookmark = far.read(changes.newest)
    with capture_logs() as logs:
        assert faults(far.boot(on(far, "a"), on(far, "b"))) == [None, None]
    assert [each["event"] for each in logs] == ["rows_beside_the_feed"]
    assert held(far) == {"a": 3, "b": 1, "c": 0}
    far.judge()


@pytest.mark.parametrize("attempts_max", [1, 2, 7])
def test_retries_have_an_end(near: Cloud, far: Cloud, attempts_max: int) -> None:
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


# -- the desk looks before it decides --------------------------------------------------------


def test_the_desk_decides_on_what_others_wrote_meanwhile(near: Cloud, far: Cloud) -> None:
    near.boot(near.request(11))
    outcomes = far.boot(far.request(2), far.request(1))
    assert [fault is None for fault in faults(outcomes)] == [False, True]
    far.judge()


def test_the_desk_sees_room_that_others_gave_back(near: Cloud, far: Cloud) -> None:
    request = near.request(12)
    near.boot(request)
    assert faults(far.boot(far.request())) != [None]
    near.write(lambda tx: finish_deletes(tx, request.server_ids, NOW))
    assert faults(far.boot(far.request(12))) == [None]
    far.judge()


def test_the_desk_leaves_hosts_alone_that_others_closed(near: Cloud, far: Cloud) -> None:
    """Closing a host moves no generation, so no claim would notice."""

    def close(tx: Tx) -> None:
        for name in ("a", "b"):
            hosts.change_service(tx, hosts.by_name(tx, name), ServiceChange(is_disabled=True), NOW)

    near.write(close)
    far.boot(far.request(2), far.request(2))
    assert held(near) == {"a": 0, "b": 0, "c": 4}
    far.judge()


def test_the_desk_knows_zones_and_hosts_that_others_added(near: Cloud, far: Cloud) -> None:
    near.report(reported("d", availability_zone="north"))
    requests = far.request(availability_zone="north"), on(far, "d")
    assert faults(far.boot(*requests)) == [None, None]
    far.judge()
