"""Drivers, filters and weighers by their names: ours, one's own, and none at all."""

from __future__ import annotations

from typing import Any

import pytest

from innkeeper.domain.errors import Invalid
from innkeeper.domain.slices import Scheduling
from innkeeper.scheduling.schedulers.catalogue import SCHEDULERS
from innkeeper.systems.compute.drivers import Schedulers, rules_of, scheduler_of
from tests.support.tables import asking, host, table_of

OWN = "tests.support.own"
HOSTS = tuple(host(f"h{number}") for number in range(5))


def settings(**given: Any) -> Scheduling:
    return Scheduling(**given)


@pytest.mark.parametrize("name", SCHEDULERS)
def test_every_driver_places_all_servers_of_a_request(name: str) -> None:
    scheduler = scheduler_of(settings(scheduler_driver=name))
    made = scheduler.plan(table_of(*HOSTS), asking(count=7))
    assert len(made.entries) == 7
    assert name == scheduler.NAME


def test_everything_can_be_ones_own() -> None:
    scheduler = scheduler_of(
        settings(
            scheduler_driver=f"{OWN}:OneOnly",
            default_host_filters=(f"{OWN}:EvenHosts",),
            default_host_weighers=(f"{OWN}:LateHosts",),
        )
    )
    made = scheduler.plan(table_of(*HOSTS), asking(count=3))
    assert [entry.host for entry in made.entries] == ["h4"]
    assert [(each.filter_name, each.removed) for each in made.removals] == [
        ("EvenHostsFilter", 2)
    ]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"scheduler_driver": "chanse"}, "There is no driver 'chanse'. There are: all_at_once"),
        ({"default_host_filters": ("X",)}, "There is no host filter 'X'"),
        ({"default_host_weighers": ("spred",)}, "There is no weigher 'spred'"),
        ({"weigher_multipliers": {"FreeMemory": 1.0}}, "not among 'default_host_weighers'"),
        ({"default_host_filters": (f"{OWN}:Halved",)}, "filter HalvedFilter has no READS"),
        ({"default_host_filters": (f"{OWN}:None",)}, "cannot be had"),
        ({"default_host_weighers": ("no.such.module:Thing",)}, "cannot be had"),
        ({"scheduler_driver": f"{OWN}:EvenHosts"}, "cannot be made"),
    ],
)
def test_what_is_not_there_is_an_error_at_start(given: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told.replace("(", r"\(")):
        scheduler_of(settings(**given))


def test_a_request_names_its_filters_and_keeps_those_of_tenancy() -> None:
    schedulers = Schedulers(settings())
    named = schedulers.of(("AllHostsFilter",))
    assert [each.NAME for each in named.pipeline.filters] == [
        "ForcedHostFilter",
        "AllHostsFilter",
        "AggregateMultiTenancyIsolation",
        "RefusedHostsFilter",
        "CapacityFilter",
    ]
    assert schedulers.of(("AllHostsFilter",)) is named
    assert schedulers.of(None) is schedulers.default


def test_a_request_cannot_name_what_is_not_counted() -> None:
    with pytest.raises(Invalid, match="NumInstancesFilter"):
        Schedulers(settings()).of(("NumInstancesFilter",))
    counting = Schedulers(settings(default_host_filters=("IoOpsFilter",)))
    assert counting.of(("NumInstancesFilter",)).pipeline.needs_servers


def test_the_rules_are_those_of_the_settings() -> None:
    rules = rules_of(
        settings(
            max_instances_per_host=3,
            max_io_ops_per_host=2,
            isolated_images=("i",),
            isolated_hosts=("h",),
            restrict_isolated_hosts_to_isolated_images=False,
            enable_isolated_aggregate_filtering=False,
            capabilities_max_age_s=7.0,
            capability_multipliers={"cpu_mhz": 2.0},
        )
    )
    assert (rules.servers_per_host_max, rules.busy_servers_per_host_max) == (3, 2)
    assert rules.isolated_images == frozenset({"i"})
    assert rules.isolated_hosts == frozenset({"h"})
    assert not rules.isolated_hosts_take_isolated_images_only
    assert not rules.isolates_aggregates_by_trait
    assert rules.capabilities_max_age_s == 7.0
    assert rules.capability_multipliers == (("cpu_mhz", 2.0),)
