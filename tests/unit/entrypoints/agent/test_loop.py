"""An agent survives all failures of its service, and stops when asked to."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import pytest

from innkeeper.domain.errors import Invalid, NotFound, Refusal, TooLarge, Unavailable
from innkeeper.entrypoints.agent.drivers.driver import DriverFailed
from innkeeper.entrypoints.agent.loop import (
    AILING_AFTER,
    DRAIN_S,
    RETRY_FIRST_S,
    RETRY_MAX_S,
    AgentLoop,
    backoff_s,
)
from innkeeper.entrypoints.agent.report import BYTES_MAX
from innkeeper.entrypoints.agent.work import FAULT_MAX
from tests.unit.entrypoints.agent.test_work import Recorder, eventually

WITHIN_S = 60.0


class Scripted:
    """A service that fails as scripted and records what it receives."""

    def __init__(self) -> None:
        self.registered = 0
        self.beats = 0
        self.asked_after: list[int] = []
        self.reported: list[Mapping[str, Any]] = []
        self.results: list[Mapping[str, Any]] = []
        self.orders: list[dict[str, Any]] = []
        self.refusals: dict[str, list[Refusal]] = {}
        self.reports: list[Sequence[Mapping[str, Any]]] = []
        self.poison: set[int] = set()
        self.poison_refusal: Refusal = Invalid("400: What is this?")
        self.is_closed = False

    def _refuse(self, what: str) -> None:
        if self.refusals.get(what):
            raise self.refusals[what].pop(0)

    def register(self, name: str, driver: str) -> Mapping[str, Any]:
        self._refuse("register")
        self.registered += 1
        return {
            "id": "a1",
            "heartbeat_interval_s": 0.01,
            "report_interval_s": 0.03,
            "work_poll_s": 0.05,
        }

    def report(self, agent_id: str, hosts: Sequence[Mapping[str, Any]]) -> None:
        self.reported += hosts

    def heartbeat(self, agent_id: str) -> None:
        self._refuse("beat")
        self.beats += 1

    def take_work(self, agent_id: str, after: int, wait_s: float) -> list[dict[str, Any]]:
        self._refuse("work")
        self.asked_after.append(after)
        found = [each for each in self.orders if each["id"] > after]
        if not found:
            threading.Event().wait(0.01)
        return found

    def report_results(self, agent_id: str, results: Sequence[Mapping[str, Any]]) -> None:
        self._refuse("results")
        if any(each["order_id"] in self.poison for each in results):
            raise self.poison_refusal
        self.reports.append(results)
        # The result of an order that was sent again meanwhile arrives twice.
        known = {each["order_id"] for each in self.results}
        self.results += [each for each in results if each["order_id"] not in known]
        reported = {each["order_id"] for each in results}
        self.orders = [each for each in self.orders if each["id"] not in reported]

    def close(self) -> None:
        self.is_closed = True


class RunningAgent:
    """An agent that runs until the block ends."""

    def __init__(self, service: Scripted, driver: Recorder) -> None:
        self.stop = threading.Event()
        self.driver = driver
        agent = AgentLoop(service, driver, name="a", driver_name="fake", threads=2, stop=self.stop)
        self.thread = threading.Thread(target=agent.run, daemon=True)

    def __enter__(self) -> RunningAgent:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop.set()
        self.thread.join(WITHIN_S + DRAIN_S)
        assert not self.thread.is_alive()
        assert self.driver.is_closed


def build(number: int, server: str = "s1") -> dict[str, Any]:
    return {"id": number, "kind": "build", "host": "h1", "server_id": server, "body": {}}


def test_an_agent_registers_works_and_sends_heartbeats() -> None:
    service, driver = Scripted(), Recorder()
    service.orders = [build(1), build(2, "s2")]
    with RunningAgent(service, driver):
        eventually(lambda: len(service.results) == 2 and service.beats > 2)
        eventually(lambda: len(service.reported) > 2)
    facts = {
        "name": "h1",
        "inventories": {"VCPU": {"total": 1}},
        "traits": [],
        "capabilities": {},
        "host_type": "unknown",
        "host_version": 0,
        "host_ip": "127.0.0.1",
        "cpu_facts": {},
    }
    # Capabilities are reported periodically; the servers only at registration.
    there: dict[str, Any] = {"servers": [], "not_running": {}}
    assert service.reported[:2] == [{**facts, **there}, facts]
    assert service.registered == 1
    assert service.is_closed
    assert sorted(driver.done) == [("build", "s1"), ("build", "s2")]


def test_calls_to_an_unavailable_service_are_retried() -> None:
    service, driver = Scripted(), Recorder()
    service.orders = [build(1)]
    service.refusals = {
        "register": [Unavailable("Not now.")] * 2,
        "work": [Unavailable("Not now.")],
        "results": [Unavailable("Not now.")],
        "beat": [Unavailable("Not now.")],
    }
    with RunningAgent(service, driver):
        eventually(lambda: len(service.results) == 1 and service.beats > 0)
    assert driver.done == [("build", "s1")]


def test_an_unknown_agent_registers_again() -> None:
    service, driver = Scripted(), Recorder()
    with RunningAgent(service, driver):
        eventually(lambda: service.beats > 0)
        service.refusals["beat"] = [NotFound("Who?")]
        eventually(lambda: service.registered == 2)
    assert len(service.reported) == 2


def test_running_orders_are_not_polled_for_in_a_loop() -> None:
    service, driver = Scripted(), Recorder()
    driver.may_go.clear()
    service.orders = [build(7)]
    with RunningAgent(service, driver):
        eventually(lambda: len(service.asked_after) >= 4)
        driver.may_go.set()
        eventually(lambda: len(service.results) == 1)
    # From the start, then after the newest order, and from the start again.
    assert service.asked_after[:4] == [0, 7, 0, 7]


@pytest.mark.parametrize("refusal", [Invalid("400: Never."), TooLarge("413: Too large.")])
def test_a_refused_result_does_not_hold_up_the_others(refusal: Refusal) -> None:
    service, driver = Scripted(), Recorder()
    driver.may_go.clear()
    service.orders = [build(number, f"s{number}") for number in range(1, 5)]
    service.poison, service.poison_refusal = {2}, refusal
    with RunningAgent(service, driver):
        driver.may_go.set()
        eventually(lambda: len(service.results) == 3)
        # The order is sent again and again, but was carried out only once.
        asked = len(service.asked_after)
        eventually(lambda: len(service.asked_after) > asked + 3)
    assert sorted(each["order_id"] for each in service.results) == [1, 3, 4]
    assert len(driver.done) == 4


def test_long_faults_are_reported_in_several_parts() -> None:
    service, driver = Scripted(), Recorder()
    driver.failure = DriverFailed("\u00e9" * FAULT_MAX)
    service.orders = [build(number, f"s{number}") for number in range(1, 301)]
    with RunningAgent(service, driver):
        eventually(lambda: len(service.results) == 300)
    assert all(len(msgspec.json.encode(each)) <= BYTES_MAX for each in service.reports)


def test_a_stopping_agent_reports_the_orders_that_ran() -> None:
    service, driver = Scripted(), Recorder()
    driver.may_go.clear()
    service.orders = [build(1)]
    with RunningAgent(service, driver) as running:
        eventually(lambda: bool(service.asked_after))
        running.stop.set()
        # Longer than an idle agent needs to end.
        threading.Event().wait(4 * RETRY_FIRST_S)
        service.refusals["results"] = [Unavailable("Not now.")]
        driver.may_go.set()
    assert [each["order_id"] for each in service.results] == [1]


def test_a_stopping_agent_gives_up_reporting_in_time() -> None:
    service, driver = Scripted(), Recorder()
    service.refusals["results"] = [Unavailable("Not now.")] * 1000
    service.orders = [build(1)]
    with RunningAgent(service, driver):
        eventually(lambda: len(service.refusals["results"]) < 1000)
    assert service.results == []


def test_a_malformed_response_does_not_end_the_agent() -> None:
    service, driver = Scripted(), Recorder()
    service.orders = [{"id": 1}]
    with RunningAgent(service, driver):
        eventually(lambda: bool(service.asked_after))
        service.orders = [build(2)]
        eventually(lambda: len(service.results) == 1)


def test_calls_to_a_failing_driver_are_retried() -> None:
    service, driver = Scripted(), Recorder()
    service.orders = [build(1)]
    driver.blindness = [OSError("The socket is gone."), DriverFailed("No.")]
    with RunningAgent(service, driver):
        eventually(lambda: len(service.results) == 1 and service.beats > 0)
    assert service.registered == 1
    assert driver.blindness == []


def test_an_agent_whose_driver_always_fails_sends_no_heartbeat() -> None:
    service, driver = Scripted(), Recorder()
    driver.blindness = [sqlite3.OperationalError("The disk is full.")] * 1000
    with RunningAgent(service, driver):
        eventually(lambda: len(driver.blindness) < 997)
    assert (service.registered, service.beats) == (0, 0)


def test_an_agent_that_cannot_start_work_sends_no_heartbeats_until_it_can() -> None:
    service, driver = Scripted(), Recorder()
    with RunningAgent(service, driver):
        eventually(lambda: service.beats > 0)
        service.orders = [{"id": 1}]
        # The last crash is counted by the time of the next poll.
        asked = len(service.asked_after)
        eventually(lambda: len(service.asked_after) > asked + AILING_AFTER)
        silent_since = service.beats
        threading.Event().wait(0.2)
        assert service.beats <= silent_since + 1
        service.orders = [build(2)]
        eventually(lambda: len(service.results) == 1 and service.beats > silent_since + 1)


def test_the_backoff_grows_up_to_a_limit_and_differs_by_name() -> None:
    waits = [backoff_s(attempt, "a") for attempt in range(20)]
    assert waits[0] < 0.3
    assert max(waits) <= RETRY_MAX_S * 1.25
    assert backoff_s(5, "a") != backoff_s(5, "b")
    assert backoff_s(10_000, "a") <= RETRY_MAX_S * 1.25
