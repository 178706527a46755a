"""Errors of servers with or without a pcloud hide dedicated hosts; and whose quota counts."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import pytest
import sqlalchemy as sa

from innkeeper.domain.compute import Booted
from innkeeper.domain.errors import QuotaExceeded
from innkeeper.domain.ids import ServerId
from innkeeper.domain.slices import Computing, Scheduling
from innkeeper.scheduling import explanation_values
from innkeeper.store.queries.compute import quota_usages, servers
from innkeeper.store.tables import compute as compute_tables
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.boot import decisions
from innkeeper.systems.compute.hosts.hosts import ServiceChange
from innkeeper.systems.compute.servers import servers as server_rules
from innkeeper.systems.pclouds import hosts, pclouds
from innkeeper.systems.pclouds.hosts import HostRequest
from tests.support.clouds import reported
from tests.support.moves import Movers
from tests.support.pcloud_operator import PcloudOperator

OWNER, GUEST, STRANGER = "lab", "shop", "club"
UNKNOWN = "11111111-2222-4333-8444-555555555555"
SEED = 1


def furnished(folder: Path, *pooled: str, **settings: Any) -> PcloudOperator:
    """A cloud of three hosts, some of them in a pool."""
    reports = [reported(each, 9, 9999, 999) for each in ("a1", "a2", "b1")]
    operator = PcloudOperator(Movers(folder, *reports, **settings))
    operator.define("large", 1)
    for name in pooled:
        operator.switch_service(name, ServiceChange(is_disabled=True))
        operator.pool("large", name, by_aggregate=False)
    return operator


def told(operator: PcloudOperator, hints: dict[str, Any]) -> dict[str, Any]:
    """What another project learns from an explained boot and from a real one."""
    cloud, now = operator.cloud, operator.movers.now
    asked: dict[str, Any] = {"project_id": STRANGER, "hints": hints, "seed": SEED, "now": now}
    (answer,) = cloud.carry_out(("explain", cloud.request(**asked)))
    (booted,) = cloud.boot(cloud.request(**asked))
    assert isinstance(booted, Booted)
    explained = explanation_values.explanation(answer.explanation, are_hosts_named=False)
    return {**explained, "told_at_boot": booted.fault}


@pytest.mark.parametrize("had_it", [OWNER, STRANGER])
@pytest.mark.parametrize("more", [{}, {"pcloud_host": "one"}])
def test_deleted_foreign_and_unknown_pclouds_look_alike(
    tmp_path: Path, more: dict[str, str], had_it: str
) -> None:
    operator = furnished(tmp_path, "a1", "a2")
    theirs, gone = operator.create(OWNER, name="p"), operator.create(had_it, name="q")
    for each in (theirs, gone):
        operator.allocate(each, HostRequest("one", "large", None, True))
    # A request while both exist.
    operator.movers.boot(None, project_id=OWNER, hints={"pcloud": theirs})
    operator.switch(gone, "one", is_enabled=False)
    operator.act_on(gone, "one", hosts.release)
    operator.delete(gone, by_aggregate=False)
    expected = told(operator, {"pcloud": UNKNOWN, **more})
    assert expected["fault"] == expected["told_at_boot"]
    assert expected["fault"].startswith("No valid host was found.")
    assert expected["removed"]
    assert expected["removed"][0]["missing"]
    assert expected["nearest"]
    for uuid in (gone, theirs):
        assert told(operator, {"pcloud": uuid, **more}) == expected
    operator.movers.close()


def test_a_guests_server_counts_against_the_guests_quota(tmp_path: Path) -> None:
    operator = furnished(tmp_path, "a1", computing=Computing(quota_instances=1))
    cloud = operator.cloud
    uuid = operator.create(OWNER, name="p")
    operator.allocate(uuid, HostRequest("one", "large", None, True))
    operator.act(uuid, lambda tx, pcloud, context: pclouds.authorize(tx, pcloud, GUEST, context))

    def boot(project_id: str) -> Any:
        request = cloud.request(
            project_id=project_id, hints={"pcloud": uuid}, now=operator.movers.now
        )
        (answer,) = cloud.boot(request)
        return answer

    def counted() -> list[int]:
        found = cloud.read(lambda tx: quota_usages.of_projects(tx, [OWNER, GUEST]))
        return [found[each].servers for each in (OWNER, GUEST)]

    assert boot(GUEST).fault is None
    assert counted() == [0, 1]
    refused = boot(GUEST)
    assert isinstance(refused, QuotaExceeded)
    assert "instances: Requested 1, but already used 1 of 1" in refused.message
    assert boot(OWNER).fault is None
    assert counted() == [1, 1]
    operator.movers.close()


def lost(operator: PcloudOperator) -> str:
    """Another project's server that found no host, because two of the three hosts are in a pool."""
    operator.cloud.add_flavor("huge", vcpus=999)
    request = operator.cloud.request(
        project_id=STRANGER, flavor_id="huge", seed=SEED, now=operator.movers.now
    )
    (booted,) = operator.cloud.boot(request)
    assert isinstance(booted, Booted)
    assert booted.fault is not None
    return booted.server_ids[0]


def read(operator: PcloudOperator, uuid: str, *, is_admin: bool) -> tuple[str, Any]:
    """A server's fault, and the decision about it."""

    def look(tx: Tx) -> tuple[str, Any]:
        server = servers.by_uuid(tx, ServerId(uuid))
        assert server is not None
        assert server.fault is not None
        told = decisions.shown(tx, server, are_hosts_named=is_admin)
        return server_rules.fault_message(server.fault, is_counted=is_admin), told

    seen: tuple[str, Any] = operator.cloud.read(look)
    return seen


@pytest.mark.parametrize("explain_decisions", ["brief", "full"])
def test_a_kept_fault_counts_hosts_for_administrators(
    tmp_path: Path, explain_decisions: Literal["brief", "full"]
) -> None:
    scheduling = Scheduling(explain_decisions=explain_decisions)
    operator = furnished(tmp_path, "a1", "a2", scheduling=scheduling)
    uuid = lost(operator)
    fault, told = read(operator, uuid, is_admin=False)
    assert "None of the hosts passed all filters: " in fault
    assert "some hosts do not allow this amount in one allocation" in fault
    assert told["fault"] == fault
    assert "removed some" in fault
    assert "some hosts do not" in told["removed"][-1]["missing"]
    assert "missing_counted" not in str(told)
    fault, told = read(operator, uuid, is_admin=True)
    assert "Of 3 hosts, 0 passed all filters: PcloudFilter removed 2 " in fault
    assert "CapacityFilter removed 1 " in fault
    assert ", 1 hosts do not allow this amount in one allocation" in fault
    assert told["fault"] == fault
    assert ", 1 hosts do not" in told["removed"][-1]["missing"]
    assert "missing_counted" not in str(told)
    operator.movers.close()


def test_faults_kept_by_an_older_release_are_readable(tmp_path: Path) -> None:
    operator = furnished(tmp_path, "a1", "a2")
    uuid = lost(operator)
    before, _ = read(operator, uuid, is_admin=False)

    def age(tx: Tx) -> None:
        query = sa.select(compute_tables.servers.c.fault, compute_tables.servers.c.decision)
        ((fault, decision),) = tx.execute(query).all()
        assert fault.pop("counted").startswith("No valid host was found. Of 3 hosts")
        assert set(decision) >= {"has_dedicated", "removed"}
        values = {"fault": fault, "decision": {**decision, "has_dedicated": True}}
        tx.execute(compute_tables.servers.update().values(**values))

    operator.cloud.write(age)
    for is_admin in (False, True):
        fault, told = read(operator, uuid, is_admin=is_admin)
        assert fault == told["fault"] == before
        assert "some hosts do not" in told["removed"][-1]["missing"]
        assert (told["hosts"] == 3) is is_admin
    operator.movers.close()
