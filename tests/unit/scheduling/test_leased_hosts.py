"""Which servers may use hosts of leases: every case of the table, and the texts about it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from innkeeper.domain.placing import RequestSpec, Rules
from innkeeper.domain.slices import Scheduling
from innkeeper.scheduling import reasons
from innkeeper.scheduling.facts import masks
from innkeeper.scheduling.filters import capacity, dedication
from innkeeper.scheduling.filters.dedication import LEASE_FILTER, PCLOUD_FILTER
from innkeeper.scheduling.pipeline import ALL_ROWS
from innkeeper.snapshot.columns import HostTable
from innkeeper.snapshot.dedications import FREEPOOL, of_reservation
from innkeeper.systems.compute.boot import drivers
from tests.support.tables import NOW_S, asking, host, table_of

OURS, THEIRS, PCLOUD = "ours", "theirs", "pcloud"
SAME = "the same id"


def cloud() -> HostTable:
    """A host of each kind. To test the worst case, a pcloud and a reservation have the same id."""
    table = table_of(
        host("shared"),
        host("freepool", pcloud="", vcpus=99),
        host("ours", pcloud=of_reservation(OURS), is_pcloud_open=True),
        host("ended", pcloud=of_reservation("ended")),
        host("theirs", pcloud=of_reservation(THEIRS), is_pcloud_open=True, vcpus=98),
        host("pcloud", pcloud=PCLOUD, pcloud_name="a", is_pcloud_open=True),
        host("shut", pcloud=PCLOUD, pcloud_name="b"),
        host("same lease", pcloud=of_reservation(SAME), is_pcloud_open=True),
        host("same pcloud", pcloud=SAME, pcloud_name="a", is_pcloud_open=True),
    )
    for each in (OURS, "ended", SAME):
        table.dedications.set_facts(of_reservation(each), ["project"], [])
    table.dedications.set_facts(of_reservation(THEIRS), ["stranger"], [])
    for each in (PCLOUD, SAME):
        table.dedications.set_facts(each, ["project"], [])
    return table


CASES: list[tuple[dict[str, Any], set[str]]] = [
    ({}, {"shared"}),
    ({"reservation": OURS}, {"ours"}),
    ({"reservation": OURS, "project_id": "stranger"}, set()),
    ({"reservation": THEIRS}, set()),
    ({"reservation": THEIRS, "project_id": "stranger"}, {"theirs"}),
    ({"reservation": "ended"}, set()),
    ({"reservation": "not yet"}, set()),
    ({"reservation": PCLOUD}, set()),
    ({"pclouds": (PCLOUD,)}, {"pcloud"}),
    ({"pclouds": (OURS,)}, set()),
    ({"pclouds": (of_reservation(OURS), PCLOUD)}, {"ours", "pcloud"}),
    ({"reservation": SAME}, {"same lease"}),
    ({"pclouds": (SAME,)}, {"same pcloud"}),
    ({"reservation": OURS, "pclouds": (PCLOUD,)}, set()),
    ({"reservation": OURS, "forced_host": "shared"}, set()),
    ({"forced_host": "ours"}, set()),
    ({"automatic_pclouds": (PCLOUD,)}, {"shared", "pcloud"}),
]


@pytest.mark.parametrize(("wanted", "names"), CASES)
def test_passing_hosts(wanted: dict[str, Any], names: set[str]) -> None:
    table = cloud()
    spec = asking(count=1, **wanted)
    made = drivers.scheduler_of(Scheduling(host_subset_size=99)).plan(table, spec)
    assert {entry.host for entry in made.entries} <= names
    assert bool(made.entries) == bool(names)
    forced = spec.forced_host
    allowed = dedication.mask(table, replace(spec, forced_host=None), ALL_ROWS)
    if forced is None:
        assert {table.names[row] for row in np.flatnonzero(allowed)} == names


@pytest.mark.parametrize("wanted", [wanted for wanted, _ in CASES])
def test_few_rows_are_all_that_pass(wanted: dict[str, Any]) -> None:
    table, spec = cloud(), asking(**wanted)
    rows, mask = LEASE_FILTER.few(table, spec), LEASE_FILTER.mask(table, spec, ALL_ROWS)
    assert (rows is None) == (mask is None)
    if rows is not None and mask is not None:
        assert np.flatnonzero(mask).tolist() == rows.tolist()
        part = LEASE_FILTER.mask(table, spec, slice(2, 4))
        assert part is not None
        assert part.tolist() == mask[2:4].tolist()


@pytest.mark.parametrize("wanted", [wanted for wanted, _ in CASES])
def test_a_host_alone_is_admitted_as_among_all(wanted: dict[str, Any]) -> None:
    """If few hosts have changed, they are judged one by one, in a shorter way."""
    table, spec = cloud(), asking(**wanted)
    unnamed, _ = PCLOUD_FILTER.HALVES
    mask = unnamed.mask(table, spec, ALL_ROWS)
    admitted = [unnamed.admits(table, spec, index) for index in range(table.host_count)]
    assert admitted == ([True] * table.host_count if mask is None else mask.tolist())


def test_it_is_in_force_whatever_the_settings_say() -> None:
    names = {each.NAME for each in drivers.filters_of([])}
    assert names >= dedication.NAMES
    assert LEASE_FILTER.NAME in names


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        ({"reservation": OURS}, "only the hosts of the requested reservation can be used"),
        (
            {"reservation": THEIRS},
            "no reservation with the requested id has hosts for this project at present",
        ),
        (
            {"reservation": "ended"},
            "no reservation with the requested id has hosts for this project at present",
        ),
        (
            {"reservation": "gone"},
            "no reservation with the requested id has hosts for this project at present",
        ),
    ],
)
def test_the_missing_text(wanted: dict[str, Any], words: str) -> None:
    assert LEASE_FILTER.missing(cloud(), asking(**wanted)) == words


@pytest.mark.parametrize("reservation", [OURS, THEIRS, "gone"])
def test_no_number_gives_away_how_many_hosts_there_are(reservation: str) -> None:
    table = cloud()
    spec: RequestSpec = asking(vcpus=50, reservation=reservation)
    made = drivers.scheduler_of(Scheduling()).plan(table, spec)
    assert "LeaseFilter removed some" in reasons.sentence(
        made, 1, has_dedicated=masks.has_dedicated(table)
    )
    # The request is larger than any host, so the lease filter has nothing left to remove.
    large = replace(spec, amounts={**spec.amounts, "VCPU": 200})
    made = drivers.scheduler_of(Scheduling()).plan(table, large)
    fault = reasons.sentence(made, 1, has_dedicated=masks.has_dedicated(table))
    assert fault.startswith(
        "No valid host was found. None of the hosts passed all filters: CapacityFilter removed "
        "some ("
    )
    told = capacity.missing(table, spec)
    assert "99" not in told
    assert "98" not in told


def test_pcloud_filter_does_not_apply_to_requests_with_a_reservation() -> None:
    assert PCLOUD_FILTER.mask(cloud(), asking(reservation=OURS), ALL_ROWS) is None


REACH_S = 150.0
MAY_PREEMPT: dict[str, Any] = {"is_preemptible": True, "rules": Rules(preemptible_reach_s=REACH_S)}


def test_a_preemptible_server_uses_the_freepool_where_no_lease_needs_the_host_soon() -> None:
    table = table_of(
        host("general"),
        host("soon", pcloud=FREEPOOL, is_pcloud_open=True, needed_from_s=NOW_S + REACH_S),
        host("later", pcloud=FREEPOOL, is_pcloud_open=True, needed_from_s=NOW_S + REACH_S + 1),
        host("never", pcloud=FREEPOOL, is_pcloud_open=True, needed_from_s=float("inf")),
        host("slots", pcloud=FREEPOOL, is_pcloud_open=True),
        host("leased", pcloud=of_reservation(OURS), is_pcloud_open=True),
        host("pcloud", pcloud=PCLOUD, pcloud_name="a", is_pcloud_open=True),
    )
    spec = asking(**MAY_PREEMPT)
    rows, mask = LEASE_FILTER.few(table, spec), LEASE_FILTER.mask(table, spec, ALL_ROWS)
    assert rows is not None
    assert [table.names[row] for row in rows] == ["later", "never"]
    assert mask is not None
    assert np.flatnonzero(mask).tolist() == rows.tolist()
    assert dedication.mask(table, spec, ALL_ROWS).tolist() == mask.tolist()
    text = "a preemptible server can only use hosts that no lease will need soon"
    assert LEASE_FILTER.missing(table, spec) == text
    ordinary = dedication.mask(table, asking(), ALL_ROWS)
    assert [table.names[row] for row in np.flatnonzero(ordinary)] == ["general"]
