"""Names of scheduler hints: known, misspelt, read by a filter, and not read."""

from __future__ import annotations

from typing import Any

import pytest

from innkeeper.domain.errors import Invalid
from innkeeper.domain.slices import Scheduling
from innkeeper.scheduling.filters.catalogue import FILTERS
from innkeeper.scheduling.weighers.catalogue import WEIGHERS
from innkeeper.systems.compute.boot.drivers import Schedulers
from innkeeper.systems.compute.grouping import hint_names
from innkeeper.systems.compute.grouping.hint_names import Readers
from tests.support.own_plugins import Namesake

OWN = "tests.support.own_plugins"
DEFAULT = Scheduling().default_host_filters
WIRE = ("group", "same_host", "different_host", "build_near_host_ip", "cidr")
DEDICATED = ("pcloud", "pcloud_host", "pcloud_unasked", "reservation")


def readers(*filters: str, weighers: tuple[str, ...] = ("spread",), asked: Any = None) -> Readers:
    settings = Scheduling(default_host_filters=filters, default_host_weighers=weighers)
    return Schedulers(settings).readers(asked)


def refusal(hints: dict[str, Any], found: Readers) -> str:
    with pytest.raises(Invalid) as refused:
        hint_names.check(hints, found)
    return refused.value.message


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("Pcloud", "pcloud"),
        ("pclouds", "pcloud"),
        ("pcluod", "pcloud"),
        ("p-cloud", "pcloud"),
        ("cloud", "pcloud"),
        ("pcl", None),
        ("PCLOUDHOST", "pcloud_host"),
        ("Reservation", "reservation"),
        ("reservations", "reservation"),
        ("reservtaion", "reservation"),
        ("reserve", None),
        ("same-host", "same_host"),
        ("samehosts", "same_host"),
        ("diferent_hots", "different_host"),
        ("groups", "group"),
        ("Query", "query"),
        ("queries", None),
        ("Filters", "filters"),
        ("cird", "cidr"),
        ("city", None),
        ("pcloud_id", "pcloud"),
        ("os:PCLOUD", "pcloud"),
        ("reservation_id", "reservation"),
        ("blazar_reservation", "reservation"),
        ("tier", None),
        ("gruops", "group"),
        ("build_near_host", None),
        ("target_cell", None),
        ("different_cell", None),
        ("colour", None),
        ("rack", None),
        ("", None),
        ("x" * 5000, None),
        ("PÇLOUD", "pcloud"),
    ],
)
def test_a_misspelt_name_stands_for_the_nearest(name: str, meant: str | None) -> None:
    found = readers(*DEFAULT)
    assert hint_names.nearest(name, found.known) == meant
    if meant is None:
        assert hint_names.check({name: "x"}, found) == {name: "not read by any filter"}
    else:
        told = refusal({name: "x"}, found)
        assert told.startswith(f"There is no scheduler hint '{name}'; the nearest is '{meant}'.")


def test_a_known_name_is_no_misspelling_of_another() -> None:
    known = readers(*FILTERS).known
    assert {*WIRE, *DEDICATED, "query", "filter", "filters"} == known.keys()
    assert hint_names.check(dict.fromkeys(known, "x"), readers(*FILTERS)) == {}


@pytest.mark.parametrize(
    "each", [*FILTERS.values(), *WEIGHERS.values()], ids=lambda each: str(each.NAME)
)
def test_what_is_ours_names_the_hints_that_its_fields_are_made_of(each: Any) -> None:
    fields = {hint for name in each.READS for hint in hint_names.OF_FIELDS.get(name, ())}
    assert set(getattr(each, "HINTS", ())) == fields


def test_a_known_hint_that_nothing_in_force_reads_is_refused() -> None:
    told = refusal({"query": '["=", "$x", 1]'}, readers(*DEFAULT))
    assert told == (
        "The scheduler hint 'query' would have no effect: JsonFilter reads it, and is not in "
        "force for this request. Add it to the setting 'default_host_filters', or name it in the "
        "hint 'filters' if your role allows that hint."
    )
    assert hint_names.check({"query": "x"}, readers(*DEFAULT, "JsonFilter")) == {}
    # The filters that a request names decide, not those of the settings.
    assert hint_names.check({"query": "x"}, readers(*DEFAULT, asked=("JsonFilter",))) == {}
    named = readers(*DEFAULT, asked=("AllHostsFilter",))
    assert "SameHostFilter reads it" in refusal({"same_host": "x"}, named)
    # The filters for dedicated hosts are always in force.
    assert hint_names.check(dict.fromkeys(DEDICATED, "x"), named) == {}


@pytest.mark.parametrize("given", [None, [], "", {}])
def test_a_hint_that_asks_nothing_may_be_read_by_nobody(given: Any) -> None:
    assert hint_names.check({"query": given}, readers(*DEFAULT)) == {}


def test_weighers_read_hints_too() -> None:
    soft = readers("AllHostsFilter")
    assert "group" in soft.read
    assert "group" not in soft.by_filters
    assert "group" not in readers("AllHostsFilter", weighers=("FreeDiskWeigher",)).read


def test_a_plugin_makes_the_hints_known_that_it_declares() -> None:
    found = readers(*DEFAULT, f"{OWN}:DeclaredRackFilter")
    assert found.of_any == ()
    assert hint_names.check({"rack": "x", "colour": "red"}, found) == {
        "colour": "not read by any filter"
    }
    assert "the nearest is 'rack'" in refusal({"racks": "x"}, found)
    left_out = readers(f"{OWN}:DeclaredRackFilter", asked=("AllHostsFilter",))
    assert refusal({"rack": "x"}, left_out) == (
        "The scheduler hint 'rack' would have no effect: DeclaredRackFilter reads it, and is "
        "not in force for this request. The hint 'filters' of the request excludes it."
    )


def test_a_plugin_that_declares_nothing_may_read_any() -> None:
    found = readers(*DEFAULT, f"{OWN}:RackFilter", weighers=(f"{OWN}:RackWeigher",))
    assert hint_names.check({"rack": "x"}, found) == {
        "rack": "may be read by RackFilter, RackWeigher"
    }
    # Hints that are known to be wrong are refused nevertheless.
    assert "JsonFilter reads it" in refusal({"query": "x"}, found)
    assert "the nearest is 'pcloud'" in refusal({"Pcloud": "x"}, found)


def test_what_reads_the_field_of_a_hint_reads_the_hint() -> None:
    found = readers(*DEFAULT, f"{OWN}:OwnQueries")
    assert hint_names.check({"query": "x"}, found) == {}


def test_a_plugin_with_the_name_of_one_of_ours_hides_no_hint_of_it() -> None:
    known = hint_names.known_to([Namesake])
    assert known["pcloud"] == known["rack"] == ("PcloudFilter",)
    assert hint_names.nearest("pclouds", known) == "pcloud"
