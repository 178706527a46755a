"""A lease ends whatever the state of its servers: moved, moving, shelved or failed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from innkeeper.domain.compute import Status
from innkeeper.domain.ids import ServerId
from innkeeper.domain.leases import Demand, Lease, LeaseStatus, Window
from innkeeper.domain.moves import MigrationStatus
from innkeeper.systems.compute.moves import cleanup, completion, resizing, shelving
from innkeeper.systems.compute.servers import servers
from tests.support.clouds import reported
from tests.support.lease_operator import LeaseOperator
from tests.support.moves import TIMEOUT_S, Movers

HOUR_S = 3600.0
SLOT = {"VCPU": 1, "MEMORY_MB": 1024, "DISK_GB": 10}
HOSTS = ("a1", "b1")


@pytest.fixture
def operator(tmp_path: Path) -> Iterator[LeaseOperator]:
    """Two hosts in the freepool, a1 and b1, and two ordinary ones, a2 and b2."""
    made = LeaseOperator(Movers(tmp_path, *map(reported, ("a1", "b1", "a2", "b2"))))
    made.keep(*HOSTS)
    yield made
    made.turn()
    made.movers.judge()
    assert made.broken() == []
    made.movers.close()


def slots_of(operator: LeaseOperator, count: int = 2, start: float = 0.0) -> Lease:
    """A lease of so many slots for an hour. Two slots are on different hosts."""
    window = Window(operator.moment(start), operator.moment(start + HOUR_S))
    return operator.make(window, [Demand(count, count, SLOT, affinity=False)])


def in_slot(operator: LeaseOperator, lease: Lease, host: str | None = "a1") -> ServerId:
    """A running server in a slot."""
    return operator.movers.boot(host, flavor_id=lease.reservations[0].uuid)


def on_host(operator: LeaseOperator, lease: Lease, host: str = "a1") -> ServerId:
    """A running server on a host that is leased as a whole."""
    return operator.movers.boot(host, hints={"reservation": lease.reservations[0].uuid})


def out_of_slot(operator: LeaseOperator, lease: Lease) -> ServerId:
    """A server that is being resized from a slot to an ordinary flavor."""
    server = in_slot(operator, lease)
    operator.movers.resize(server)
    assert operator.movers.held(server).keys() <= {"a2", "b2"}
    return server


def come_to_rest(operator: LeaseOperator, *leases: Lease) -> None:
    """Let agents work until nothing is left to do; each lease must have ended."""
    for _ in range(4):
        operator.movers.finish()
        operator.turn()
    for lease in leases:
        assert (operator.status(lease), operator.held(lease)) == (LeaseStatus.ENDED, set())


def test_a_resize_out_of_a_slot_is_confirmed(operator: LeaseOperator) -> None:
    lease = slots_of(operator)
    following = slots_of(operator, start=HOUR_S)
    server = out_of_slot(operator, lease)
    operator.movers.finish()
    assert operator.movers.state(server)[0] == Status.VERIFY_RESIZE
    operator.wait(HOUR_S)
    assert operator.movers.state(server)[:2] == (Status.ACTIVE, None)
    assert operator.movers.migration(server).status == MigrationStatus.CONFIRMING
    assert operator.status(lease) == LeaseStatus.ENDING
    come_to_rest(operator, lease)
    assert operator.status(following) == LeaseStatus.ACTIVE
    assert operator.movers.server(server).deleted_at is None
    assert operator.movers.migration(server).status == MigrationStatus.CONFIRMED


def test_a_resize_out_of_a_slot_that_is_under_way(operator: LeaseOperator) -> None:
    lease = slots_of(operator)
    server = out_of_slot(operator, lease)
    operator.wait(HOUR_S)
    assert operator.status(lease) == LeaseStatus.ENDING
    come_to_rest(operator, lease)
    assert operator.movers.state(server)[:2] == (Status.ACTIVE, None)


@pytest.mark.parametrize("order", ["depart", "arrive"])
def test_a_resize_out_of_a_slot_that_fails(operator: LeaseOperator, order: str) -> None:
    lease = slots_of(operator)
    server = out_of_slot(operator, lease)
    operator.wait(HOUR_S)
    if order == "arrive":
        operator.movers.tell("depart", server)
    operator.movers.tell(order, server, "It broke.")
    come_to_rest(operator, lease)
    assert operator.movers.server(server).deleted_at is not None, "it was in the slot again"


@pytest.mark.parametrize("answered", [0, 1], ids=("depart", "arrive"))
def test_a_resize_out_of_a_slot_that_nobody_answers(operator: LeaseOperator, answered: int) -> None:
    lease = slots_of(operator)
    server = out_of_slot(operator, lease)
    operator.wait(HOUR_S)
    for order in ("depart",)[:answered]:
        operator.movers.tell(order, server)
    operator.movers.wait(TIMEOUT_S + 1)
    operator.movers.sweep()
    come_to_rest(operator, lease)
    assert operator.movers.server(server).deleted_at is not None


@pytest.mark.parametrize("is_over", [False, True], ids=("before", "after"))
def test_a_revert_into_a_slot(operator: LeaseOperator, *, is_over: bool) -> None:
    lease = slots_of(operator)
    server = out_of_slot(operator, lease)
    operator.movers.finish()
    if is_over:
        # The end of the lease has passed, but no step of the end was carried out.
        operator.movers.wait(HOUR_S)
    operator.movers.act(resizing.revert, server)
    operator.movers.wait(HOUR_S)
    operator.turn()
    come_to_rest(operator, lease)
    assert operator.movers.server(server).deleted_at is not None


def test_a_revert_out_of_a_slot(operator: LeaseOperator) -> None:
    lease = slots_of(operator)
    server = operator.movers.boot("a2")
    operator.movers.resize(server, lease.reservations[0].uuid)
    operator.movers.finish()
    operator.movers.act(resizing.revert, server)
    operator.wait(HOUR_S)
    come_to_rest(operator, lease)
    assert operator.movers.state(server) == (Status.ACTIVE, None, "a2")


def test_a_failing_revert_out_of_a_slot(operator: LeaseOperator) -> None:
    lease = slots_of(operator)
    server = operator.movers.boot("a2")
    operator.movers.resize(server, lease.reservations[0].uuid)
    operator.movers.finish()
    operator.movers.act(resizing.revert, server)
    operator.wait(HOUR_S)
    operator.movers.tell("destroy", server, "It broke.")
    come_to_rest(operator, lease)
    assert operator.movers.server(server).deleted_at is not None


@pytest.mark.parametrize("is_done", [False, True], ids=("moving", "moved"))
def test_a_resize_into_a_slot(operator: LeaseOperator, *, is_done: bool) -> None:
    lease = slots_of(operator)
    server = operator.movers.boot("a2")
    operator.movers.resize(server, lease.reservations[0].uuid)
    if is_done:
        operator.movers.finish()
    operator.wait(HOUR_S)
    come_to_rest(operator, lease)
    assert operator.movers.server(server).deleted_at is not None


def test_a_resize_from_slot_to_slot(operator: LeaseOperator) -> None:
    lease = slots_of(operator)
    other = operator.make(
        Window(operator.now, operator.moment(9 * HOUR_S)), [Demand(2, 2, SLOT, affinity=False)]
    )
    server = in_slot(operator, lease)
    operator.movers.resize(server, other.reservations[0].uuid)
    operator.movers.finish()
    operator.wait(HOUR_S)
    come_to_rest(operator, lease)
    assert operator.movers.state(server)[:2] == (Status.ACTIVE, None)
    operator.delete(other)
    come_to_rest(operator)


def test_a_locked_server_out_of_a_slot(operator: LeaseOperator) -> None:
    lease = slots_of(operator)
    server = out_of_slot(operator, lease)
    operator.movers.finish()
    operator.cloud.write(lambda tx: servers.lock(tx, server, "owner", None, operator.now))
    operator.wait(HOUR_S)
    come_to_rest(operator, lease)


def test_remains_on_a_silent_host(operator: LeaseOperator) -> None:
    """The slot is returned once the agent is up again, however long that takes."""
    lease = slots_of(operator)
    server = out_of_slot(operator, lease)
    operator.movers.finish()
    operator.movers.wait(HOUR_S, silent="a")
    operator.turn()
    assert operator.status(lease) == LeaseStatus.ENDING
    assert operator.movers.state(server)[:2] == (Status.ACTIVE, None)
    operator.movers.wait()
    come_to_rest(operator, lease)


def test_a_cleanup_that_fails_at_first(operator: LeaseOperator) -> None:
    lease = slots_of(operator)
    server = out_of_slot(operator, lease)
    operator.movers.finish()
    operator.wait(HOUR_S)
    operator.movers.tell("destroy", server, "It broke.")
    operator.turn()
    assert operator.status(lease) == LeaseStatus.ENDING
    operator.movers.wait()
    now = operator.now
    operator.cloud.write(lambda tx: cleanup.retry(tx, now, 10, now))
    come_to_rest(operator, lease)


# -- what befalls a server in a slot, or on a whole host -------------------------------------


def _migrate(operator: LeaseOperator, server: ServerId) -> None:
    operator.movers.migrate(server)


def _migrate_and_finish(operator: LeaseOperator, server: ServerId) -> None:
    operator.movers.migrate(server)
    operator.movers.finish()
    assert operator.movers.state(server)[0] == Status.VERIFY_RESIZE


def _return(operator: LeaseOperator, server: ServerId) -> None:
    _migrate_and_finish(operator, server)
    operator.movers.act(resizing.revert, server)


def _move_live(operator: LeaseOperator, server: ServerId) -> None:
    operator.movers.migrate_live(server)


def _send_live(operator: LeaseOperator, server: ServerId) -> None:
    operator.movers.migrate_live(server)
    operator.movers.tell("expect", server)


def _shelve(operator: LeaseOperator, server: ServerId) -> None:
    operator.movers.act(shelving.shelve, server, offload_time_s=-1)
    operator.movers.finish()
    assert operator.movers.state(server)[::2] == (Status.SHELVED, "a1")


def _offload(operator: LeaseOperator, server: ServerId) -> None:
    operator.movers.act(shelving.shelve, server, offload_time_s=0)
    operator.movers.tell("shelve", server)


def _unshelve(operator: LeaseOperator, server: ServerId) -> None:
    _offload(operator, server)
    operator.movers.finish()
    operator.movers.unshelve(server)


def _fail(operator: LeaseOperator, server: ServerId) -> None:
    initiator = operator.movers.initiator()
    operator.cloud.write(
        lambda tx: completion.reset_state(
            tx, server, initiator, status=Status.ERROR, now=operator.now
        )
    )


def _fail_to_delete(operator: LeaseOperator, server: ServerId) -> None:
    operator.movers.delete(server)
    operator.movers.tell("destroy", server, "It broke.")


def _evacuate(operator: LeaseOperator, server: ServerId) -> None:
    operator.movers.wait(silent="a")
    operator.movers.evacuate(server)


def _evacuate_and_finish(operator: LeaseOperator, server: ServerId) -> None:
    _evacuate(operator, server)
    operator.movers.tell("evacuate", server)


FATES = (
    *(_migrate, _migrate_and_finish, _return, _move_live, _send_live, _shelve, _offload),
    *(_unshelve, _fail, _fail_to_delete, _evacuate, _evacuate_and_finish),
)


@pytest.mark.parametrize("is_whole", [False, True], ids=("slot", "whole"))
@pytest.mark.parametrize("fate", FATES)
def test_an_end_deletes_the_server(
    operator: LeaseOperator, fate: Callable[[LeaseOperator, ServerId], None], *, is_whole: bool
) -> None:
    lease = operator.lease((2, 2), end=HOUR_S) if is_whole else slots_of(operator)
    operator.turn()
    server = (on_host if is_whole else in_slot)(operator, lease)
    fate(operator, server)
    operator.wait(HOUR_S)
    come_to_rest(operator, lease)
    assert operator.movers.server(server).deleted_at is not None
    assert {said for said, _ in operator.said(*HOSTS)} == {"freepool"}


@pytest.mark.parametrize("is_whole", [False, True], ids=("slot", "whole"))
def test_an_offloaded_server_stays(operator: LeaseOperator, *, is_whole: bool) -> None:
    lease = operator.lease((2, 2), end=HOUR_S) if is_whole else slots_of(operator)
    operator.turn()
    server = (on_host if is_whole else in_slot)(operator, lease)
    _offload(operator, server)
    operator.movers.finish()
    operator.wait(HOUR_S)
    come_to_rest(operator, lease)
    assert operator.movers.state(server) == (Status.SHELVED_OFFLOADED, None, None)


# -- servers that left a whole host ----------------------------------------------------------


def test_a_resize_from_a_whole_host_into_a_slot(operator: LeaseOperator) -> None:
    lease = operator.lease((1, 1), end=HOUR_S)
    operator.turn()
    (home,) = operator.held(lease)
    server = on_host(operator, lease, home)
    other = operator.make(Window(operator.now, operator.moment(9 * HOUR_S)), [Demand(1, 1, SLOT)])
    operator.turn()
    operator.movers.resize(server, other.reservations[0].uuid)
    operator.movers.finish()
    assert operator.movers.state(server)[0] == Status.VERIFY_RESIZE
    operator.wait(HOUR_S)
    come_to_rest(operator, lease)
    operator.delete(other)
    come_to_rest(operator)
