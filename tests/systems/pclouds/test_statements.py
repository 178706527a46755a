"""The number of statements does not depend on the number of a pcloud's hosts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from innkeeper.domain.compute import UNLIMITED
from innkeeper.domain.ids import ServerId
from innkeeper.domain.pclouds import SizePolicy
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.hosts.hosts import ServiceChange
from innkeeper.systems.pclouds import hosts, pclouds, sizes
from innkeeper.systems.pclouds.hosts import HostRequest
from tests.support.clouds import reported
from tests.support.moves import Movers
from tests.support.pcloud_operator import PcloudOperator
from tests.support.statements import Counter

FEW, MANY, SPARE = 2, 8, 4
TURNS = 30
Owner = tuple[PcloudOperator, dict[int, str]]


@pytest.fixture
def owner(tmp_path: Path) -> Iterator[Owner]:
    """A pcloud of few hosts and one of many, by their sizes; each host has a server."""
    names = [f"a{number}" for number in range(FEW + MANY + SPARE)]
    operator = PcloudOperator(Movers(tmp_path, *(reported(name) for name in names)))
    operator.define("gold", 1)
    operator.set_quota("project", UNLIMITED)
    for name in names:
        operator.switch_service(name, ServiceChange(is_disabled=True))
        operator.pool("gold", name, by_aggregate=False)
    mine: dict[int, str] = {}
    for count in (FEW, MANY):
        # The pcloud would shrink at once if its hosts were empty.
        size = SizePolicy(0, count, "gold", idle_s=0)
        mine[count] = operator.create("project", name="p", size=size)
        for number in range(count):
            operator.allocate(mine[count], HostRequest(f"h{number}", "gold", None, True))
            hints = {"pcloud": mine[count], "pcloud_host": f"h{number}"}
            operator.movers.boot(None, hints=hints)
    yield operator, mine
    operator.movers.judge()
    operator.movers.close()


def look(uuid: str, tx: Tx) -> int:
    """Show all of a pcloud's hosts; return their number."""
    found = hosts.page(tx, pclouds.get(tx, uuid))
    assert len(hosts.residents(tx, found)) == len(hosts.resources(tx, found)) == len(found)
    return len(found)


def counted(
    operator: PcloudOperator, work: Callable[[str], object], mine: dict[int, str]
) -> list[int]:
    """The numbers of statements for the pcloud of few hosts and for the pcloud of many."""
    counter = Counter(operator.cloud)
    return [counter.of(partial(work, uuid)) for _, uuid in sorted(mine.items())]


def test_hosts_are_listed_together(owner: Owner) -> None:
    operator, mine = owner
    few, many = counted(operator, lambda uuid: operator.cloud.read(partial(look, uuid)), mine)
    assert few == many


def test_checking_hosts_in_use_takes_constant_statements(owner: Owner) -> None:
    operator, mine = owner
    operator.movers.wait(60.0)
    context = operator.context()

    def keep(uuid: str) -> None:
        assert operator.cloud.write(lambda tx: sizes.keep(tx, uuid, context)) == 0

    few, many = counted(operator, keep, mine)
    assert few == many


def test_checking_replaced_hosts_takes_constant_statements(owner: Owner) -> None:
    operator, mine = owner
    counter, counts = Counter(operator.cloud), []
    for names in (["h0"], ["h1", "h2", "h3"]):
        for name in names:
            replace(operator, mine[MANY], name)
        counts.append(counter.of(operator.look_after_replaced))
    few, many = counts
    assert few == many


def test_replaced_hosts_that_wait_do_not_delay_others(owner: Owner) -> None:
    operator, mine = owner
    movers, names = operator.movers, [f"h{number}" for number in range(SPARE)]
    for name in names:
        replace(operator, mine[MANY], name)
    # Their servers are gone, but their agent has not reported it.
    movers.wait(61.0, silent="a")
    counts, counter = [], Counter(operator.cloud)
    for name in names:
        uuid = server_on(operator, mine[MANY], f"{name}~1")
        movers.delete(uuid)
        counts.append(counter.of(partial(operator.look_after_replaced, 1)))
    assert len(set(counts)) == 1
    movers.tell("destroy", uuid)
    assert sum(operator.look_after_replaced(1) for _ in range(TURNS)) == 1


def test_finding_idle_hosts_takes_constant_statements(owner: Owner) -> None:
    operator, mine = owner
    uuid, size = mine[MANY], SizePolicy(0, MANY + SPARE, "gold", idle_s=60)
    operator.update(uuid, size=size)
    movers, names = operator.movers, [f"h{number}" for number in range(MANY)]
    counts, counter = [], Counter(operator.cloud)
    for idle in (names[:FEW], names[FEW:]):
        for name in idle:
            movers.delete(server_on(operator, uuid, name))
        movers.finish()
        counts.append(counter.of(operator.keep_sizes))
    few, many = counts
    assert few == many
    # One host is released, however many hosts are empty.
    movers.wait(60.0)
    few, many = (counter.of(operator.keep_sizes) for _ in range(2))
    assert few == many
    assert len(operator.cloud.read(lambda tx: hosts.page(tx, pclouds.get(tx, uuid)))) == MANY - 2


def server_on(operator: PcloudOperator, uuid: str, name: str) -> ServerId:
    """The one server on a host of a pcloud."""

    def look(tx: Tx) -> ServerId:
        member = hosts.get(tx, pclouds.get(tx, uuid), name)
        ((_, found),) = hosts.residents(tx, [member]).items()
        return found[0].server_uuid

    server: ServerId = operator.cloud.read(look)
    return server


def replace(operator: PcloudOperator, uuid: str, name: str) -> None:
    """Let another host take the place of a broken one, whose servers stay."""
    member = operator.cloud.read(lambda tx: hosts.get(tx, pclouds.get(tx, uuid), name))
    operator.maintain("gold", member.hostname, "smoke")
    operator.act(uuid, lambda tx, pcloud, context: hosts.replace(tx, pcloud, name, context))


def test_a_transfer_takes_constant_statements(owner: Owner) -> None:
    operator, mine = owner

    def give(uuid: str) -> None:
        operator.act(
            uuid, lambda tx, pcloud, context: pclouds.transfer(tx, pcloud, "heir", context)
        )

    operator.set_quota("heir", UNLIMITED)
    few, many = counted(operator, give, mine)
    assert few == many
