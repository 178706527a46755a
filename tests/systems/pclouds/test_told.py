"""Explanations of a failed boot reveal only that dedicated hosts exist."""

from __future__ import annotations

from pathlib import Path

import pytest

from innkeeper.domain.compute import Booted
from innkeeper.systems.compute.hosts.hosts import ServiceChange
from innkeeper.systems.pclouds.hosts import HostRequest
from tests.support.clouds import reported
from tests.support.moves import Movers
from tests.support.pcloud_operator import PcloudOperator


@pytest.mark.parametrize("names_it", [False, True])
def test_explanations_show_no_amounts_of_a_pcloud(tmp_path: Path, names_it: bool) -> None:
    operator = PcloudOperator(Movers(tmp_path, reported("a1", vcpus=2), reported("b1", vcpus=11)))
    movers = operator.movers
    operator.define("large", 1)
    uuid = operator.create("landlord", name="p", cpu_ratio=3.0)
    operator.switch_service("b1", ServiceChange(is_disabled=True))
    operator.pool("large", "b1", by_aggregate=False)
    operator.allocate(uuid, HostRequest("one", "large", None, True))
    movers.cloud.add_flavor("huge", vcpus=40)
    hints = {"pcloud": uuid} if names_it else {}
    request = movers.cloud.request(
        now=movers.now, project_id="stranger", flavor_id="huge", hints=hints
    )
    (booted,) = movers.cloud.boot(request)
    assert isinstance(booted, Booted)
    fault, refused = booted.fault, booted.refused
    assert fault is not None
    assert refused is not None
    assert "33" not in fault
    dedicated = [each for each in refused.nearest if each.host == "b1"]
    told = [[objection.filter_name for objection in each.objections] for each in dedicated]
    assert told == [["PcloudFilter"]]
    assert [each.shortage for each in dedicated] == [0.0]
    missing = [each.missing for each in refused.tallies if each.filter_name == "CapacityFilter"]
    assert not any("33" in each or "7 of 40" in each for each in missing)
    if not names_it:
        # The shared host is the nearest miss, whatever the dedicated host has.
        assert refused.nearest[0].host == "a1"
    movers.close()
