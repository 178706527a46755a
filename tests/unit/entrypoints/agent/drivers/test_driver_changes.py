"""What every driver does with servers after their boot, and the options of the fake driver."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from innkeeper.domain.orders import OrderKind
from innkeeper.entrypoints.agent.drivers.catalogue import DRIVERS
from innkeeper.entrypoints.agent.drivers.driver import Driver, DriverFailed, Order
from innkeeper.entrypoints.agent.drivers.fake import FAIL_KEY, FakeDriver, FakeOptions
from tests.unit.entrypoints.agent.drivers.test_drivers import OPTIONS

HERE = sorted(
    {
        OrderKind.STOP,
        OrderKind.START,
        OrderKind.REBOOT,
        OrderKind.PAUSE,
        OrderKind.UNPAUSE,
        OrderKind.SUSPEND,
        OrderKind.RESUME,
    }
    | {OrderKind.DEPART, OrderKind.RETURN, OrderKind.RESIZE, OrderKind.SHELVE}
)
"""Orders for a server that is on the host."""
COMING = sorted({OrderKind.ARRIVE, OrderKind.EXPECT, OrderKind.EVACUATE, OrderKind.UNSHELVE})
GOING = sorted({OrderKind.OFFLOAD, OrderKind.SEND})
WITHIN_S = 60.0


@pytest.fixture(params=sorted(DRIVERS))
def driver(request: pytest.FixtureRequest, tmp_path: Path) -> Driver:
    return DRIVERS[request.param](OPTIONS, tmp_path, threading.Event().wait)


def order(kind: str, host: str = "h1", **body: Any) -> Order:
    return Order(1, kind, host, "s1", {"migration_id": "m1", "power_state": 1, **body})


def test_every_order_is_carried_out_by_one_method_of_a_driver() -> None:
    members = {name: value for name, value in vars(OrderKind).items() if name.isupper()}
    kinds = [value for value in members.values() if isinstance(value, str)]
    plain = {OrderKind.BUILD, OrderKind.DESTROY}
    groups = (plain, OrderKind.CHANGES, OrderKind.VOLUMES, OrderKind.BESIDE)
    assert sorted(kinds) == sorted(kind for group in groups for kind in group)
    assert {*HERE, *COMING, *GOING} == OrderKind.CHANGES


@pytest.mark.parametrize("kind", HERE)
def test_an_order_for_a_server_is_idempotent(driver: Driver, kind: str) -> None:
    with pytest.raises(DriverFailed):
        driver.change(order(kind))
    assert driver.servers()["h1"] == []
    driver.build(order(OrderKind.BUILD))
    driver.change(order(kind))
    driver.change(order(kind))
    assert driver.servers()["h1"] == ["s1"]
    driver.close()


@pytest.mark.parametrize("kind", COMING)
def test_a_server_arrives_once_and_can_be_destroyed(driver: Driver, kind: str) -> None:
    driver.change(order(kind))
    driver.change(order(kind))
    assert driver.servers()["h1"] == ["s1"]
    driver.change(order(OrderKind.STOP))
    driver.destroy(order(OrderKind.DESTROY))
    assert driver.servers()["h1"] == []
    driver.close()


@pytest.mark.parametrize("kind", GOING)
def test_a_server_leaves_once(driver: Driver, kind: str) -> None:
    driver.build(order(OrderKind.BUILD))
    driver.change(order(kind))
    driver.change(order(kind))
    assert driver.servers()["h1"] == []
    driver.close()


def test_an_aborted_migration_does_not_start_again(driver: Driver) -> None:
    driver.build(order(OrderKind.BUILD))
    driver.interrupt(order(OrderKind.ABORT))
    driver.interrupt(order(OrderKind.ABORT))
    with pytest.raises(DriverFailed):
        driver.change(order(OrderKind.SEND))
    assert driver.servers()["h1"] == ["s1"]
    driver.change(order(OrderKind.SEND, migration_id="m2"))
    with pytest.raises(DriverFailed):
        driver.interrupt(order(OrderKind.ABORT, migration_id="m2"))
    driver.close()


@pytest.mark.parametrize("kind", [OrderKind.ABORT, OrderKind.HURRY])
def test_a_running_migration_can_be_aborted_or_hurried(tmp_path: Path, kind: str) -> None:
    waited: list[float] = []
    interrupted = threading.Event()

    def wait(seconds: float) -> None:
        waited.append(seconds)
        interrupted.wait(WITHIN_S)

    options = FakeOptions(host_prefix="h", move_time_s=3600.0)
    driver = FakeDriver(options, tmp_path, wait)
    driver.build(order(OrderKind.BUILD))
    outcomes: list[Exception | None] = []
    sending = threading.Thread(target=lambda: outcomes.append(fault(driver.change)))
    sending.start()
    driver.interrupt(order(kind))
    interrupted.set()
    sending.join(WITHIN_S)
    (outcome,) = outcomes
    assert (outcome is None) is (kind == OrderKind.HURRY)
    assert sum(waited) < 1.0
    driver.close()


def fault(change: Callable[[Order], None]) -> Exception | None:
    """Carry out an order, and return the error."""
    try:
        change(order(OrderKind.SEND))
    except DriverFailed as error:
        return error
    return None


def test_a_fake_driver_fails_orders_on_request(tmp_path: Path) -> None:
    driver = FakeDriver(FakeOptions(host_prefix="h"), tmp_path, lambda _: None)
    driver.build(order(OrderKind.BUILD))
    for kind in (*HERE, *COMING, *GOING):
        with pytest.raises(DriverFailed, match="because"):
            driver.change(order(kind, metadata={FAIL_KEY + kind: "because"}))
    assert driver.servers()["h1"] == ["s1"]
    driver.close()


def test_a_state_file_without_power_states_is_upgraded(tmp_path: Path) -> None:
    rows = sqlite3.connect(tmp_path / "fake.sqlite3", isolation_level=None)
    rows.execute("CREATE TABLE servers (id TEXT, host TEXT, PRIMARY KEY (id, host))")
    rows.execute("INSERT INTO servers VALUES ('s1', 'h1')")
    rows.close()
    driver = FakeDriver(FakeOptions(host_prefix="h"), tmp_path, lambda _: None)
    driver.change(order(OrderKind.STOP))
    assert driver.servers()["h1"] == ["s1"]
    driver.close()


def test_a_driver_lists_the_servers_that_do_not_run(driver: Driver) -> None:
    driver.build(order(OrderKind.BUILD))
    assert driver.not_running() == {"h1": {}, "h2": {}}
    driver.change(order(OrderKind.STOP))
    assert driver.not_running() == {"h1": {"s1": 4}, "h2": {}}
    driver.change(order(OrderKind.RETURN, power_state=3))
    assert driver.not_running() == {"h1": {"s1": 3}, "h2": {}}
    driver.close()
