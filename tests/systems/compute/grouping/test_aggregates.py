"""Aggregates in every store: zones in force, memberships in Placement, and change rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from innkeeper.domain.errors import AlreadyExists, Conflict, Invalid, NotFound
from innkeeper.domain.grouping import ZONE_KEY, Aggregate
from innkeeper.store import changes
from innkeeper.store.queries.compute import aggregates as aggregate_rows
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute import audit
from innkeeper.systems.compute.grouping import aggregates
from innkeeper.systems.compute.hosts import hosts
from innkeeper.systems.compute.moves import resizing
from innkeeper.systems.placement import aggregates as placement_aggregates
from innkeeper.systems.placement import providers
from tests.support.change_feed import changes_since
from tests.support.clouds import NOW, Cloud, cloud_in, faults, reported
from tests.support.moves import Movers


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[Cloud]:
    """Two hosts; the cloud is audited at the end."""
    made = cloud_in(tmp_path, reported("h1"), reported("h2"))
    yield made
    made.reread()
    made.judge()
    made.close()


def make(cloud: Cloud, name: str, zone: str | None = None, *there: str) -> Aggregate:
    """Create an aggregate with these hosts."""

    def work(tx: Tx) -> Aggregate:
        made = aggregates.create(tx, cloud.ids.uuid(), name, zone, NOW)
        for host in there:
            made = aggregates.add_host(tx, made.id, host, NOW)
        return made

    made: Aggregate = cloud.write(work)
    return made


def describe(cloud: Cloud, row: int, **wanted: str | None) -> Any:
    """Set an aggregate's metadata."""
    return cloud.write(lambda tx: aggregates.set_metadata(tx, row, wanted, NOW))


def changed_hosts(cloud: Cloud, work: Any) -> set[str]:
    """The hosts with change rows of a write."""
    before = cloud.read(changes.newest)
    cloud.write(work)
    moved = {pid for pid, _ in cloud.read(lambda tx: changes_since(tx, before))}
    return {each.name for each in cloud.read(hosts.page) if each.provider_id in moved}


def test_a_host_joins_the_zone_of_an_aggregate_and_returns(cloud: Cloud) -> None:
    made = make(cloud, "a", "east", "h1")
    assert (cloud.host("h1").availability_zone, cloud.host("h2").availability_zone) == (
        "east",
        "nova",
    )
    cloud.write(lambda tx: aggregates.remove_host(tx, made.id, "h1", NOW))
    assert cloud.host("h1").availability_zone == "nova"


def test_setting_a_zone_later_moves_the_present_hosts(cloud: Cloud) -> None:
    made = make(cloud, "a", None, "h1", "h2")
    describe(cloud, made.id, **{ZONE_KEY: "west"})
    assert {each.availability_zone for each in cloud.read(hosts.page)} == {"west"}


def test_two_aggregates_may_name_the_same_zone(cloud: Cloud) -> None:
    first, second = make(cloud, "a", "east", "h1"), make(cloud, "b", "east", "h1")
    assert faults(cloud.boot(cloud.request(availability_zone="east"))) == [None]
    cloud.write(lambda tx: aggregates.remove_host(tx, first.id, "h1", NOW))
    assert cloud.host("h1").availability_zone == "east"
    with pytest.raises(Conflict, match="would change from 'east' to 'nova'"):
        cloud.write(lambda tx: aggregates.remove_host(tx, second.id, "h1", NOW))


def test_the_reported_zone_is_used_without_an_aggregate_zone(cloud: Cloud) -> None:
    made = make(cloud, "a", "east", "h1")
    cloud.report(reported("h1", availability_zone="attic"))
    cloud.report(reported("h2", availability_zone="attic"))
    h1, h2 = cloud.host("h1"), cloud.host("h2")
    assert (h1.availability_zone, h1.reported_zone) == ("east", "attic")
    assert (h2.availability_zone, h2.reported_zone) == ("attic", "attic")
    # A report without a zone changes neither the zone nor the aggregate.
    cloud.report(reported("h1"), reported("h2"))
    assert (cloud.host("h1"), cloud.host("h2")) == (h1, h2)
    cloud.write(lambda tx: aggregates.remove_host(tx, made.id, "h1", NOW))
    assert cloud.host("h1").availability_zone == "attic"


def test_no_aggregate_moves_servers_to_another_zone(cloud: Cloud) -> None:
    made = make(cloud, "a", "east", "h1")
    assert faults(cloud.boot(cloud.request(availability_zone="east"))) == [None]
    with pytest.raises(Conflict, match="would change from 'east' to 'nova' but the host"):
        cloud.write(lambda tx: aggregates.remove_host(tx, made.id, "h1", NOW))
    with pytest.raises(Invalid, match="contain instances in this zone"):
        describe(cloud, made.id, **{ZONE_KEY: "west"})
    assert faults(cloud.boot(cloud.request(availability_zone="nova"))) == [None]
    with pytest.raises(Conflict, match="would change from 'nova' to 'east' but the host"):
        cloud.write(lambda tx: aggregates.add_host(tx, made.id, "h2", NOW))
    # A change to the zone that the hosts are in already is allowed.
    assert make(cloud, "b", "nova", "h2").hosts == ("h2",)


def test_a_host_that_an_open_move_may_use_keeps_its_zone(tmp_path: Path) -> None:
    movers = Movers(tmp_path)
    uuid = movers.boot()
    movers.resize(uuid)
    movers.tell("depart", uuid)
    movers.tell("arrive", uuid)
    assert movers.server(uuid).host == "b1"
    make(movers.cloud, "plain", None, "a1")
    with pytest.raises(Conflict, match="being moved may end up on the host"):
        make(movers.cloud, "west", "west", "a1")
    with pytest.raises(Invalid, match="contain instances in this zone"):
        describe(movers.cloud, 1, **{ZONE_KEY: "west"})
    movers.act(resizing.confirm, uuid)
    movers.tell("destroy", uuid)
    assert describe(movers.cloud, 1, **{ZONE_KEY: "west"}).hosts == ("a1",)
    assert movers.cloud.host("a1").availability_zone == "west"
    movers.close()


def test_a_host_is_in_one_zone_at_most(cloud: Cloud) -> None:
    make(cloud, "a", "east", "h1")
    other = make(cloud, "b", "west", "h2")
    with pytest.raises(Conflict, match=r"already in availability zone\(s\) \['east'\]"):
        cloud.write(lambda tx: aggregates.add_host(tx, other.id, "h1", NOW))
    plain = make(cloud, "c", None, "h1", "h2")
    with pytest.raises(Invalid, match="Cannot update metadata of aggregate 3"):
        describe(cloud, plain.id, **{ZONE_KEY: "west"})
    assert make(cloud, "d", "east", "h1").availability_zone == "east"


def test_a_rejected_change_is_rolled_back(cloud: Cloud) -> None:
    made = make(cloud, "a", "east", "h1")

    def work(tx: Tx) -> None:
        aggregates.rename(tx, made.id, "another", NOW)
        aggregates.set_metadata(tx, made.id, {ZONE_KEY: None}, NOW, deed="update")

    with pytest.raises(Invalid, match="Aggregate another does not support empty named"):
        cloud.write(work)
    assert cloud.read(lambda tx: aggregates.get(tx, made.id)) == made


def test_names_are_unique(cloud: Cloud) -> None:
    made = make(cloud, "a")
    with pytest.raises(AlreadyExists, match="Aggregate a already exists"):
        make(cloud, "a")
    assert cloud.write(lambda tx: aggregates.rename(tx, made.id, "a", NOW)).name == "a"


def test_placement_has_the_same_memberships(cloud: Cloud) -> None:
    made = make(cloud, "a", None, "h1")
    uuid = cloud.host("h1").provider_uuid
    known = cloud.read(lambda tx: placement_aggregates.of_provider(tx, uuid))
    assert known.aggregates == [made.uuid]
    cloud.write(lambda tx: aggregates.remove_host(tx, made.id, "h1", NOW))
    after = cloud.read(lambda tx: placement_aggregates.of_provider(tx, uuid))
    assert (after.aggregates, after.generation) == ([], known.generation + 1)


def test_memberships_edited_in_placement_are_tolerated(cloud: Cloud) -> None:
    made = make(cloud, "a")
    uuid = cloud.host("h1").provider_uuid
    other = cloud.ids.uuid()
    cloud.write(lambda tx: placement_aggregates.replace(tx, uuid, 0, [made.uuid, other], NOW))
    cloud.write(lambda tx: aggregates.add_host(tx, made.id, "h1", NOW))
    cloud.write(lambda tx: placement_aggregates.replace(tx, uuid, 1, [other], NOW))
    cloud.write(lambda tx: aggregates.remove_host(tx, made.id, "h1", NOW))
    # Memberships that exist already advance no generation.
    assert cloud.read(lambda tx: placement_aggregates.of_provider(tx, uuid)) == (2, [other])


def test_changes_add_change_rows_for_member_hosts(cloud: Cloud) -> None:
    made = make(cloud, "a", None, "h1")
    set_key = {"ssd": "true"}
    assert changed_hosts(cloud, lambda tx: aggregates.set_metadata(tx, 1, set_key, NOW)) == {"h1"}
    # An unchanged value adds no change rows, nor does a name, which the host table does not have.
    assert changed_hosts(cloud, lambda tx: aggregates.set_metadata(tx, 1, set_key, NOW)) == set()
    assert changed_hosts(cloud, lambda tx: aggregates.rename(tx, 1, "b", NOW)) == set()
    assert changed_hosts(cloud, lambda tx: aggregates.add_host(tx, 1, "h2", NOW)) == {"h2"}
    zone = {ZONE_KEY: "east"}
    assert changed_hosts(cloud, lambda tx: aggregates.set_metadata(tx, 1, zone, NOW)) == {
        "h1",
        "h2",
    }
    assert changed_hosts(cloud, lambda tx: aggregates.remove_host(tx, made.id, "h2", NOW)) == {"h2"}


def test_the_host_table_follows_all_changes(cloud: Cloud) -> None:
    beside = cloud.beside()
    make(cloud, "a", "east", "h1")
    describe(cloud, 1, ssd="true")
    assert faults(beside.boot(beside.request(availability_zone="east"))) == [None]
    beside.judge()
    beside.close()
    pairs = cloud.read(lambda tx: aggregate_rows.for_snapshot(tx, None))
    provider = cloud.host("h1").provider_id
    assert pairs == [(provider, 1)]
    assert cloud.read(lambda tx: aggregate_rows.for_snapshot(tx, [provider])) == pairs
    assert (
        cloud.read(lambda tx: aggregate_rows.for_snapshot(tx, [cloud.host("h2").provider_id])) == []
    )
    said = {1: {ZONE_KEY: "east", "ssd": "true"}}
    assert cloud.read(lambda tx: aggregate_rows.metadata_of(tx, None)) == said
    assert cloud.read(lambda tx: aggregate_rows.metadata_of(tx, [1, 2])) == said
    assert cloud.read(lambda tx: aggregate_rows.metadata_of(tx, [])) == {}


def test_a_removed_host_leaves_its_aggregates(cloud: Cloud) -> None:
    made = make(cloud, "a", "east", "h1", "h2")
    host = cloud.host("h1")
    cloud.write(lambda tx: hosts.remove_service(tx, host, NOW))
    assert cloud.read(lambda tx: aggregates.get(tx, made.id)).hosts == ("h2",)
    with pytest.raises(NotFound):
        cloud.read(lambda tx: providers.get(tx, host.provider_uuid))
    # The agent reports the host again. It is then in none of the aggregates.
    cloud.report(reported("h1"))
    assert cloud.host("h1").availability_zone == "nova"


def test_a_provider_that_outlives_its_host_leaves_too(cloud: Cloud) -> None:
    make(cloud, "a", "east", "h1")
    host = cloud.host("h1")
    cloud.write(lambda tx: _child(tx, cloud, host.provider_uuid))
    cloud.write(lambda tx: hosts.remove_service(tx, host, NOW))
    assert (
        cloud.read(lambda tx: placement_aggregates.of_provider(tx, host.provider_uuid)).aggregates
        == []
    )


def _child(tx: Tx, cloud: Cloud, parent: str) -> None:
    providers.create(tx, cloud.ids.uuid(), "numa", parent, now=NOW)


def test_only_empty_aggregates_can_be_deleted(cloud: Cloud) -> None:
    made = make(cloud, "a", None, "h1")
    with pytest.raises(Invalid, match="Host aggregate is not empty"):
        cloud.write(lambda tx: aggregates.delete(tx, made.id, NOW))
    cloud.write(lambda tx: aggregates.remove_host(tx, made.id, "h1", NOW))
    cloud.write(lambda tx: aggregates.delete(tx, made.id, NOW))
    with pytest.raises(NotFound, match="Aggregate 1 could not be found"):
        cloud.read(lambda tx: aggregates.get(tx, made.id))


def _spoil(cloud: Cloud, statement: str) -> list[str]:
    """The findings of an audit after a direct write to the store."""
    with cloud.store.write() as tx:
        tx.exec_driver_sql(statement)
    return [each.text for each in cloud.read(lambda tx: list(audit.findings(tx)))]


def test_an_audit_finds_hosts_in_a_wrong_zone(cloud: Cloud) -> None:
    make(cloud, "a", "east", "h1")
    h1 = "UPDATE hosts SET availability_zone = '{}' WHERE name = 'h1'"
    assert _spoil(cloud, h1.format("west")) == [
        "host h1 is in availability zone west, but should be in east"
    ]
    assert _spoil(cloud, h1.format("east")) == []
    h2 = "UPDATE hosts SET availability_zone = '{}' WHERE name = 'h2'"
    assert _spoil(cloud, h2.format("west")) == [
        "host h2 is in availability zone west, but should be in nova"
    ]
    assert _spoil(cloud, h2.format("nova")) == []


def test_an_audit_finds_two_zones_for_one_host(cloud: Cloud) -> None:
    make(cloud, "a", "east", "h1")
    make(cloud, "b", "west")
    there = "INSERT INTO aggregate_hosts (aggregate_id, host_id) VALUES (2, 1)"
    assert _spoil(cloud, there) == ["host h1 is in the availability zones east, west"]
    assert _spoil(cloud, "DELETE FROM aggregate_hosts WHERE aggregate_id = 2") == []
