"""From any cloud to any other: the import's plan is never refused, and makes both equal."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from innkeeper.domain.versions import Version
from innkeeper.entrypoints.cli.placement_import import differences, objections, plan
from innkeeper.entrypoints.cli.placement_import.objections import Others
from innkeeper.entrypoints.cli.placement_import.pictures import Picture
from innkeeper.entrypoints.cli.placement_import.reading import Reader
from innkeeper.entrypoints.cli.placement_import.writing import PlanWriter
from tests.support.placement_ledger import NEWEST, Holder, Ledger, PowerCut, Row

PROVIDERS = [f"a0000000-0000-4000-8000-00000000000{number}" for number in range(4)]
CONSUMERS = [f"c0000000-0000-4000-8000-00000000000{number}" for number in range(4)]
AGGREGATES = [f"e0000000-0000-4000-8000-00000000000{number}" for number in range(2)]
NAMES = ["a", "b", "c", "d", "Straße 7"]
CLASSES = ["VCPU", "DISK_GB", "CUSTOM_A", "CUSTOM_B"]
TRAITS = ["HW_NUMA_ROOT", "CUSTOM_A", "CUSTOM_B"]
STANDARD = {"VCPU", "DISK_GB", "HW_NUMA_ROOT"}
KINDS = [None, "INSTANCE", "MIGRATION"]

inventories = st.builds(
    lambda total, reserved, units, step, ratio: {
        "total": total,
        "reserved": min(reserved, total),
        "min_unit": units[0],
        "max_unit": units[1],
        "step_size": step,
        "allocation_ratio": ratio,
    },
    total=st.integers(1, 12),
    reserved=st.integers(0, 12),
    units=st.tuples(st.integers(1, 4), st.integers(3, 8)),
    step=st.sampled_from([1, 1, 2, 3]),
    ratio=st.sampled_from([1.0, 1.0, 0.5, 4.0]),
)


@st.composite
def clouds(draw: st.DrawFn, name: str) -> Ledger:
    """Any cloud, even with allocations above its capacity."""
    uuids = draw(st.lists(st.sampled_from(PROVIDERS), unique=True))
    names = draw(st.permutations(NAMES))
    rows: dict[str, Row] = {}
    for uuid, called in zip(uuids, names, strict=False):
        parent = draw(st.sampled_from([None, *rows]))
        row = Row(called, parent)
        row.inventories = draw(st.dictionaries(st.sampled_from(CLASSES), inventories))
        row.traits = draw(st.lists(st.sampled_from(TRAITS), unique=True))
        row.aggregates = draw(st.lists(st.sampled_from(AGGREGATES), unique=True))
        row.generation = draw(st.integers(0, 3))
        rows[uuid] = row
    given_out = [(uuid, name) for uuid, row in rows.items() for name in row.inventories]
    holders: dict[str, Holder] = {}
    for consumer in draw(st.lists(st.sampled_from(CONSUMERS), unique=True)) * bool(given_out):
        holds: dict[str, dict[str, int]] = {}
        for uuid, of in draw(st.sets(st.sampled_from(given_out), min_size=1, max_size=3)):
            holds.setdefault(uuid, {})[of] = draw(st.integers(1, 9))
        owner = draw(st.sampled_from(["one", "two"]))
        holders[consumer] = Holder(owner, owner, draw(st.sampled_from(KINDS)), holds)
    known = {name for row in rows.values() for name in (*row.traits, *row.inventories)}
    return Ledger(name, rows, holders, known | STANDARD, known | STANDARD)


class Silent:
    """Shows nothing."""

    @contextmanager
    def step(self, title: str, total: int) -> Iterator[Any]:
        """See the steps of the import."""
        yield lambda count: None


def look(ledger: Any) -> Picture:
    return Reader(ledger, 1, Silent()).read(with_usages=True)


def bring(source: Any, target: Any, others: Others) -> None:
    theirs, ours = look(source), look(target)
    assert list(objections.find(theirs, ours, others)) == []
    steps = plan.make(theirs, ours, others)
    # One by one, so that no consumer takes what another one releases in the same request.
    PlanWriter(target, ours, 1, Silent(), lambda pause_s: None, consumers_max=1).carry_out(steps)


def compare(source: Any, target: Any, others: Others = Others.REMOVE) -> list[str]:
    keeps_others = others is Others.KEEP
    return list(differences.find(look(source), look(target), keeps_others=keeps_others))


@given(source=clouds("source"), target=clouds("target"))
@settings(deadline=None)
def test_any_cloud_becomes_any_other(source: Ledger, target: Ledger) -> None:
    bring(source, target, Others.REMOVE)
    assert compare(source, target) == []
    # The target stays equal: the next plan has no writes.
    written = target.writes
    bring(source, target, Others.REFUSE)
    assert target.writes == written


@given(source=clouds("source"), target=clouds("target"), cut=st.integers(0, 12))
@settings(deadline=None)
def test_an_import_that_was_cut_off_goes_on(source: Ledger, target: Ledger, cut: int) -> None:
    target.writes_left = cut
    try:
        bring(source, target, Others.REMOVE)
    except PowerCut:
        target.writes_left = None
        bring(source, target, Others.REMOVE)
    assert compare(source, target) == []


@given(source=clouds("source"))
@settings(deadline=None)
def test_an_interrupted_import_leaves_no_room_that_the_source_has_not(source: Ledger) -> None:
    """No client can claim from an interim inventory what the source has already allocated."""
    target = Ledger("target", classes=set(STANDARD), traits=set(STANDARD))
    whole = copy.deepcopy(target)
    bring(source, whole, Others.REFUSE)
    for cut in range(whole.writes):
        trial = copy.deepcopy(target)
        trial.writes_left = cut
        try:
            bring(source, trial, Others.REFUSE)
        except PowerCut:
            for uuid, row in trial.rows.items():
                for name, each in row.inventories.items():
                    final = source.rows[uuid].inventories[name]
                    used = source.ask(f"/resource_providers/{uuid}/usages")["usages"][name]
                    assert room(each) <= max(room(final), used)


def room(inventory: dict[str, Any]) -> float:
    capacity: float = (inventory["total"] - inventory["reserved"]) * inventory["allocation_ratio"]
    return capacity


@given(source=clouds("source"), target=clouds("target"))
@settings(deadline=None)
def test_what_only_the_target_has_can_stay(source: Ledger, target: Ledger) -> None:
    shared = source.rows.keys() & target.rows.keys()
    for uuid, row in target.rows.items():
        if uuid not in shared:
            row.name = f"{row.name} of the target"
    others = {uuid: copy.deepcopy(h) for uuid, h in target.holders.items()}
    bring(source, target, Others.KEEP)
    for uuid, holder in others.items():
        if uuid not in source.holders:
            assert target.holders[uuid] == holder
    left = [line for line in compare(source, target, Others.KEEP) if ": inventory" not in line]
    assert left == []


@given(source=clouds("source"), target=clouds("target"))
@settings(deadline=None)
def test_a_source_without_types_leaves_those_of_the_target(source: Ledger, target: Ledger) -> None:
    source.version = Version(1, 36)
    kinds = {uuid: holder.kind for uuid, holder in target.holders.items()}
    bring(source, target, Others.REMOVE)
    assert compare(source, target) == []
    assert target.version == NEWEST
    for uuid, holder in target.holders.items():
        assert holder.kind == kinds.get(uuid)
