"""The follower of a real feed: what it reads again, what it skips, and when it reloads."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from innkeeper.domain.amounts import Inventory
from innkeeper.domain.ids import AgentId, ConsumerUuid
from innkeeper.domain.placement import ConsumerClaim
from innkeeper.snapshot import feed
from innkeeper.snapshot.follower import OVERLAP, Follower
from innkeeper.snapshot.loader import seconds
from innkeeper.store import changes
from innkeeper.store.queries.compute import agents
from innkeeper.store.queries.placement import names
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.hosts import hosts
from innkeeper.systems.placement import claims, inventories, providers, traits
from tests.support.change_feed import bookmark_at
from tests.support.clouds import AGENT, NOW, Cloud, cloud_in, faults, reported

LATER = NOW + timedelta(hours=2)
SHARED = "50000000-0000-4000-8000-000000000000"


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[Cloud]:
    """A cloud of three hosts."""
    started = cloud_in(tmp_path, *(reported(name) for name in ("a", "b", "c")))
    yield started
    started.reread()
    started.judge()
    started.close()


@pytest.fixture
def behind(cloud: Cloud) -> Iterator[Cloud]:
    """Another process, which has read the state at the start of the test."""
    other = cloud.beside()
    yield other
    other.reread()
    other.judge()
    other.close()


def free(cloud: Cloud, name: str) -> float:
    """A host's free VCPU in the host table."""
    return float(cloud.table.free["VCPU"][cloud.table.index_by_name[name]])


def follow(cloud: Cloud) -> None:
    """Catch up in a read transaction."""
    with cloud.store.read() as tx:
        cloud.executor.follow(tx)


def prune(cloud: Cloud) -> int:
    """Prune the feed except for its newest row."""
    dropped: int = cloud.write(lambda tx: changes.prune(tx, LATER, 0))
    return dropped


def test_writes_of_other_processes_are_seen_after_catching_up(cloud: Cloud, behind: Cloud) -> None:
    cloud.report(reported("b", vcpus=9), reported("d", vcpus=2, availability_zone="north"))
    assert free(behind, "b") == 4
    follow(behind)
    assert (free(behind, "b"), free(behind, "d")) == (9, 2)
    assert behind.table.change_id == cloud.table.change_id
    behind.judge()


def test_catching_up_with_nothing_changes_nothing(behind: Cloud) -> None:
    before = behind.table.change_id
    follow(behind)
    follow(behind)
    assert behind.table.change_id == before


def test_own_claims_are_not_read_again(cloud: Cloud) -> None:
    """The row already has the generation, so catching up skips the row."""
    cloud.boot(cloud.request(forced_host="a", is_admin=True))
    index = cloud.table.index_by_name["a"]
    cloud.table.used["DISK_GB"][index] = 77
    cloud.table.bookmark = cloud.read(lambda tx: bookmark_at(tx, cloud.table.change_id))
    follow(cloud)
    assert cloud.table.used["DISK_GB"][index] == 77
    cloud.table.used["DISK_GB"][index] = 10


def test_a_removed_host_leaves_the_table_and_may_return(cloud: Cloud, behind: Cloud) -> None:
    cloud.write(lambda tx: hosts.remove_service(tx, hosts.by_name(tx, "b"), NOW))
    follow(behind)
    assert sorted(behind.table.names) == ["a", "c"]
    cloud.report(reported("b", vcpus=7))
    follow(behind)
    assert free(behind, "b") == 7


def test_providers_without_a_host_have_no_row(cloud: Cloud, behind: Cloud) -> None:
    def share(tx: Tx) -> None:
        providers.create(tx, SHARED, "shared", None, now=NOW)
        inventories.replace(tx, SHARED, 0, {"DISK_GB": Inventory(1000)}, NOW)

    cloud.write(share)
    follow(behind)
    assert sorted(behind.table.names) == ["a", "b", "c"]


def test_claims_on_other_providers_are_left_out_until_they_are_pools(
    cloud: Cloud, behind: Cloud
) -> None:
    def share(tx: Tx) -> None:
        providers.create(tx, SHARED, "shared", None, now=NOW)
        inventories.replace(tx, SHARED, 0, {"DISK_GB": Inventory(1000)}, NOW)

    def hold(tx: Tx) -> None:
        provider_id = providers.get(tx, SHARED).id
        amounts = {provider_id: {names.class_ids(tx)["DISK_GB"]: 30}}
        consumer = ConsumerUuid("60000000-0000-4000-8000-000000000000")
        claims.replace(tx, [ConsumerClaim(consumer, "project", "user", amounts, None)], NOW)

    def lend(tx: Tx) -> None:
        generation = providers.get(tx, SHARED).generation
        traits.replace(tx, SHARED, generation, ["MISC_SHARES_VIA_AGGREGATE"], NOW)

    cloud.write(share)
    follow(behind)
    cloud.write(hold)
    taken = behind.read(lambda tx: feed.take(tx, behind.table))
    assert taken == feed.Taken()
    assert behind.table.change_id == cloud.read(changes.newest).id
    cloud.write(lend)
    follow(behind)
    assert behind.table.pools.used["DISK_GB"].tolist() == [30]
    behind.judge()


def test_a_feed_pruned_past_the_follower_makes_it_reload(cloud: Cloud, behind: Cloud) -> None:
    for size in (5, 6, 7):
        cloud.report(reported("a", vcpus=size), reported("b", vcpus=size))
    assert prune(cloud) > 0
    follow(behind)
    assert (free(behind, "a"), free(behind, "b")) == (7, 7)


def test_a_feed_pruned_before_the_follower_is_followed(cloud: Cloud, behind: Cloud) -> None:
    cloud.report(reported("a", vcpus=5))
    follow(behind)
    prune(cloud)
    table = behind.table
    cloud.report(reported("a", vcpus=6))
    follow(behind)
    assert free(behind, "a") == 6
    assert behind.table is table, "nothing had to be read whole"


def test_a_reload_in_a_failed_transaction_is_discarded(cloud: Cloud, behind: Cloud) -> None:
    """The table was reloaded in a transaction that was rolled back. No change rows are left."""
    for size in (5, 6):
        cloud.report(reported("a", vcpus=size), reported("b", vcpus=size))
    table = behind.table

    def write_and_cut(tx: Tx) -> None:
        behind.report_in(tx, reported("c", vcpus=99))
        changes.prune(tx, LATER, 0)

    with pytest.raises(RuntimeError), behind.store.write() as tx:
        behind.executor.begin(tx)
        write_and_cut(tx)
        behind.executor.follow(tx)
        assert behind.table is not table, "the feed was cut behind it"
        assert free(behind, "c") == 99
        raise RuntimeError("the commit failed")
    behind.executor.forget()
    behind.reread()
    assert (free(behind, "a"), free(behind, "c")) == (6, 4)


def test_rows_of_a_failed_transaction_are_read_again(cloud: Cloud) -> None:
    with pytest.raises(RuntimeError), cloud.store.write() as tx:
        cloud.executor.begin(tx)
        outcomes = cloud.executor.boot(tx, [cloud.request(5)])
        assert faults(outcomes) == [None]
        cloud.report_in(tx, reported("d"), reported("a", vcpus=50))
        hosts.remove_service(tx, hosts.by_name(tx, "d"), NOW)
        cloud.executor.follow(tx)
        raise RuntimeError("the commit failed")
    cloud.executor.forget()
    cloud.reread()
    cloud.judge()
    assert cloud.table.used["VCPU"].sum() == 0


def test_repeated_failures_do_not_grow_the_table(cloud: Cloud) -> None:
    for _ in range(4):
        with pytest.raises(RuntimeError), cloud.store.write() as tx:
            cloud.executor.begin(tx)
            cloud.executor.boot(tx, [cloud.request(2), cloud.request(30)])
            raise RuntimeError("the commit failed")
        cloud.executor.forget()
    assert faults(cloud.boot(cloud.request(12))) == [None]
    cloud.judge()


def test_a_failure_before_any_change_costs_nothing(cloud: Cloud) -> None:
    table, last = cloud.table, cloud.table.change_id
    cloud.executor.forget()
    cloud.reread()
    assert (cloud.table, cloud.table.change_id) == (table, last)


def test_a_new_follower_that_discards_rows_does_not_start_over(cloud: Cloud) -> None:
    follower = Follower()
    with cloud.store.read() as tx:
        follower.load(tx)
        last = follower.table.change_id
        follower.forget()
        follower.begin(tx)
    assert follower.table.change_id == last
    prune(cloud)


# -- agents


def heard_at(cloud: Cloud, moment: datetime, agent_id: AgentId = AGENT.id) -> None:
    """Record a heartbeat of an agent."""
    cloud.write(lambda tx: agents.mark_seen(tx, [agent_id], moment))


def hear(cloud: Cloud, now: datetime = LATER) -> float:
    """Apply the heartbeats to the table; return the agent's timestamp in it."""
    with cloud.store.read() as tx:
        cloud.executor.follower.read_heartbeats(tx, now)
    table = cloud.table
    return float(table.agent_seen_s[table.agents[AGENT.id]])


def test_heartbeats_are_read_on_request(cloud: Cloud, behind: Cloud) -> None:
    moment = NOW + timedelta(seconds=30)
    heard_at(cloud, moment)
    assert hear(behind) == seconds(moment)


def test_a_clock_that_is_ahead_hides_no_other_agent(cloud: Cloud, behind: Cloud) -> None:
    other = AgentId("b0000000-0000-4000-8000-000000000002")
    made = type(AGENT)(other, "other", "fake", None, NOW, NOW)
    cloud.write(lambda tx: agents.add(tx, made))
    heard_at(cloud, NOW + timedelta(minutes=10), other)
    hear(behind, NOW)
    moment = NOW + timedelta(seconds=80)
    heard_at(cloud, moment)
    assert hear(behind, moment) == seconds(moment)


def test_a_heartbeat_that_became_visible_late_is_not_missed(cloud: Cloud, behind: Cloud) -> None:
    other = AgentId("b0000000-0000-4000-8000-000000000002")
    made = type(AGENT)(other, "other", "fake", None, NOW, NOW)
    cloud.write(lambda tx: agents.add(tx, made))
    heard_at(cloud, NOW + timedelta(seconds=30), other)
    hear(behind)
    late = NOW + timedelta(seconds=30) - OVERLAP
    heard_at(cloud, late)
    assert hear(behind) == seconds(late)


def test_the_agent_of_a_new_host_counts_as_seen_from_its_first_boot(
    cloud: Cloud, behind: Cloud
) -> None:
    moment = NOW + timedelta(seconds=100)
    heard_at(cloud, moment)
    cloud.report(reported("d"))
    assert faults(behind.boot(behind.request(now=moment, forced_host="d", is_admin=True))) == [None]


def test_the_first_hosts_of_a_zone_are_as_up_as_their_agent(tmp_path: Path) -> None:
    first = cloud_in(tmp_path)
    other = first.beside()
    now = NOW + timedelta(minutes=10)
    assert faults(other.boot(other.request(now=now))) != [None], "the zone has no hosts"
    heard_at(first, now)
    first.report(reported("a"))
    assert faults(other.boot(other.request(now=now))) == [None]
    later = now + timedelta(minutes=10)
    assert faults(other.boot(other.request(now=later))) != [None], "the agent is silent"
    for each in (first, other):
        each.reread()
        each.judge()
        each.close()
