"""Servers of pclouds come back from the shelf, whatever became of their place."""

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
from tests.support.pcloud_operations import Landlord

OWNER, GUEST = "lab", "project"
Lodged = tuple[Landlord, str]


@pytest.fixture
def lodged(tmp_path: Path) -> Iterator[Lodged]:
    """A pcloud with one host, which takes a guest's servers also unasked; another host is
    for everybody."""
    landlord = Landlord(Movers(tmp_path, reported("a1"), reported("b1")))
    landlord.define("large", 1)
    landlord.switch_service("a1", ServiceChange(is_disabled=True))
    landlord.pool("large", "a1", by_aggregate=False)
    uuid = landlord.create(OWNER, name="p", is_automatic=True)
    landlord.allocate(uuid, HostRequest("one", "large", None, True))
    for work in (pclouds.authorize, pclouds.accept):
        do(landlord, uuid, work, GUEST)
    yield landlord, uuid
    landlord.movers.close()


def do(landlord: Landlord, uuid: str, work: Callable[..., Any], *given: Any) -> None:
    landlord.act(uuid, lambda tx, pcloud, terms: work(tx, pcloud, *given, terms), owner=OWNER)


def shelved(landlord: Landlord, **more: Any) -> ServerId:
    """A server that was in the pcloud, and is on no host."""
    movers = landlord.movers
    uuid = movers.boot("a1", **more)
    movers.act(shelving.shelve, uuid, offload_time_s=0)
    movers.finish()
    return uuid


def let_out(landlord: Landlord, uuid: str) -> None:
    do(landlord, uuid, pclouds.drop, GUEST)


def delete(landlord: Landlord, uuid: str) -> None:
    landlord.switch(uuid, "one", is_enabled=False)
    landlord.act_on(uuid, "one", hosts.release)
    landlord.delete(uuid, by_aggregate=False, is_forced=True)


def home(landlord: Landlord, server: ServerId) -> str | None:
    """Where a server comes to when it is taken back from the shelf."""
    landlord.movers.unshelve(server)
    landlord.movers.finish()
    landlord.movers.judge()
    host: str | None = landlord.movers.state(server)[2]
    return host


@pytest.mark.parametrize("happens", [let_out, delete])
def test_one_that_was_taken_in_unasked_goes_elsewhere_when_its_pcloud_is_not_for_it(
    lodged: Lodged, happens: Callable[[Landlord, str], None]
) -> None:
    landlord, uuid = lodged
    server = shelved(landlord)
    happens(landlord, uuid)
    assert home(landlord, server) == "b1"
    found = landlord.cloud.read(lambda tx: servers.get(tx, server))
    assert found.hints == {}


def test_one_that_was_taken_in_unasked_stays_in_its_pcloud(lodged: Lodged) -> None:
    landlord, uuid = lodged
    server = shelved(landlord)
    landlord.switch(uuid, "one", is_enabled=False)
    assert home(landlord, server) is None
    landlord.switch(uuid, "one", is_enabled=True)
    assert home(landlord, server) == "a1"


@pytest.mark.parametrize("happens", [let_out, delete])
def test_one_that_named_its_pcloud_goes_nowhere_else(
    lodged: Lodged, happens: Callable[[Landlord, str], None]
) -> None:
    landlord, uuid = lodged
    server = shelved(landlord, hints={"pcloud": uuid})
    happens(landlord, uuid)
    with pytest.raises(Conflict, match="is gone, or is not for its project any more"):
        home(landlord, server)


@pytest.mark.parametrize("happens", [let_out, delete])
def test_one_that_named_its_pcloud_is_rescued(
    lodged: Lodged, happens: Callable[[Landlord, str], None]
) -> None:
    landlord, uuid = lodged
    server = shelved(landlord, hints={"pcloud": uuid})
    happens(landlord, uuid)
    landlord.movers.act(dedicated_hosts.change, server)
    assert home(landlord, server) == "b1"
    findings = landlord.cloud.read(lambda tx: [*pcloud_audit.findings(tx)])
    assert findings == []


def test_shelved_servers_in_vain_are_no_findings(lodged: Lodged) -> None:
    landlord, uuid = lodged
    shelved(landlord, hints={"pcloud": uuid})
    delete(landlord, uuid)
    assert landlord.cloud.read(lambda tx: [*compute_audit.findings(tx)]) == []
    assert landlord.cloud.read(lambda tx: [*pcloud_audit.findings(tx)]) == []


def test_a_pcloud_that_a_server_was_taken_in_by_unasked_is_deleted_as_any_other(
    lodged: Lodged,
) -> None:
    landlord, uuid = lodged
    shelved(landlord)
    landlord.switch(uuid, "one", is_enabled=False)
    landlord.act_on(uuid, "one", hosts.release)
    landlord.delete(uuid, by_aggregate=False)


@pytest.mark.parametrize("by_aggregate", [False, True])
def test_a_pcloud_that_shelved_servers_name_stays(lodged: Lodged, by_aggregate: bool) -> None:
    landlord, uuid = lodged
    server = shelved(landlord, hints={"pcloud": uuid})
    landlord.switch(uuid, "one", is_enabled=False)
    landlord.act_on(uuid, "one", hosts.release)
    before = landlord.world()
    with pytest.raises(InUse, match="and 1 of other projects"):
        landlord.delete(uuid, by_aggregate=by_aggregate)
    assert landlord.world() == before
    landlord.movers.delete(server)
    landlord.delete(uuid, by_aggregate=by_aggregate)


def test_a_host_that_is_called_otherwise_by_now_is_not_missed(lodged: Lodged) -> None:
    landlord, uuid = lodged
    server = shelved(landlord, hints={"pcloud": uuid, "pcloud_host": "one"})
    landlord.act(
        uuid,
        lambda tx, pcloud, terms: hosts.rename(
            tx, pcloud, hosts.get(tx, pcloud, "one"), "other", terms
        ),
    )
    assert home(landlord, server) == "a1"
