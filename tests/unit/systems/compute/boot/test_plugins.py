"""The operator's own filters, weighers and drivers: checked at the start, guarded later."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from structlog.testing import capture_logs

from innkeeper.domain.errors import PluginFailed
from innkeeper.domain.slices import Scheduling
from innkeeper.scheduling.filters.catalogue import FILTERS
from innkeeper.scheduling.schedulers.catalogue import SCHEDULERS
from innkeeper.scheduling.weighers.catalogue import WEIGHERS
from innkeeper.systems.compute.boot import plugins
from innkeeper.systems.compute.boot.drivers import Schedulers, scheduler_of
from innkeeper.systems.compute.boot.plugins import Guarded
from tests.support.own_plugins import SECRET, TROUBLES, Endless, RackFilter, RackWeigher
from tests.support.tables import asking, host, table_of

OWN = "tests.support.own_plugins"
HOSTS = tuple(host(f"h{number}") for number in range(5))
ALL = slice(None)


@pytest.mark.parametrize(
    ("setting", "name", "why"),
    [
        ("default_host_filters", "ReadsWhatIsNot", "has 'hint' in READS, which is not a field"),
        ("default_host_filters", "ReadsLetters", "has READS that is not a tuple of names"),
        ("default_host_filters", "HintsAsText", "has HINTS that is not a tuple of names"),
        ("default_host_filters", "Nameless", "has a NAME that is not a text"),
        ("default_host_filters", "Reasonless", "has a REASON that is not a text"),
        (
            "default_host_filters",
            "NeedsHosts",
            "fails on a table without hosts (IndexError: index 0 is out of bounds",
        ),
        (
            "default_host_filters",
            "Speechless",
            "fails on a table without hosts (WrongAnswer: missing returned NoneType, not a text)",
        ),
        (
            "default_host_weighers",
            "ScalesBadly",
            "fails on a table without hosts (WrongAnswer: scale returned NoneType, not a number)",
        ),
        (
            "scheduler_driver",
            "Planless",
            "fails on a table without hosts (WrongAnswer: plan returned NoneType, not a BuildPlan)",
        ),
    ],
)
def test_what_cannot_be_used_stops_the_start(setting: str, name: str, why: str) -> None:
    path = f"{OWN}:{name}"
    given: Any = path if setting == "scheduler_driver" else (path,)
    with pytest.raises(ValueError, match=re.escape(why)) as refused:
        Schedulers(Scheduling(**{setting: given}))
    noun = {"scheduler_driver": "driver", "default_host_weighers": "weigher"}.get(
        setting, "host filter"
    )
    told = f"The setting {setting!r} is wrong. The {noun} {path!r} {why}"
    assert str(refused.value).startswith(told)


@pytest.mark.parametrize(
    "found", [*FILTERS.values(), *WEIGHERS.values()], ids=lambda each: str(each.NAME)
)
def test_everything_of_ours_answers_of_a_table_without_hosts(found: Any) -> None:
    assert plugins.why_unusable(found) is None


@pytest.mark.parametrize("name", SCHEDULERS)
def test_every_driver_of_ours_plans_on_a_table_without_hosts(name: str) -> None:
    driver = scheduler_of(Scheduling(scheduler_driver=name))
    assert plugins.why_driver_unusable(driver) is None


def test_a_filter_and_a_weigher_that_read_hints_are_asked() -> None:
    scheduler = scheduler_of(
        Scheduling(
            default_host_filters=(f"{OWN}:RackFilter",),
            default_host_weighers=(f"{OWN}:RackWeigher",),
        )
    )
    table = table_of(*HOSTS)

    def placed(**hints: Any) -> str:
        return scheduler.plan(table, asking(hints=hints)).entries[0].host

    assert placed(rack="h3") == "h3"
    # The results are cached by the request's shape, and shapes differ in the hint.
    assert placed(rack="h1") == "h1"
    assert placed(rack=["h1", "h4"], like="h4", more={"a": [1, {"b": None}]}) == "h4"
    assert placed(like="h2") == "h2"
    assert placed(rack="h3") == "h3"


@pytest.mark.parametrize("name", TROUBLES)
def test_a_mask_of_the_wrong_kind_is_a_failure_of_its_filter(name: str) -> None:
    filter_: Any = Guarded("host filter", RackFilter)
    with pytest.raises(PluginFailed, match="The host filter RackFilter failed") as failed:
        filter_.mask(table_of(*HOSTS), asking(hints={"trouble": name}), ALL)
    assert SECRET not in failed.value.message
    assert failed.value.plugin == "RackFilter"
    assert (SECRET in failed.value.why) == (name in {"error", "exit"})


def test_a_column_of_the_wrong_kind_is_a_failure_of_its_weigher() -> None:
    weigher: Any = Guarded("weigher", RackWeigher)
    table = table_of(*HOSTS)
    for name in sorted(TROUBLES.keys() - {"numbers"}):
        with pytest.raises(PluginFailed, match="The weigher RackWeigher failed"):
            weigher.column(table, asking(hints={"trouble": name}), np.arange(2))
    numbers = weigher.column(table, asking(hints={"trouble": "numbers"}), np.arange(2))
    assert numbers.tolist() == [1.0, 1.0]


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
def test_a_weigher_whose_numbers_are_not_finite_has_failed(number: float) -> None:
    weigher: Any = Guarded("weigher", Endless(number))
    table, spec = table_of(*HOSTS), asking()
    with pytest.raises(PluginFailed, match="The weigher EndlessWeigher failed") as failed:
        weigher.column(table, spec, ALL)
    assert failed.value.why == "WrongAnswer: column returned numbers that are not finite"
    with pytest.raises(PluginFailed, match="The weigher EndlessWeigher failed"):
        weigher.scale(table, spec)


def test_what_is_not_said_for_people_is_said_in_other_words() -> None:
    filter_: Any = Guarded("host filter", RackFilter)
    spec = asking(hints={"trouble": {"missing": "error"}})
    with capture_logs() as logs:
        told = filter_.missing(table_of(*HOSTS), spec)
    assert told == "the host filter RackFilter could not give details"
    (line,) = logs
    assert (line["event"], line["plugin"]) == ("plugin_failed", "RackFilter")
    assert SECRET in line["error"]
