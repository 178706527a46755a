"""Unshelving servers of pclouds, whatever happened to the pcloud or its hosts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from innkeeper.domain.errors import Conflict, InUse
from innkeeper.domain.ids import ServerId
from innkeeper.systems.compute import audit as compute_audit
from innkeeper.systems.compute.hosts.hosts import ServiceChange
from innkeeper.systems.compute.moves import dedicated_hosts, shelving
from innkeeper.systems.compute.servers import servers
from innkeeper.systems.pclouds import audit as pcloud_audit
from innkeeper.systems.pclouds import hosts, pclouds
from innkeeper.systems.pclouds.hosts import HostRequest
from tests.support.clouds import reported
from tests.support.moves import Movers
from tests.support.pcloud_operator import PcloudOperator

OWNER, GUEST = "lab", "project"
Lodged = tuple[PcloudOperator, str]


@pytest.fixture
def lodged(tmp_path: Path) -> Iterator[Lodged]:
    """A pcloud with one host and automatic placement for another project, and an ordinary host."""
    operator = PcloudOperator(Movers(tmp_path, reported("a1"), reported("b1")))
    operator.define("large", 1)
    operator.switch_service("a1", ServiceChange(is_disabled=True))
    operator.pool("large", "a1", by_aggregate=False)
    uuid = operator.create(OWNER, name="p", is_automatic=True)
    operator.allocate(uuid, HostRequest("one", "large", None, True))
    for work in (pclouds.authorize, pclouds.accept):
        do(operator, uuid, work, GUEST)
    yield operator, uuid
    operator.movers.close()


def do(operator: PcloudOperator, uuid: str, work: Callable[..., Any], *given: Any) -> None:
    operator.act(uuid, lambda tx, pcloud, context: work(tx, pcloud, *given, context), owner=OWNER)


def shelved(operator: PcloudOperator, **more: Any) -> ServerId:
    """A server that was in the pcloud, and is on no host."""
    movers = operator.movers
    uuid = movers.boot("a1", **more)
    movers.act(shelving.shelve, uuid, offload_time_s=0)
    movers.finish()
    return uuid


def let_out(operator: PcloudOperator, uuid: str) -> None:
    do(operator, uuid, pclouds.drop, GUEST)


def delete(operator: PcloudOperator, uuid: str) -> None:
    operator.switch(uuid, "one", is_enabled=False)
    operator.act_on(uuid, "one", hosts.release)
    operator.delete(uuid, by_aggregate=False, is_forced=True)


def home(operator: PcloudOperator, server: ServerId) -> str | None:
    """The host to which a server is unshelved."""
    operator.movers.unshelve(server)
    operator.movers.finish()
    operator.movers.judge()
    host: str | None = operator.movers.state(server)[2]
    return host


@pytest.mark.parametrize("happens", [let_out, delete])
def test_an_automatically_placed_server_unshelves_elsewhere_without_access(
    lodged: Lodged, happens: Callable[[PcloudOperator, str], None]
) -> None:
    operator, uuid = lodged
    server = shelved(operator)
    happens(operator, uuid)
    assert home(operator, server) == "b1"
    found = operator.cloud.read(lambda tx: servers.get(tx, server))
    assert found.hints == {}


def test_an_automatically_placed_server_unshelves_in_its_pcloud(lodged: Lodged) -> None:
    operator, uuid = lodged
    server = shelved(operator)
    operator.switch(uuid, "one", is_enabled=False)
    assert home(operator, server) is None
    operator.switch(uuid, "one", is_enabled=True)
    assert home(operator, server) == "a1"


@pytest.mark.parametrize("happens", [let_out, delete])
def test_a_server_that_named_its_pcloud_unshelves_nowhere_else(
    lodged: Lodged, happens: Callable[[PcloudOperator, str], None]
) -> None:
    operator, uuid = lodged
    server = shelved(operator, hints={"pcloud": uuid})
    happens(operator, uuid)
    with pytest.raises(Conflict, match="no longer exists, or the project may no longer use it"):
        home(operator, server)


@pytest.mark.parametrize("happens", [let_out, delete])
def test_a_stranded_server_can_change_its_pcloud(
    lodged: Lodged, happens: Callable[[PcloudOperator, str], None]
) -> None:
    operator, uuid = lodged
    server = shelved(operator, hints={"pcloud": uuid})
    happens(operator, uuid)
    operator.movers.act(dedicated_hosts.change, server)
    assert home(operator, server) == "b1"
    findings = operator.cloud.read(lambda tx: [*pcloud_audit.findings(tx)])
    assert findings == []


def test_shelved_servers_without_a_place_are_not_findings(lodged: Lodged) -> None:
    operator, uuid = lodged
    shelved(operator, hints={"pcloud": uuid})
    delete(operator, uuid)
    assert operator.cloud.read(lambda tx: [*compute_audit.findings(tx)]) == []
    assert operator.cloud.read(lambda tx: [*pcloud_audit.findings(tx)]) == []


def test_automatically_placed_servers_do_not_prevent_deletion(lodged: Lodged) -> None:
    operator, uuid = lodged
    shelved(operator)
    operator.switch(uuid, "one", is_enabled=False)
    operator.act_on(uuid, "one", hosts.release)
    operator.delete(uuid, by_aggregate=False)


@pytest.mark.parametrize("by_aggregate", [False, True])
def test_a_pcloud_named_by_shelved_servers_is_not_deleted(
    lodged: Lodged, by_aggregate: bool
) -> None:
    operator, uuid = lodged
    server = shelved(operator, hints={"pcloud": uuid})
    operator.switch(uuid, "one", is_enabled=False)
    operator.act_on(uuid, "one", hosts.release)
    before = operator.world()
    with pytest.raises(InUse, match="and 1 of other projects"):
        operator.delete(uuid, by_aggregate=by_aggregate)
    assert operator.world() == before
    operator.movers.delete(server)
    operator.delete(uuid, by_aggregate=by_aggregate)


def test_a_renamed_host_is_no_longer_required(lodged: Lodged) -> None:
    operator, uuid = lodged
    server = shelved(operator, hints={"pcloud": uuid, "pcloud_host": "one"})
    operator.act(
        uuid,
        lambda tx, pcloud, context: hosts.rename(
            tx, pcloud, hosts.get(tx, pcloud, "one"), "other", context
        ),
    )
    assert home(operator, server) == "a1"
