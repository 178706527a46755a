"""The fake driver's orders about volumes: a repetition changes nothing, even after a restart."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from innkeeper.domain.orders import OrderKind
from innkeeper.entrypoints.agent.drivers.driver import DriverFailed, Order
from innkeeper.entrypoints.agent.drivers.fake import FAIL_KEY, FakeDriver, FakeOptions

HOST, SERVER, VOLUME = "host-1", "s1", "v1"


def driver_in(folder: Path) -> FakeDriver:
    return FakeDriver(FakeOptions(hosts=2), folder, threading.Event().wait)


def order(kind: str, subject: str = SERVER, host: str = HOST, **body: Any) -> Order:
    return Order(1, kind, host, subject, {"volume_id": VOLUME, **body})


def test_orders_about_volumes_are_idempotent(tmp_path: Path) -> None:
    driver = driver_in(tmp_path)
    driver.build(order(OrderKind.BUILD))
    for kind, subject in (
        (OrderKind.MAKE_VOLUME, VOLUME),
        (OrderKind.GROW_VOLUME, VOLUME),
        (OrderKind.ATTACH_VOLUME, SERVER),
    ):
        for _ in range(2):
            driver.change_volume(order(kind, subject, size_gb=1))
    assert driver.connections(HOST, SERVER) == [VOLUME]
    driver.close()
    again = driver_in(tmp_path)
    assert again.connections(HOST, SERVER) == [VOLUME]
    for kind, subject in ((OrderKind.DETACH_VOLUME, SERVER), (OrderKind.DROP_VOLUME, VOLUME)):
        for _ in range(2):
            again.change_volume(order(kind, subject))
    assert again.connections(HOST, SERVER) == []
    again.close()


def test_a_server_that_is_not_there_takes_no_volume(tmp_path: Path) -> None:
    driver = driver_in(tmp_path)
    with pytest.raises(DriverFailed, match="not on host-1"):
        driver.change_volume(order(OrderKind.ATTACH_VOLUME))
    with pytest.raises(DriverFailed, match="no host elsewhere"):
        driver.change_volume(order(OrderKind.MAKE_VOLUME, VOLUME, "elsewhere"))
    driver.close()


def test_a_server_comes_with_its_volumes_and_goes_without(tmp_path: Path) -> None:
    driver = driver_in(tmp_path)
    listed = [{"volume_id": VOLUME}, {"volume_id": "v2"}]
    driver.build(order(OrderKind.BUILD, volumes=listed))
    assert driver.connections(HOST, SERVER) == [VOLUME, "v2"]
    driver.change(order(OrderKind.ARRIVE, host="host-2", volumes=listed, power_state=1))
    assert driver.connections("host-2", SERVER) == [VOLUME, "v2"]
    driver.destroy(order(OrderKind.DESTROY))
    assert driver.connections(HOST, SERVER) == []
    assert driver.connections("host-2", SERVER) == [VOLUME, "v2"]
    driver.close()


def test_a_volumes_metadata_makes_its_orders_fail(tmp_path: Path) -> None:
    driver = driver_in(tmp_path)
    wanted = {f"{FAIL_KEY}make-volume": "no disk"}
    with pytest.raises(DriverFailed, match="no disk"):
        driver.change_volume(order(OrderKind.MAKE_VOLUME, VOLUME, metadata=wanted))
    driver.close()


def test_a_server_that_returns_has_exactly_the_volumes_that_are_listed(tmp_path: Path) -> None:
    driver = driver_in(tmp_path)
    driver.build(order(OrderKind.BUILD, volumes=[{"volume_id": VOLUME}, {"volume_id": "v2"}]))
    driver.change(order(OrderKind.DEPART))
    assert driver.connections(HOST, SERVER) == []
    # On the destination, one volume was detached, and another was attached.
    listed = [{"volume_id": "v2"}, {"volume_id": "v3"}]
    for _ in range(2):
        driver.change(order(OrderKind.RETURN, volumes=listed, power_state=1))
    assert driver.connections(HOST, SERVER) == ["v2", "v3"]
    driver.close()
