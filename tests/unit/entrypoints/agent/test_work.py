"""Orders run once, in sequence for each server, and results stay until acknowledged."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence

from innkeeper.entrypoints.agent.drivers.driver import DriverFailed, HostFacts, Order
from innkeeper.entrypoints.agent.work import OrderExecutor

WITHIN_S = 60.0


class Recorder:
    """A driver that records its orders and can be made to block or fail."""

    def __init__(self) -> None:
        self.done: list[tuple[str, str]] = []
        self.may_go = threading.Event()
        self.may_go.set()
        self.failure: Exception | None = None
        self.blindness: list[Exception] = []
        self.is_closed = False

    def hosts(self) -> Sequence[HostFacts]:
        return [HostFacts("h1", {"VCPU": {"total": 1}})]

    def servers(self) -> Mapping[str, Sequence[str]]:
        if self.blindness:
            raise self.blindness.pop()
        return {"h1": []}

    def not_running(self) -> Mapping[str, Mapping[str, int]]:
        return {"h1": {}}

    def build(self, order: Order) -> None:
        self.may_go.wait(WITHIN_S)
        if self.failure is not None:
            raise self.failure
        self.done.append(("build", order.server_id))

    def destroy(self, order: Order) -> None:
        self.done.append(("destroy", order.server_id))

    def change(self, order: Order) -> None:
        self.done.append((order.kind, order.server_id))

    def change_volume(self, order: Order) -> None:
        self.done.append((order.kind, order.server_id))

    def interrupt(self, order: Order) -> None:
        self.done.append((order.kind, order.server_id))

    def close(self) -> None:
        self.is_closed = True


def order(number: int, server: str = "s1", kind: str = "build") -> Order:
    return Order(number, kind, "h1", server, {})


def eventually(is_true: Callable[[], bool]) -> None:
    pause = threading.Event()
    for _ in range(int(WITHIN_S / 0.01)):
        if is_true():
            return
        pause.wait(0.01)
    raise AssertionError("The condition never became true.")


def test_a_repeated_order_is_not_started_again() -> None:
    driver = Recorder()
    driver.may_go.clear()
    executor = OrderExecutor(driver, 2)
    assert executor.submit([order(1), order(2, "s2")]) == 2
    assert executor.submit([order(1), order(2, "s2")]) == 0
    driver.may_go.set()
    eventually(lambda: len(executor.results(10)) == 2)
    # Done, but not acknowledged yet.
    assert executor.submit([order(1)]) == 0
    executor.close()
    assert sorted(driver.done) == [("build", "s1"), ("build", "s2")]


def test_results_stay_until_they_are_acknowledged() -> None:
    executor = OrderExecutor(Recorder(), 1)
    executor.submit([order(1)])
    eventually(lambda: len(executor.results(10)) == 1)
    results = executor.results(10)
    assert executor.results(10) == results == [{"order_id": 1, "ok": True}]
    executor.acknowledge(results)
    assert executor.results(10) == []
    assert executor.submit([order(1)]) == 1
    executor.close()


def test_the_orders_of_one_server_run_in_sequence() -> None:
    driver = Recorder()
    driver.may_go.clear()
    executor = OrderExecutor(driver, 4)
    executor.submit([order(1), order(2, kind="destroy"), order(3)])
    assert driver.done == []
    driver.may_go.set()
    eventually(lambda: len(executor.results(10)) == 3)
    assert driver.done == [("build", "s1"), ("destroy", "s1"), ("build", "s1")]
    executor.close()


def test_a_closed_executor_accepts_no_orders() -> None:
    executor = OrderExecutor(Recorder(), 1)
    executor.close()
    assert executor.submit([order(1)]) == 0


def outcome(driver: Recorder, given: Order) -> dict[str, object]:
    executor = OrderExecutor(driver, 1)
    executor.submit([given])
    eventually(lambda: len(executor.results(10)) == 1)
    (result,) = executor.results(10)
    executor.close()
    return result


def test_a_failure_is_reported_with_the_drivers_message() -> None:
    driver = Recorder()
    driver.failure = DriverFailed("No power.")
    assert outcome(driver, order(1)) == {"order_id": 1, "ok": False, "fault": "No power."}


def test_a_fault_is_cleaned_and_cut_before_it_is_sent() -> None:
    driver = Recorder()
    driver.failure = DriverFailed("a\0b\ud800" + "x" * 5000)
    fault = str(outcome(driver, order(1))["fault"])
    assert fault == "ab?" + "x" * 3997


def test_a_dropped_result_is_gone_and_its_order_not_started_again() -> None:
    executor = OrderExecutor(Recorder(), 1)
    executor.submit([order(1)])
    eventually(lambda: len(executor.results(10)) == 1)
    executor.drop(executor.results(10)[0])
    assert executor.results(10) == []
    assert executor.submit([order(1)]) == 0
    executor.close()


def test_an_unexpected_error_is_reported_without_its_message() -> None:
    driver = Recorder()
    driver.failure = ZeroDivisionError("secret")
    result = outcome(driver, order(1))
    assert result["ok"] is False
    assert "secret" not in str(result["fault"])


def test_an_order_of_an_unknown_kind_fails() -> None:
    assert outcome(Recorder(), order(1, kind="paint"))["ok"] is False


def test_orders_that_did_not_start_are_dropped_when_the_agent_stops() -> None:
    driver = Recorder()
    driver.may_go.clear()
    executor = OrderExecutor(driver, 1)
    executor.submit([order(1), order(2, "s2"), order(3, kind="destroy")])
    closing = threading.Thread(target=executor.close)
    closing.start()
    eventually(lambda: executor.submit([order(4, "s4")]) == 0)
    driver.may_go.set()
    closing.join(WITHIN_S)
    assert driver.done == [("build", "s1")]
    assert [each["order_id"] for each in executor.results(10)] == [1]


def test_an_interrupting_order_does_not_wait_for_the_running_one() -> None:
    driver = Recorder()
    driver.may_go.clear()
    executor = OrderExecutor(driver, 2)
    assert executor.submit([order(1), order(2, kind="stop"), order(3, kind="abort")]) == 3
    eventually(lambda: driver.done == [("abort", "s1")])
    eventually(lambda: [each["order_id"] for each in executor.results(9)] == [3])
    assert executor.submit([order(3, kind="abort")]) == 0
    executor.acknowledge(executor.results(9))
    driver.may_go.set()
    eventually(lambda: len(executor.results(9)) == 2)
    assert driver.done == [("abort", "s1"), ("build", "s1"), ("stop", "s1")]
    executor.close()
