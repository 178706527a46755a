"""An explanation describes a plan, and does not change the table."""

from __future__ import annotations

from typing import Any

import pytest

from innkeeper.domain.explaining import Explanation, Refused
from innkeeper.domain.placing import BuildPlan, GroupPolicy, GroupRule, RequestSpec
from innkeeper.domain.slices import Scheduling
from innkeeper.scheduling import depletion, explaining, explanation_values, reasons
from innkeeper.scheduling.schedulers.catalogue import AllAtOnce
from innkeeper.scheduling.schedulers.scheduler import Choice
from innkeeper.snapshot.columns import HostTable
from innkeeper.systems.compute.boot import drivers
from tests.support.tables import Pool, Sketch, add_pools, asking, host, picture, table_of

SETTINGS = Scheduling(default_host_weighers=("FreeMemoryWeigher", "FreeVcpusWeigher"))
STAIRS = [host(f"h{number}", memory_mb=4096 * (number + 1)) for number in range(12)]


def decided(
    table: HostTable, spec: RequestSpec, asked: str | None = None, **settings: Any
) -> tuple[Explanation, BuildPlan]:
    """Decide, undo, and explain; this must not change the table."""
    wanted = Scheduling(**{"default_host_weighers": SETTINGS.default_host_weighers, **settings})
    scheduler = drivers.scheduler_of(wanted)
    before = picture(table)
    made = scheduler.plan(table, spec)
    depletion.undo(table, spec, made)
    told = explaining.explain(
        scheduler.pipeline,
        table,
        spec,
        made,
        explaining.deciders(scheduler, wanted.host_subset_size, spec.seed),
        None if asked is None else table.index_by_name[asked],
    )
    assert picture(table) == before
    return told, made


def test_the_ten_best_are_named_with_what_each_weigher_gave() -> None:
    told, made = decided(table_of(*STAIRS), asking())
    assert [each.host for each in told.best] == [f"h{number}" for number in range(11, 1, -1)]
    assert told.best[0].weight == made.entries[0].weight
    for each in told.best:
        assert each.weight == pytest.approx(sum(each.parts.values()))
        assert set(each.parts) == {"FreeMemoryWeigher", "FreeVcpusWeigher"}


def test_each_choice_has_the_parts_of_when_it_was_picked() -> None:
    told, made = decided(table_of(host("a"), host("b")), asking(count=9))
    assert [each.host for each in told.chosen] == [each.host for each in made.entries]
    for chosen, entry in zip(told.chosen, made.entries, strict=True):
        assert chosen.weight == entry.weight
        assert chosen.weight == pytest.approx(sum(chosen.parts.values()))
    assert told.chosen[0].weight > told.chosen[8].weight


@pytest.mark.parametrize("most", [0, 1, 5, 12, 99])
def test_the_first_servers_of_a_plan_have_parts(most: int) -> None:
    table = table_of(host("a"), host("b"), host("c", memory_mb=30_000))
    spec = asking(count=12, memory_mb=2000)
    pipeline = drivers.scheduler_of(SETTINGS).pipeline
    made = AllAtOnce(pipeline, Choice(parts_max=most)).plan(table, spec)
    for number, entry in enumerate(made.entries):
        if number < most:
            assert entry.parts is not None
            assert sum(entry.parts.values()) == pytest.approx(entry.weight)
        else:
            assert entry.parts is None


def test_a_look_at_the_table_before_a_plan_leaves_it_as_it_is() -> None:
    table = table_of(host("a"), host("b"), host("c", memory_mb=30_000))
    spec = asking(count=12, memory_mb=2000)
    scheduler = drivers.scheduler_of(SETTINGS)
    made = scheduler.plan(table, spec)
    after = picture(table)
    refused, best = explaining.before(scheduler.pipeline, table, spec, made)
    assert (refused.tallies, refused.nearest) == ((), ())
    assert best[0].weight == made.entries[0].weight
    assert picture(table) == after


def test_pools_are_put_back_for_a_look_and_taken_again() -> None:
    aggregates = frozenset("x")
    bare = [Sketch(name, {"VCPU": 9}, aggregates=aggregates) for name in "ab"]
    table = add_pools(table_of(*bare), Pool({"DISK_GB": 50}, aggregates))
    spec = asking(memory_mb=0, disk_gb=20, count=3)
    scheduler = drivers.scheduler_of(Scheduling(default_host_weighers=("FreeDiskWeigher",)))
    made = scheduler.plan(table, spec)
    assert len(made.entries) == 2
    after = picture(table)
    first, second = (each.parts for each in made.entries)
    assert first is not None
    assert second is not None
    assert first["FreeDiskWeigher"] == pytest.approx(1.0)
    assert second["FreeDiskWeigher"] == pytest.approx(0.6)
    explaining.before(scheduler.pipeline, table, spec, made)
    assert picture(table) == after
    depletion.undo(table, spec, made)
    told, _ = decided(table, spec, default_host_weighers=("FreeDiskWeigher",), build_attempts_max=1)
    assert told.then is not None
    assert [each.pools for each in told.chosen] == [{"DISK_GB": "pool-1000"}] * 2
    (tally,) = told.then.tallies
    assert (tally.filter_name, tally.removed) == ("CapacityFilter", 2)
    assert told.then.nearest[0].objections[0].lacks == ("DISK_GB: 10 of 20 missing",)


def test_the_first_unplaced_server_is_explained_after_the_placed_ones() -> None:
    told, _ = decided(table_of(host("a", vcpus=2), host("b", vcpus=1)), asking(count=5))
    assert (told.wanted, told.placed, told.candidates) == (5, 3, 2)
    assert told.tallies == ()
    assert told.then is not None
    (tally,) = told.then.tallies
    assert (tally.filter_name, tally.removed, tally.alone) == ("CapacityFilter", 2, 2)
    assert {each.host for each in told.then.nearest} == {"a", "b"}


def test_members_that_the_request_itself_adds_are_counted() -> None:
    group = GroupRule(GroupPolicy.ANTI_AFFINITY)
    table = table_of(host("a"), host("b"))
    spec = asking(count=3, group=group)
    told, made = decided(table, spec)
    assert told.then is not None
    (tally,) = told.then.tallies
    assert (tally.filter_name, tally.refused) == ("ServerGroupFilter", 2)
    scheduler = drivers.scheduler_of(SETTINGS)
    assert explaining.refused(scheduler.pipeline, table, spec, made).tallies == (tally,)


def test_the_answer_for_one_host_has_a_rank_or_objections() -> None:
    table = table_of(*STAIRS, host("closed", is_open=False))
    told, _ = decided(table, asking(), asked="h10")
    assert told.host is not None
    assert (told.host.rank, told.host.weight) == (2, told.best[1].weight)
    told, _ = decided(table, asking(), asked="closed")
    assert told.host is not None
    assert (told.host.rank, told.host.weight, told.host.parts) == (None, None, None)
    (refusing,) = [each for each in told.host.verdicts if each.objection is not None]
    assert refusing.filter_name == "ComputeFilter"


@pytest.mark.parametrize("driver", ["all_at_once", "chance", "simple", "availability_zone"])
def test_every_driver_reports_its_filters_and_weighers(driver: str) -> None:
    told, made = decided(table_of(*STAIRS), asking(count=2), scheduler_driver=driver)
    assert told.deciders.driver == driver
    assert "CapacityFilter" in told.deciders.filters
    names = {name for name, _ in told.deciders.weighers}
    assert names == set(told.chosen[0].parts)
    assert [each.host for each in told.chosen] == [each.host for each in made.entries]


def test_no_hosts_are_explained_too() -> None:
    told, _ = decided(HostTable(), asking())
    assert (told.hosts, told.best, told.chosen, told.tallies) == (0, (), (), ())


def names_in(thing: Any) -> str:
    return repr(explanation_values.explanation(thing, are_hosts_named=False))


def test_names_are_shown_with_the_right_to_see_them() -> None:
    table = table_of(host("secret-a"), host("secret-b", vcpus=0), host("secret-c", vcpus=2))
    for spec in (asking(), asking(count=40), asking(vcpus=99), asking(forced_host="secret-b")):
        told, made = decided(table, spec, asked="secret-b")
        said = names_in(told)
        if spec.forced_host is None:
            assert "secret" not in said
        # A caller that named a host sees this host's name, but no other.
        assert "secret-a" not in said
        assert "secret-c" not in said
        assert "secret" in repr(explanation_values.explanation(told, are_hosts_named=True))
        refused = told.then or Refused(told.tallies, told.nearest)
        assert "secret-a" not in reasons.sentence(
            made, spec.count, refused.nearest, has_dedicated=False
        )


def test_administrators_read_the_nearest_by_name() -> None:
    table = table_of(host("a", memory_mb=1536), host("b", is_open=False))
    told, made = decided(table, asking(memory_mb=2048))
    refused = Refused(told.tallies, told.nearest)
    assert reasons.details(refused) == (
        "Without ComputeFilter, 1 of the 1 hosts that it rejects would pass.\n"
        "Without CapacityFilter, 1 of the 1 hosts that it rejects would pass.\n"
        "The nearest hosts:\n"
        "b: ComputeFilter (it is disabled or forced down)\n"
        "a: CapacityFilter (MEMORY_MB: 512 of 2048 missing)"
    )
    assert reasons.culprit(made, refused) == "CapacityFilter"
    assert reasons.culprit(made, Refused((), ())) == "CapacityFilter"
    assert reasons.sentence(made, 1, told.nearest, has_dedicated=False).endswith(
        " The nearest host is rejected by ComputeFilter (it is disabled or forced down)."
    )


def test_without_hosts_there_is_no_culprit() -> None:
    told, made = decided(HostTable(), asking())
    refused = Refused(told.tallies, told.nearest)
    assert reasons.culprit(made, refused) == "none"
    assert reasons.details(refused) == ""
