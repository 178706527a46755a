"""Every kind of finding is planted, found and, if that is safe, repaired, on every database."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from innkeeper.domain.auditing import Finding
from innkeeper.domain.grouping import group_of_reservation
from innkeeper.domain.ids import ServerId
from innkeeper.engine.database import Database
from innkeeper.engine.maintenance import audit
from innkeeper.engine.maintenance.invariants import INVARIANTS, REPAIRS, findings
from innkeeper.entrypoints.maintenance import auditing
from innkeeper.entrypoints.maintenance.auditing import AuditOptions
from innkeeper.store.backends import catalogue
from innkeeper.store.transactions import Store, Tx
from innkeeper.systems.compute.grouping import groups
from innkeeper.systems.compute.hosts import hosts
from tests.support.audited import GHOST, PLANTS, Audited, furnish
from tests.support.audited_leases import group_lost
from tests.support.clouds import AGENT, DEFAULTS, NOW, Numbers, reported
from tests.support.databases import DATABASES, MIGRATED
from tests.support.foreign_keys import tighten

World = tuple[Store, Audited]


@pytest.fixture(scope="module", params=DATABASES)
def world(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[World]:
    """A cloud with nothing wrong, which every test leaves as it was."""
    with MIGRATED[request.param](tmp_path_factory.mktemp("audited")) as url:
        yield from _world(url)


@pytest.fixture
def own_world(tmp_path: Path) -> Iterator[World]:
    """A cloud that a test may spoil."""
    with MIGRATED["sqlite"](tmp_path) as url:
        yield from _world(url)


def _world(url: str) -> Iterator[World]:
    backend = catalogue.of_url(url)
    store = Store(backend, backend.engines(url, readers_max=2, busy_timeout_s=5.0))
    yield store, furnish(store)
    store.dispose()


class Undone(Exception):
    """Ends a transaction, and rolls it back."""


def test_a_sound_cloud_has_no_findings(world: World) -> None:
    assert audit.look(Database(world[0])) == []


def kinds(found: list[Finding]) -> set[str]:
    return {each.invariant.kind for each in found}


def repair_all(tx: Tx) -> list[Finding]:
    """Run all repairs once in this transaction; returns the remaining findings."""
    found = findings(tx)
    for kind, repair in REPAIRS.items():
        keys = [each.key for each in found if each.invariant.kind == kind]
        if keys:
            assert repair(tx, keys, NOW), f"{kind} is not repaired"
    return findings(tx)


@pytest.mark.parametrize("kind", PLANTS)
def test_what_is_planted_is_found_and_repaired_where_that_is_safe(world: World, kind: str) -> None:
    store, it = world
    with pytest.raises(Undone), store.write() as tx:
        try:
            PLANTS[kind](tx, it)
            assert kind in kinds(findings(tx))
            if kind in REPAIRS:
                assert repair_all(tx) == []
        finally:
            tighten(tx)
        raise Undone
    assert audit.look(Database(store)) == []


def test_a_lost_group_of_a_lease_is_created_again(world: World) -> None:
    store, it = world
    with pytest.raises(Undone), store.write() as tx:
        lost = group_lost(tx, it)
        assert [each.key for each in findings(tx)] == [lost]
        assert repair_all(tx) == []
        group = groups.get(tx, group_of_reservation(lost)[0])
        assert (group.policy, group.project_id) == ("affinity", "project")
        raise Undone


def test_every_kind_is_planted_and_every_promised_repair_is_there() -> None:
    known = [each.kind for each in INVARIANTS]
    different = sorted(set(known) ^ PLANTS.keys())
    assert different == [], f"INVARIANTS and PLANTS in tests/support/audited*.py: {different}"
    assert known == list(PLANTS), "PLANTS has the order of INVARIANTS."
    promised = {each.kind for each in INVARIANTS if each.repair is not None}
    assert promised == REPAIRS.keys(), f"INVARIANTS and REPAIRS: {promised ^ REPAIRS.keys()}"


def spoil(world: World, *planted: str) -> None:
    store, it = world
    with store.write() as tx:
        for kind in planted:
            PLANTS[kind](tx, it)


def run(world: World, **options: bool) -> tuple[int, str]:
    lines: list[str] = []
    status = auditing.run(Database(world[0]), lambda: NOW, lines.append, AuditOptions(**options))
    return status, "".join(lines)


def test_the_command_tells_tries_and_repairs(own_world: World) -> None:
    assert run(own_world) == (0, "0 findings\n")
    spoil(own_world, "wrong-usage", "idle-consumer")
    status, told = run(own_world)
    assert (status, told.splitlines()[-1]) == (1, "2 findings")
    assert told.startswith(
        f"placement: idle-consumer: consumer {GHOST} has no allocations. "
        "`innkeeper audit --repair` removes the consumer.\n"
    )
    status, tried = run(own_world, is_dry=True)
    assert status == 1
    assert tried == f"{told}" + (
        f"would have repaired idle-consumer: consumer {GHOST} is removed\n"
        "would have repaired wrong-usage: the quota usage of project project is now (2, 2, 2048)\n"
    )
    assert run(own_world)[1] == told, "what is tried changes nothing"
    status, repaired = run(own_world, repairs=True)
    assert (status, repaired.splitlines()[-2:]) == (0, ["2 repairs", "0 findings"])
    assert run(own_world) == (0, "0 findings\n")


@pytest.mark.parametrize(
    "spoilt",
    [
        "UPDATE servers SET flavor = '{'",
        "UPDATE servers SET flavor = 'null'",
        "UPDATE servers SET image_properties = '7'",
        "UPDATE hosts SET reported = ''",
        "UPDATE hosts SET reported = '[[]]'",
    ],
)
def test_an_unreadable_part_is_reported_and_the_rest_is_audited(
    own_world: World, spoilt: str
) -> None:
    spoil(own_world, "idle-consumer")
    with own_world[0].write() as tx:
        tx.execute(sa.text(spoilt))
    status, told = run(own_world, repairs=True)
    assert status == 1
    assert "placement: idle-consumer: " in told
    assert "store: unreadable: compute cannot be checked: " in told
    assert told.splitlines()[-1] == "1 findings"


def test_findings_without_a_safe_repair_are_left_and_reported(own_world: World) -> None:
    spoil(own_world, "too-much", "wrong-usage")
    status, told = run(own_world, repairs=True)
    assert (status, told.splitlines()[-1]) == (1, "1 findings")
    assert "compute: too-much: " in told.splitlines()[-2]


def test_the_command_tells_programs(own_world: World) -> None:
    spoil(own_world, "idle-consumer")
    status, told = run(own_world, is_json=True, repairs=True)
    said = json.loads(told)
    assert (status, said["left"]) == (0, [])
    assert [each["kind"] for each in said["findings"]] == ["idle-consumer"]
    assert said["repairs"] == [{"kind": "idle-consumer", "text": f"consumer {GHOST} is removed"}]


def test_an_unknown_server_that_an_agent_finds_is_reported_until_it_is_gone(
    own_world: World,
) -> None:
    store, it = own_world
    there = (ServerId(it.first), ServerId(it.second))

    def report(*servers: ServerId) -> set[str]:
        with store.write() as tx:
            said = reported("h0", traits=frozenset({"HW_CPU_X86_VMX"}), servers=servers)
            hosts.report(tx, AGENT, [said], DEFAULTS, ids=Numbers(), now=NOW)
        return {each.text for each in audit.look(Database(store))}

    assert report(*there) == set()
    found = {f"host h0 has the unknown server {GHOST}, as reported at 2026-01-01 00:00:00"}
    assert report(*there, ServerId(GHOST)) == found
    assert report(*there, ServerId(GHOST)) == found
    assert report(*there) == set()
    assert report(ServerId(it.first)) == {f"host h0 no longer has server {it.second}"}
