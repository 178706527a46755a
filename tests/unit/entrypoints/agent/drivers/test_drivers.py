"""Every driver must carry out orders idempotently, and keep its state."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from innkeeper.entrypoints.agent.drivers.catalogue import DRIVERS
from innkeeper.entrypoints.agent.drivers.driver import Driver, DriverFailed, Order
from innkeeper.entrypoints.agent.drivers.fake import FAIL_KEY, FakeDriver, FakeOptions

OPTIONS: Mapping[str, Any] = {
    "hosts": 2,
    "host_prefix": "h",
    "az": ("north", "south"),
    "vcpus": 4,
    "memory_mb": 1024,
    "disk_gb": 10,
    "build_time_s": 0.0,
    "move_time_s": 0.0,
    "fail_builds_on": "h2",
    "traits": ("CUSTOM_GREEN",),
}
Make = Callable[[], Driver]


@pytest.fixture(params=sorted(DRIVERS))
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Make:
    return lambda: DRIVERS[request.param](OPTIONS, tmp_path, threading.Event().wait)


def order(server: str = "s1", host: str = "h1", **body: Any) -> Order:
    return Order(1, "build", host, server, body)


def test_a_server_built_twice_is_there_once(make: Make) -> None:
    driver = make()
    driver.build(order())
    driver.build(order())
    assert driver.servers()["h1"] == ["s1"]
    driver.close()


def test_a_server_destroyed_twice_is_gone(make: Make) -> None:
    driver = make()
    driver.build(order())
    driver.destroy(order())
    driver.destroy(order())
    assert driver.servers()["h1"] == []
    driver.close()


def test_a_restarted_driver_still_has_its_servers(make: Make) -> None:
    driver = make()
    driver.build(order("s1"))
    driver.build(order("s2"))
    driver.destroy(order("s1"))
    driver.close()
    again = make()
    assert again.servers()["h1"] == ["s2"]
    again.close()


def test_a_drivers_state_is_private_to_its_user(make: Make, tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        driver = make()
        driver.build(order())
        modes = {stat.S_IMODE(each.stat().st_mode) for each in tmp_path.iterdir()}
        driver.close()
    finally:
        os.umask(before)
    assert modes == {0o600}


def test_a_killed_driver_still_has_its_servers(make: Make) -> None:
    killed = make()
    killed.build(order())
    again = make()
    assert again.servers()["h1"] == ["s1"]
    again.close()
    killed.close()


def test_a_build_on_an_unknown_host_fails(make: Make) -> None:
    driver = make()
    with pytest.raises(DriverFailed):
        driver.build(order(host="elsewhere"))
    driver.close()


def test_every_host_is_listed_once(make: Make) -> None:
    driver = make()
    names = [each.name for each in driver.hosts()]
    assert names == ["h1", "h2"]
    assert set(driver.servers()) == set(names)
    driver.close()


def test_fake_builds_fail_on_request(tmp_path: Path) -> None:
    driver = FakeDriver(
        FakeOptions(hosts=2, host_prefix="h", fail_builds_on="h2"), tmp_path, lambda _: None
    )
    with pytest.raises(DriverFailed, match="h2"):
        driver.build(order(host="h2"))
    with pytest.raises(DriverFailed, match="because"):
        driver.build(order(metadata={f"{FAIL_KEY}build": "because"}))
    driver.build(order(metadata={"other": "x"}))
    assert driver.servers() == {"h1": ["s1"], "h2": []}
    driver.close()


def test_fake_builds_take_their_time(tmp_path: Path) -> None:
    waited: list[float] = []
    driver = FakeDriver(FakeOptions(host_prefix="h", build_time_s=2.5), tmp_path, waited.append)
    driver.build(order())
    assert waited == [2.5]
    driver.close()


def test_fake_hosts_are_assigned_to_zones_in_turn(tmp_path: Path) -> None:
    driver = FakeDriver(FakeOptions(hosts=3, zones=("a", "b")), tmp_path, lambda _: None)
    assert [each.availability_zone for each in driver.hosts()] == ["a", "b", "a"]
    driver.close()


def test_a_fake_driver_with_fewer_hosts_keeps_the_servers_of_the_others(tmp_path: Path) -> None:
    driver = FakeDriver(FakeOptions(hosts=2, host_prefix="h"), tmp_path, lambda _: None)
    driver.build(order(host="h2"))
    driver.close()
    fewer = FakeDriver(FakeOptions(hosts=1, host_prefix="h"), tmp_path, lambda _: None)
    assert fewer.servers() == {"h1": []}
    fewer.close()
    again = FakeDriver(FakeOptions(hosts=2, host_prefix="h"), tmp_path, lambda _: None)
    assert again.servers()["h2"] == ["s1"]
    again.close()


def test_hosts_without_disks_report_no_disk_inventory(tmp_path: Path) -> None:
    driver = FakeDriver(FakeOptions(disk_gb=0), tmp_path, threading.Event().wait)
    (facts,) = driver.hosts()
    assert facts.inventories.keys() == {"VCPU", "MEMORY_MB"}
    driver.close()
