"""Concurrent moves of members of a server group keep its policy."""

from __future__ import annotations

from pathlib import Path

from innkeeper.domain.grouping import ServerGroup
from innkeeper.domain.ids import ServerId
from innkeeper.systems.compute.grouping import groups
from innkeeper.systems.compute.moves import resizing
from tests.support.clouds import NOW, faults, reported
from tests.support.moves import Movers

GROUP = "90000000-0000-4000-8000-000000000001"


def test_no_server_joins_an_affinity_group_while_a_member_moves(tmp_path: Path) -> None:
    movers = Movers(tmp_path, reported("a1"), reported("b1"))
    group = ServerGroup(GROUP, "g", "project", "user", "affinity", None, NOW)
    movers.cloud.write(lambda tx: groups.create(tx, group, -1))
    first = movers.boot("a1", hints={"group": GROUP})
    assert movers.migrate(first).fault is None
    request = movers.cloud.request(1, hints={"group": GROUP})
    (fault,) = faults(movers.cloud.boot(request))
    assert fault is not None
    assert "; a member is migrating" in fault
    movers.tell("depart", first)
    movers.tell("arrive", first)
    # The server may still go back, until the move is confirmed.
    assert faults(movers.cloud.boot(movers.cloud.request(1, hints={"group": GROUP}))) != [None]
    movers.act(resizing.confirm, first)
    movers.tell("destroy", first)
    movers.boot(None, hints={"group": GROUP})
    movers.close()


def apart(folder: Path, *names: str) -> tuple[Movers, list[ServerId]]:
    """These hosts, and a member of one anti-affinity group on each of the first two."""
    movers = Movers(folder, *(reported(name) for name in names))
    group = ServerGroup(GROUP, "g", "project", "user", "anti-affinity", None, NOW)
    movers.cloud.write(lambda tx: groups.create(tx, group, -1))
    return movers, [movers.boot(name, hints={"group": GROUP}) for name in names[:2]]


def test_two_members_that_move_at_once_go_to_different_hosts(tmp_path: Path) -> None:
    movers, (first, second) = apart(tmp_path, "a1", "a2", "b1", "b2")
    assert movers.migrate(first).fault is None
    assert movers.migrate(second).fault is None
    ahead = {movers.migration(each).dest_host for each in (first, second)}
    assert ahead == {"b1", "b2"}
    movers.close()


def test_a_member_may_not_move_to_another_members_destination(tmp_path: Path) -> None:
    movers, (first, second) = apart(tmp_path, "a1", "a2", "b1")
    assert movers.migrate(first).fault is None
    fault = movers.migrate(second).fault
    assert fault is not None
    assert "ServerGroupFilter removed" in fault
    # Nor may the member move to the host to which the other may go back before its move is
    # confirmed.
    movers.tell("depart", first)
    movers.tell("arrive", first)
    fault = movers.migrate(second).fault
    assert fault is not None
    assert "ServerGroupFilter removed" in fault
    movers.close()
