"""Leases are shared with other projects, transferred to them, and ended if they are unused."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from pathlib import Path

import msgspec
import pytest

from innkeeper.domain.errors import Conflict, Invalid, NotFound, QuotaExceeded
from innkeeper.domain.hosts import Dedication
from innkeeper.domain.ids import ServerId
from innkeeper.domain.leases import Demand, Lease, LeaseStatus, Window
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.flavors import flavors
from innkeeper.systems.compute.grouping import dedications, groups
from innkeeper.systems.leases import idle, leases, sharing
from innkeeper.systems.leases.sharing import LeaseOptions
from tests.support.clouds import reported
from tests.support.lease_operator import LeaseOperator
from tests.support.moves import Movers

HOUR_S, MINUTE_S = 3600.0, 60.0
SMALL = {"VCPU": 1, "MEMORY_MB": 1024, "DISK_GB": 10}


@pytest.fixture
def operator(tmp_path: Path) -> Iterator[LeaseOperator]:
    """Two hosts in the freepool, a1 and b1, and an ordinary one, a2."""
    made = LeaseOperator(Movers(tmp_path, *map(reported, ("a1", "b1", "a2"))))
    made.keep("a1", "b1")
    yield made
    made.turn()
    assert made.broken() == []
    made.movers.close()


def seen(operator: LeaseOperator, lease: Lease) -> Lease:
    found: Lease = operator.cloud.read(lambda tx: leases.get(tx, lease.uuid))
    return found


def chosen(
    operator: LeaseOperator, lease: Lease, options: LeaseOptions, *, may_give: bool = False
) -> Lease:
    context = operator.context()

    def work(tx: Tx) -> Lease:
        present = leases.get(tx, lease.uuid)
        return sharing.change(tx, present, options, context, may_give=may_give)

    changed: Lease = operator.cloud.write(work)
    return changed


def accepted(operator: LeaseOperator, lease: Lease) -> Lease:
    context = operator.context()
    given: Lease = operator.cloud.write(
        lambda tx: sharing.accept(tx, leases.get(tx, lease.uuid), "eve", context)
    )
    return given


def is_placed(operator: LeaseOperator, reservation: str, project: str) -> bool:
    hints = {"reservation": reservation}
    request = operator.cloud.request(now=operator.now, hints=hints, project_id=project)
    (booted,) = operator.cloud.boot(request)
    return getattr(booted, "fault", "") is None


def users(operator: LeaseOperator, reservation: str) -> set[str]:
    """The projects that may use a reservation's flavor."""

    def may_use(tx: Tx, project: str) -> bool:
        try:
            flavors.get(tx, reservation, project, is_admin=False)
        except NotFound:
            return False
        return True

    projects = ("project", "friend", "heir")
    return {each for each in projects if operator.cloud.read(partial(may_use, project=each))}


def with_slots(
    operator: LeaseOperator, *, affinity: bool | None = None, start: float = 0.0
) -> Lease:
    begin = operator.moment(start)
    window = Window(begin, begin + timedelta(hours=1))
    return operator.make(window, [Demand(2, 2, SMALL, affinity)])


# -- sharing -----------------------------------------------------------------------------------


def test_a_shared_lease_takes_servers_of_both_projects(operator: LeaseOperator) -> None:
    lease = operator.lease((2, 2), end=HOUR_S)
    part = lease.reservations[0].uuid
    assert not is_placed(operator, part, "friend")
    assert chosen(operator, lease, {"shared_with": ("friend",)}).shared_with == ("friend",)
    assert is_placed(operator, part, "friend")
    assert is_placed(operator, part, "project")
    assert not is_placed(operator, part, "stranger")
    assert chosen(operator, lease, {"shared_with": ()}).shared_with == ()
    assert not is_placed(operator, part, "friend")
    assert is_placed(operator, part, "project")


def test_a_name_means_the_own_lease_before_a_shared_one(operator: LeaseOperator) -> None:
    """Otherwise, a project could redirect another's servers by sharing a lease of that name."""
    theirs = operator.lease((1, 1), start=0, end=HOUR_S)
    operator.turn()

    def named() -> str:
        found: str = operator.cloud.read(
            lambda tx: dedications.reservation_named(tx, theirs.name, "friend", operator.now)
        )
        return found

    chosen(operator, theirs, {"shared_with": ("friend",)})
    assert named() == theirs.reservations[0].uuid
    own = operator.lease((1, 1), start=0, end=HOUR_S)
    chosen(operator, own, {"project_id": "friend"}, may_give=True)
    assert (own.name, named()) == (theirs.name, own.reservations[0].uuid)


def test_a_shared_lease_is_listed(operator: LeaseOperator) -> None:
    lease = operator.lease((1, 1), end=HOUR_S)
    other = operator.lease((1, 1), end=HOUR_S, project="friend")

    def listed(project: str, after: str | None = None) -> list[str]:
        found = operator.cloud.read(
            lambda tx: leases.page(tx, project_id=project, after=after, limit=9)
        )
        return [each.uuid for each in found]

    assert listed("friend") == [other.uuid]
    chosen(operator, lease, {"shared_with": ("friend", "project", "friend")})
    assert listed("friend") == [other.uuid, lease.uuid]
    assert listed("friend", other.uuid) == [lease.uuid]
    assert listed("friend", lease.uuid) == []
    assert listed("project") == [lease.uuid]
    with pytest.raises(Invalid):
        listed("project", other.uuid)


def test_the_flavor_of_slots_follows_the_projects(operator: LeaseOperator) -> None:
    lease = with_slots(operator)
    part = lease.reservations[0].uuid
    assert users(operator, part) == {"project"}
    chosen(operator, lease, {"shared_with": ("friend",)})
    assert users(operator, part) == {"project", "friend"}
    chosen(operator, lease, {"shared_with": ("heir",)})
    assert users(operator, part) == {"project", "heir"}


def test_slots_that_were_shared_before_their_start_are_for_all_projects(
    operator: LeaseOperator,
) -> None:
    lease = with_slots(operator, start=HOUR_S)
    part = lease.reservations[0].uuid
    chosen(operator, lease, {"shared_with": ("friend",)})
    assert users(operator, part) == set()
    operator.wait(HOUR_S)
    assert users(operator, part) == {"project", "friend"}


def test_the_options_of_a_lease_that_is_over_are_fixed(operator: LeaseOperator) -> None:
    lease = operator.lease((1, 1), end=HOUR_S)
    operator.wait(HOUR_S)
    options: tuple[LeaseOptions, ...] = (
        {"shared_with": ()},
        {"idle_grace_s": 60},
        {"project_id": "heir"},
    )
    for each in options:
        with pytest.raises(Invalid, match="Terminated leases can only be renamed"):
            chosen(operator, lease, each)


# -- hand-over ---------------------------------------------------------------------------------


def test_an_offered_lease_changes_its_owner_when_accepted(operator: LeaseOperator) -> None:
    lease = operator.lease((2, 2), end=HOUR_S)
    part = lease.reservations[0].uuid
    server = operator.movers.boot("a1", hints={"reservation": part})
    offered = chosen(operator, lease, {"project_id": "heir"})
    assert (offered.project_id, offered.offered_to) == ("project", "heir")
    assert not is_placed(operator, part, "heir")
    given = accepted(operator, lease)
    assert (given.project_id, given.user_id, given.offered_to) == ("heir", "eve", None)
    assert is_placed(operator, part, "heir")
    assert not is_placed(operator, part, "project")
    assert operator.movers.server(server).host == "a1", "what runs is not touched"
    with pytest.raises(Conflict, match="not offered"):
        accepted(operator, lease)


def test_an_offer_is_withdrawn(operator: LeaseOperator) -> None:
    lease = operator.lease((1, 1), end=HOUR_S)
    chosen(operator, lease, {"project_id": "heir"})
    assert chosen(operator, lease, {"project_id": None}).offered_to is None
    with pytest.raises(Conflict):
        accepted(operator, lease)


@pytest.mark.parametrize("may_give", [False, True])
def test_the_present_owner_changes_no_offer(operator: LeaseOperator, *, may_give: bool) -> None:
    lease = operator.lease((1, 1), end=HOUR_S)
    chosen(operator, lease, {"project_id": "heir"})
    same = chosen(operator, lease, {"project_id": "project"}, may_give=may_give)
    assert (same.project_id, same.offered_to) == ("project", "heir")
    assert accepted(operator, lease).project_id == "heir"


def test_administrators_give_a_lease_at_once(operator: LeaseOperator) -> None:
    lease = with_slots(operator, affinity=True)
    chosen(operator, lease, {"shared_with": ("friend", "heir")})
    given = chosen(operator, lease, {"project_id": "heir"}, may_give=True)
    assert (given.project_id, given.shared_with) == ("heir", ("friend",))
    part = given.reservations[0]
    assert users(operator, part.uuid) == {"heir", "friend"}


def test_a_new_owner_gets_the_server_group_without_the_former_owners_servers(
    operator: LeaseOperator,
) -> None:
    lease = with_slots(operator, affinity=True)
    (part,) = lease.reservations
    group_uuid = part.group_uuid or ""

    def seen_group() -> tuple[str, tuple[ServerId, ...]]:
        def look(tx: Tx) -> tuple[str, tuple[ServerId, ...]]:
            group = groups.get(tx, group_uuid)
            return group.project_id, groups.members(tx, group)

        found: tuple[str, tuple[ServerId, ...]] = operator.cloud.read(look)
        return found

    in_group = {"flavor_id": part.uuid, "hints": {"group": group_uuid}}
    former = operator.movers.boot(None, **in_group)
    assert seen_group() == ("project", (former,))
    chosen(operator, lease, {"project_id": "heir"}, may_give=True)
    assert seen_group() == ("heir", ())
    own = operator.movers.boot(None, project_id="heir", **in_group)
    assert seen_group() == ("heir", (own,))
    assert operator.movers.server(own).host == operator.movers.server(former).host


def test_the_receiver_needs_the_quota(operator: LeaseOperator) -> None:
    operator.leasing = msgspec.structs.replace(operator.leasing, quota_reserved_hosts=1)
    operator.lease((1, 1), end=HOUR_S, project="heir")
    lease = operator.lease((1, 1), start=MINUTE_S, end=HOUR_S)
    chosen(operator, lease, {"project_id": "heir"})
    with pytest.raises(QuotaExceeded, match="Requested 1, but already used 1 of 1"):
        accepted(operator, lease)
    after = seen(operator, lease)
    assert (after.project_id, after.offered_to) == ("project", "heir")


# -- idle release ------------------------------------------------------------------------------


def look(operator: LeaseOperator, most: int = 500) -> list[str]:
    """One round of the periodic task; returns the leases that it ended."""
    context = operator.context()
    found = operator.cloud.write(lambda tx: idle.look(tx, 0, context, most))
    return [
        uuid
        for uuid in found.expired
        if operator.cloud.write(partial(idle.end, uuid=uuid, context=context))
    ]


def gone(operator: LeaseOperator, server: ServerId) -> None:
    operator.movers.delete(server)
    operator.movers.tell("destroy", server)


def test_an_unused_lease_ends_after_its_grace_time(operator: LeaseOperator) -> None:
    lease = operator.lease((1, 1), end=9 * HOUR_S)
    other = operator.lease((1, 1), end=9 * HOUR_S)
    chosen(operator, lease, {"idle_grace_s": 600})
    assert look(operator) == []
    assert seen(operator, lease).idle_since == operator.now
    operator.wait(599)
    assert look(operator) == []
    operator.wait(1)
    assert look(operator) == [lease.uuid]
    operator.turn()
    assert operator.status(lease) == LeaseStatus.ENDED
    assert seen(operator, lease).end_at == operator.now
    assert operator.status(other) == LeaseStatus.ACTIVE
    assert sorted(map(str, operator.said("a1", "b1"))) == sorted(
        map(str, [(Dedication.FREEPOOL, None), (Dedication.LEASED, other.reservations[0].uuid)])
    )


def test_a_server_keeps_a_lease(operator: LeaseOperator) -> None:
    lease = operator.lease((2, 2), end=9 * HOUR_S)
    chosen(operator, lease, {"idle_grace_s": 600})
    look(operator)
    operator.wait(500)
    hints = {"reservation": lease.reservations[0].uuid}
    server = operator.movers.boot("b1", hints=hints)
    operator.wait(500)
    assert look(operator) == []
    assert seen(operator, lease).idle_since is None
    gone(operator, server)
    operator.wait(500)
    assert look(operator) == []
    operator.wait(599)
    assert look(operator) == []
    # A server that was booted after the last look is noticed in time.
    server = operator.movers.boot("a1", hints=hints)
    operator.wait(1)
    assert look(operator) == []
    gone(operator, server)


def test_a_server_that_comes_between_look_and_end_keeps_the_lease(operator: LeaseOperator) -> None:
    lease = operator.lease((2, 2), end=9 * HOUR_S)
    chosen(operator, lease, {"idle_grace_s": 600})
    look(operator)
    operator.wait(600)
    context = operator.context()
    found = operator.cloud.write(lambda tx: idle.look(tx, 0, context))
    assert found.expired == (lease.uuid,)
    server = operator.movers.boot("a1", hints={"reservation": lease.reservations[0].uuid})
    assert not operator.cloud.write(lambda tx: idle.end(tx, lease.uuid, context))
    assert seen(operator, lease).idle_since is None
    gone(operator, server)


def test_slots_without_servers_are_idle(operator: LeaseOperator) -> None:
    lease = with_slots(operator)
    chosen(operator, lease, {"idle_grace_s": 600})
    look(operator)
    operator.wait(600)
    assert look(operator) == [lease.uuid]


def test_only_active_leases_are_looked_at_and_few_at_a_time(operator: LeaseOperator) -> None:
    pending = operator.lease((1, 1), start=HOUR_S, end=2 * HOUR_S)
    chosen(operator, pending, {"idle_grace_s": 60})
    first, second = (operator.lease((1, 1), end=HOUR_S) for _ in range(2))
    for each in (first, second):
        chosen(operator, each, {"idle_grace_s": 60})
    context = operator.context()
    found = operator.cloud.write(lambda tx: idle.look(tx, 0, context, 1))
    assert found.next_row == first.id
    assert seen(operator, second).idle_since is None
    found = operator.cloud.write(lambda tx: idle.look(tx, found.next_row, context, 2))
    assert found.next_row == 0
    assert seen(operator, second).idle_since == operator.now
    assert seen(operator, pending).idle_since is None
    # A new grace time begins at the next look.
    assert chosen(operator, second, {"idle_grace_s": 120}).idle_since is None
