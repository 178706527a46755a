"""Drivers, filters and weighers by name: built-in, the operator's own, and unknown."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from innkeeper.domain.errors import Invalid
from innkeeper.domain.slices import Scheduling
from innkeeper.scheduling.schedulers.catalogue import SCHEDULERS
from innkeeper.systems.compute.boot.drivers import Schedulers, rules_of, scheduler_of
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
    assert [(each.filter_name, each.removed) for each in made.removals] == [("EvenHostsFilter", 2)]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"scheduler_driver": "chanse"}, "There is no driver 'chanse'. There are: all_at_once"),
        ({"default_host_filters": ("X",)}, "There is no host filter 'X'"),
        ({"default_host_weighers": ("spred",)}, "There is no weigher 'spred'"),
        ({"weigher_multipliers": {"FreeMemory": 1.0}}, "not among 'default_host_weighers'"),
        ({"default_host_filters": (f"{OWN}:Halved",)}, f"host filter '{OWN}:Halved' has no READS"),
        ({"default_host_filters": (f"{OWN}:None",)}, "cannot be imported"),
        ({"default_host_weighers": ("no.such.module:Thing",)}, "cannot be imported"),
        ({"scheduler_driver": f"{OWN}:EvenHosts"}, "cannot be created"),
        ({"scheduler_driver": "os:getcwd"}, "'os:getcwd' cannot be created: it is not a class"),
        ({"scheduler_driver": "os:path"}, "'os:path' cannot be created: it is not a class"),
        ({"scheduler_driver": "os.path"}, "'os.path' cannot be created: it is not a class"),
        ({"scheduler_driver": f"{OWN}:Obstinate"}, "cannot be created: "),
        ({"default_host_weighers": ("os:path",)}, "weigher 'os:path' has no NAME, READS"),
        ({"default_host_filters": ("os:getcwd",)}, "host filter 'os:getcwd' has no NAME"),
        ({"default_host_filters": ("os:nothing",)}, "(AttributeError: module 'os' has no"),
    ],
)
def test_what_is_not_there_is_an_error_at_start(given: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=re.escape(told)):
        scheduler_of(settings(**given))


@pytest.mark.parametrize("name", ["", " ", ":", "a:", ":b", "a.b:", ".a", "a..b", "a:b:c", "a b"])
@pytest.mark.parametrize(
    ("key", "noun"),
    [
        ("scheduler_driver", "driver"),
        ("default_host_filters", "host filter"),
        ("default_host_weighers", "weigher"),
    ],
)
def test_the_error_names_the_setting_with_an_unknown_name(key: str, noun: str, name: str) -> None:
    given = name if key == "scheduler_driver" else (name,)
    with pytest.raises(ValueError, match=r"package\.module:name") as refused:
        Schedulers(settings(**{key: given}))
    told = f"The setting {key!r} is wrong. There is no {noun} {name!r}. There are: "
    assert str(refused.value).startswith(told)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("this is no program\n", "SyntaxError: invalid syntax"),
        ("raise RuntimeError('one\\ntwo')\n", "(RuntimeError: one)"),
        ("import no_such_module\n", "(ModuleNotFoundError: No module named 'no_such_module')"),
    ],
)
def test_an_error_at_the_import_of_an_own_plugin_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, told: str
) -> None:
    name = f"own_{len(text)}"
    (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ValueError, match=re.escape(told)):
        Schedulers(settings(default_host_filters=(f"{name}:Thing",)))


def test_a_request_names_its_filters_and_keeps_those_of_tenancy() -> None:
    schedulers = Schedulers(settings())
    named = schedulers.of(("AllHostsFilter",))
    assert [each.NAME for each in named.pipeline.filters] == [
        "ForcedHostFilter",
        "AllHostsFilter",
        "AggregateMultiTenancyIsolation",
        "RefusedHostsFilter",
        "VolumePoolFilter",
        "PcloudFilter",
        "LeaseFilter",
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
