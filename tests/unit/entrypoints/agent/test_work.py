"""Orders are carried out once each, one server's in their order, and told until taken."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence

from innkeeper.entrypoints.agent.drivers.driver import DriverFailed, HostFacts, Order
from innkeeper.entrypoints.agent.work import Workshop

WITHIN_S = 60.0


class Recorder:
    """A driver that writes down what it is told, and waits where it is told to."""

    def __init__(self) -> None:
        self.done: list[tuple[str, str]] = []
        self.may_go = threading.Event()
        self.may_go.set()
        self.accident: Exception | None = None
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
        if self.accident is not None:
            raise self.accident
        self.done.append(("build", order.server_id))

    def destroy(self, order: Order) -> None:
        self.done.append(("destroy", order.server_id))

    def change(self, order: Order) -> None:
        self.done.append((order.kind, order.server_id))

    def interrupt(self, order: Order) -> None:
        self.done.append((order.kind, order.server_id))

    def close(self) -> None:
        self.is_closed = True


def order(number: int, server: str = "s1", kind: str = "build") -> Order:
    return Order(number, kind, "h1", server, {})


def eventually(is_so: Callable[[], bool]) -> None:
    gone_by = threading.Event()
    for _ in range(int(WITHIN_S / 0.01)):
        if is_so():
            return
        gone_by.wait(0.01)
    raise AssertionError("It never came to be.")


def test_an_order_given_again_is_not_begun_again() -> None:
    driver = Recorder()
    driver.may_go.clear()
    workshop = Workshop(driver, 2)
    assert workshop.take([order(1), order(2, "s2")]) == 2
    assert workshop.take([order(1), order(2, "s2")]) == 0
    driver.may_go.set()
    eventually(lambda: len(workshop.results(10)) == 2)
    # Done, but not taken by the service yet.
    assert workshop.take([order(1)]) == 0
    workshop.close()
    assert sorted(driver.done) == [("build", "s1"), ("build", "s2")]


def test_results_stay_until_they_are_taken() -> None:
    workshop = Workshop(Recorder(), 1)
    workshop.take([order(1)])
    eventually(lambda: len(workshop.results(10)) == 1)
    results = workshop.results(10)
    assert workshop.results(10) == results == [{"order_id": 1, "ok": True}]
    workshop.told(results)
    assert workshop.results(10) == []
    assert workshop.take([order(1)]) == 1
    workshop.close()


def test_one_servers_orders_come_one_after_the_other() -> None:
    driver = Recorder()
    driver.may_go.clear()
    workshop = Workshop(driver, 4)
    workshop.take([order(1), order(2, kind="destroy"), order(3)])
    assert driver.done == []
    driver.may_go.set()
    eventually(lambda: len(workshop.results(10)) == 3)
    assert driver.done == [("build", "s1"), ("destroy", "s1"), ("build", "s1")]
    workshop.close()


def test_a_closed_workshop_begins_nothing() -> None:
    workshop = Workshop(Recorder(), 1)
    workshop.close()
    assert workshop.take([order(1)]) == 0


def outcome(driver: Recorder, given: Order) -> dict[str, object]:
    workshop = Workshop(driver, 1)
    workshop.take([given])
    eventually(lambda: len(workshop.results(10)) == 1)
    (result,) = workshop.results(10)
    workshop.close()
    return result


def test_a_failure_is_told_in_the_drivers_words() -> None:
    driver = Recorder()
    driver.accident = DriverFailed("No power.")
    assert outcome(driver, order(1)) == {"order_id": 1, "ok": False, "fault": "No power."}


def test_what_cannot_be_sent_is_left_out_of_a_failure() -> None:
    driver = Recorder()
    driver.accident = DriverFailed("a\0b\ud800" + "x" * 5000)
    fault = str(outcome(driver, order(1))["fault"])
    assert fault == "ab?" + "x" * 3997


def test_a_dropped_result_is_not_told_and_its_order_not_begun_again() -> None:
    workshop = Workshop(Recorder(), 1)
    workshop.take([order(1)])
    eventually(lambda: len(workshop.results(10)) == 1)
    workshop.drop(workshop.results(10)[0])
    assert workshop.results(10) == []
    assert workshop.take([order(1)]) == 0
    workshop.close()


def test_an_accident_is_told_without_its_words() -> None:
    driver = Recorder()
    driver.accident = ZeroDivisionError("secret")
    result = outcome(driver, order(1))
    assert result["ok"] is False
    assert "secret" not in str(result["fault"])


def test_an_order_of_an_unknown_kind_fails() -> None:
    assert outcome(Recorder(), order(1, kind="paint"))["ok"] is False


def test_orders_that_were_not_begun_are_dropped_when_the_agent_stops() -> None:
    driver = Recorder()
    driver.may_go.clear()
    workshop = Workshop(driver, 1)
    workshop.take([order(1), order(2, "s2"), order(3, kind="destroy")])
    closing = threading.Thread(target=workshop.close)
    closing.start()
    eventually(lambda: workshop.take([order(4, "s4")]) == 0)
    driver.may_go.set()
    closing.join(WITHIN_S)
    assert driver.done == [("build", "s1")]
    assert [each["order_id"] for each in workshop.results(10)] == [1]


def test_who_interrupts_does_not_wait_for_what_is_under_way() -> None:
    driver = Recorder()
    driver.may_go.clear()
    workshop = Workshop(driver, 2)
    assert workshop.take([order(1), order(2, kind="stop"), order(3, kind="abort")]) == 3
    eventually(lambda: driver.done == [("abort", "s1")])
    eventually(lambda: [each["order_id"] for each in workshop.results(9)] == [3])
    assert workshop.take([order(3, kind="abort")]) == 0
    workshop.told(workshop.results(9))
    driver.may_go.set()
    eventually(lambda: len(workshop.results(9)) == 2)
    assert driver.done == [("abort", "s1"), ("build", "s1"), ("stop", "s1")]
    workshop.close()
