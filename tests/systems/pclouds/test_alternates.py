"""A server whose build failed is retried only on hosts of pclouds that its project may use."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from innkeeper.systems.compute.hosts.hosts import ServiceChange
from innkeeper.systems.pclouds import hosts, pclouds
from innkeeper.systems.pclouds.hosts import HostRequest
from tests.support.clouds import reported
from tests.support.moves import Movers
from tests.support.pcloud_operator import PcloudOperator

MINE, THEIRS = "project", "stranger"
Folded = tuple[PcloudOperator, str, str]


@pytest.fixture
def folded(tmp_path: Path) -> Iterator[Folded]:
    """Two hosts in a project's pcloud, and another project's pcloud without hosts."""
    operator = PcloudOperator(Movers(tmp_path, reported("a1"), reported("b1")))
    operator.define("large", 1)
    for name in ("a1", "b1"):
        operator.switch_service(name, ServiceChange(is_disabled=True))
        operator.pool("large", name, by_aggregate=False)
    mine, theirs = (operator.create(each, name="p") for each in (MINE, THEIRS))
    operator.allocate(
        mine, HostRequest("one", "large", None, True), HostRequest("two", "large", None, True)
    )
    yield operator, mine, theirs
    operator.movers.close()


def give_away(operator: PcloudOperator, mine: str, theirs: str) -> None:
    """Move the host that has no build to the other project's pcloud."""
    movers = operator.movers
    (order,) = movers.waiting("build")
    there = operator.act(mine, lambda tx, pcloud, _: hosts.page(tx, pcloud))
    (other,) = (each.name for each in there if each.hostname != order.host)
    operator.switch(mine, other, is_enabled=False)
    operator.act_on(mine, other, hosts.release)
    operator.allocate(theirs, HostRequest("theirs", "large", None, True))


def let_out(operator: PcloudOperator, mine: str, _: str) -> None:
    """Remove the project from its own pcloud."""
    operator.act(
        mine, lambda tx, pcloud, context: pclouds.drop(tx, pcloud, MINE, context), owner=MINE
    )


@pytest.mark.parametrize("happens", [give_away, let_out])
def test_a_retried_build_avoids_hosts_that_its_project_may_not_use(
    folded: Folded, happens: Callable[[PcloudOperator, str, str], None]
) -> None:
    operator, mine, theirs = folded
    movers = operator.movers
    # The request also names the other project's pcloud, which has no effect.
    request = movers.cloud.request(
        now=movers.now, project_id=MINE, hints={"pcloud": [mine, theirs]}
    )
    movers.cloud.boot(request)
    happens(operator, mine, theirs)
    movers.tell("build", request.server_ids[0], "No disk.")
    assert movers.state(request.server_ids[0]) == ("ERROR", None, None)


def test_a_retried_build_uses_another_host_of_its_pcloud(folded: Folded) -> None:
    operator, mine, theirs = folded
    movers = operator.movers
    request = movers.cloud.request(
        now=movers.now, project_id=MINE, hints={"pcloud": [theirs, mine]}
    )
    movers.cloud.boot(request)
    movers.tell("build", request.server_ids[0], "No disk.")
    movers.tell("build", request.server_ids[0])
    assert movers.state(request.server_ids[0])[0] == "ACTIVE"
