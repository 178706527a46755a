"""Failing plug-ins: only their own requests are affected."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from innkeeper.domain.compute import Booted, BootRequest
from innkeeper.domain.errors import PluginFailed
from innkeeper.domain.slices import Scheduling
from innkeeper.domain.zones import Destination
from innkeeper.store.queries.compute import servers
from innkeeper.systems.compute.boot import decisions, dry_run
from tests.support.clouds import NOW, Cloud, cloud_in, faults, reported
from tests.support.own_plugins import FAILS_ONCE, SECRET

OWN = "tests.support.own_plugins"
TROUBLE = {"trouble": "error"}
FAILED = "No valid host was found. The {} failed. The operator can find the error in the log."
Make = Callable[..., Cloud]


@pytest.fixture(autouse=True)
def logs() -> Iterator[list[Any]]:
    """The log of a test."""
    with capture_logs() as captured:
        yield captured


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    """Makes a cloud of two hosts with the given plug-ins."""
    made: list[Cloud] = []

    def start(**settings: Any) -> Cloud:
        scheduling = Scheduling(**settings)
        made.append(cloud_in(tmp_path, reported("a"), reported("b"), scheduling=scheduling))
        return made[-1]

    yield start
    for each in made:
        each.reread()
        each.judge()
        each.close()


def rack_filter(make: Make, **more: Any) -> Cloud:
    return make(default_host_filters=("ComputeFilter", f"{OWN}:RackFilter"), **more)


def hosts_of(cloud: Cloud, *requests: BootRequest) -> list[str | None]:
    uuids = [uuid for each in requests for uuid in each.server_ids]
    found = {each.uuid: each.host for each in cloud.read(lambda tx: servers.alive(tx, uuids))}
    return [found[uuid] for uuid in uuids]


def failures(logs: list[Any]) -> list[Any]:
    return [each for each in logs if each["event"] == "plugin_failed"]


@pytest.mark.parametrize("setting", ["off", "brief", "full"])
def test_a_failing_filter_affects_only_its_own_request(
    make: Make, logs: list[Any], setting: str
) -> None:
    cloud = rack_filter(make, explain_decisions=setting)
    requests = [cloud.request(1, hints=each) for each in ({}, TROUBLE, {"rack": "b"})]
    outcomes = cloud.boot(*requests)
    assert faults(outcomes) == [None, FAILED.format("host filter RackFilter"), None]
    failed = outcomes[1]
    assert isinstance(failed, Booted)
    assert failed.refused_by == "RackFilter"
    placed = hosts_of(cloud, *requests)
    assert placed[0] in {"a", "b"}
    assert placed[1:] == [None, "b"]
    (line,) = failures(logs)
    assert (line["kind"], line["plugin"]) == ("host filter", "RackFilter")
    assert line["error"] == f"RuntimeError: {SECRET}"


def test_a_filter_that_exits_does_not_affect_other_requests(make: Make) -> None:
    cloud = rack_filter(make)
    exits = cloud.request(hints={"trouble": "exit"})
    assert faults(cloud.boot(exits)) == [FAILED.format("host filter RackFilter")]
    assert faults(cloud.boot(cloud.request())) == [None]


def test_only_administrators_see_the_error(make: Make) -> None:
    cloud = rack_filter(make)
    request = cloud.request(hints=TROUBLE)
    cloud.boot(request)
    uuid = request.server_ids[0]
    server = cloud.read(lambda tx: servers.by_uuid(tx, uuid))
    # Only administrators see the details of faults.
    assert server.fault["details"] == f"RackFilter: RuntimeError: {SECRET}"
    assert SECRET not in server.fault["message"]
    shown = cloud.read(lambda tx: decisions.shown(tx, server, are_hosts_named=False))
    assert (shown["servers"], shown["removed"], shown["nearest"]) == (0, [], [])
    assert shown["fault"] == server.fault["message"]
    assert SECRET not in str(shown)


def test_explaining_is_rejected(make: Make, logs: list[Any]) -> None:
    cloud = rack_filter(make)
    asked = [cloud.request(hints=each) for each in (TROUBLE, {})]
    failed, answered = cloud.carry_out(*(("explain", each) for each in asked))
    assert isinstance(failed, PluginFailed)
    assert failed.message == (
        "The host filter RackFilter failed. The operator can find the error in the log."
    )
    assert answered.explanation.placed == 1
    assert len(failures(logs)) == 1


def test_planning_is_rejected(make: Make, logs: list[Any]) -> None:
    cloud = rack_filter(make)
    request = cloud.request(hints=TROUBLE)
    (failed,) = cloud.carry_out(
        ("decide", (lambda tx, context: dry_run.plan(tx, context, request), NOW))
    )
    assert isinstance(failed, PluginFailed)
    assert len(failures(logs)) == 1


def test_a_plan_entry_is_rejected_and_creates_no_server(make: Make) -> None:
    cloud = rack_filter(make)
    uuid = cloud.host("a").provider_uuid
    request = cloud.request(hints=TROUBLE)
    destination = Destination(request.server_ids[0], "a", uuid)
    entry = cloud.request(hints=TROUBLE, server_ids=request.server_ids, destination=destination)
    (failed,) = cloud.boot(entry)
    assert isinstance(failed, PluginFailed)
    assert cloud.read(lambda tx: servers.ever_known(tx, request.server_ids)) == set()


def test_a_failing_weigher_is_reported_as_a_weigher(make: Make) -> None:
    cloud = make(default_host_weighers=(f"{OWN}:RackWeigher",))
    wanted = [{"trouble": {each: "error"}} for each in ("column", "scale")]
    outcomes = cloud.boot(*(cloud.request(hints=each) for each in wanted))
    assert faults(outcomes) == [FAILED.format("weigher RackWeigher")] * 2
    assert faults(cloud.boot(cloud.request(hints={"like": "b"}))) == [None]


def test_a_filter_that_cannot_explain_itself_is_reported(make: Make) -> None:
    cloud = rack_filter(make)
    hints = {"rack": "none", "trouble": {"missing": "error"}}
    (fault,) = faults(cloud.boot(cloud.request(hints=hints)))
    assert fault is not None
    assert "the host filter RackFilter could not give details" in fault


@pytest.mark.parametrize("count", [1, 2])
def test_a_filter_that_fails_in_a_retry_leaves_no_depletion(make: Make, count: int) -> None:
    FAILS_ONCE.is_armed = False
    cloud = make(default_host_filters=(f"{OWN}:FAILS_ONCE",), default_host_weighers=())
    if count == 1:
        # The mask of the whole table is cached.
        assert faults(cloud.boot(cloud.request())) == [None]
    FAILS_ONCE.is_armed = True
    failed = faults(cloud.boot(cloud.request(count)))
    assert failed == [FAILED.format("host filter FailsOnceFilter")]
    # The partly renewed mask is discarded: the empty hosts are still empty.
    assert faults(cloud.boot(cloud.request(count))) == [None]
    (fault,) = faults(cloud.boot(cloud.request()))
    assert fault is not None
    assert "FailsOnceFilter removed 2 (the host is full; an empty host)" in fault


def test_a_filter_with_a_short_mask_has_failed(make: Make) -> None:
    cloud = make(default_host_filters=(f"{OWN}:Forgetful",))
    assert faults(cloud.boot(cloud.request(3))) == [FAILED.format("host filter ForgetfulFilter")]


def test_a_driver_that_fails_loses_nothing_of_the_hosts(make: Make, logs: list[Any]) -> None:
    cloud = make(scheduler_driver=f"{OWN}:Taking")
    outcomes = cloud.boot(cloud.request(3, hints=TROUBLE), cloud.request(1))
    assert faults(outcomes) == [FAILED.format("driver taking"), None]
    (refused,) = cloud.carry_out(("explain", cloud.request(5, hints=TROUBLE)))
    assert isinstance(refused, PluginFailed)
    assert len(failures(logs)) == 2
    # Two hosts have room for four servers each.
    assert faults(cloud.boot(cloud.request(7))) == [None]
