"""Carries out orders: different servers' at once, one server's in their order, each once.

Always true: an order that is under way or whose result was not taken yet is not begun again,
however often it is given; the results stay here until the service has taken them.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import structlog

from innkeeper.entrypoints.agent.drivers.driver import Driver, DriverFailed, Order

LOG = structlog.get_logger("innkeeper.agent")
BUILD = "build"
DESTROY = "destroy"
FAULT_MAX = 4000


class Workshop:
    """Threads that carry out orders, and the results that wait to be told."""

    def __init__(self, driver: Driver, threads: int) -> None:
        self._driver = driver
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="work")
        self._lock = threading.Lock()
        self._known: set[int] = set()
        self._queues: dict[str, deque[Order]] = {}
        self._results: dict[int, dict[str, Any]] = {}
        self._has_results = threading.Event()
        self._is_closed = False

    def take(self, orders: Iterable[Order]) -> int:
        """Begin orders that are new here; gives how many."""
        begun = 0
        with self._lock:
            for order in orders:
                if order.order_id in self._known or self._is_closed:
                    continue
                self._known.add(order.order_id)
                begun += 1
                queue = self._queues.get(order.server_id)
                if queue is not None:
                    queue.append(order)
                    continue
                self._queues[order.server_id] = deque([order])
                self._pool.submit(self._work_off, order.server_id)
        return begun

    def _work_off(self, server_id: str) -> None:
        order = self._next(server_id)
        while order is not None:
            result = carry_out(self._driver, order)
            with self._lock:
                self._results[order.order_id] = result
                self._queues[server_id].popleft()
                self._has_results.set()
            order = self._next(server_id)

    def _next(self, server_id: str) -> Order | None:
        with self._lock:
            queue = self._queues[server_id]
            if queue:
                return queue[0]
            del self._queues[server_id]
            return None

    def results(self, most: int) -> list[dict[str, Any]]:
        """Results that wait to be told, oldest first; they stay until :meth:`told`."""
        with self._lock:
            waiting = list(self._results.values())[:most]
            if not waiting:
                self._has_results.clear()
        return waiting

    def told(self, results: Sequence[dict[str, Any]]) -> None:
        """Forget results that the service has taken."""
        with self._lock:
            for each in results:
                del self._results[each["order_id"]]
                self._known.discard(each["order_id"])

    def wait_for_results(self, timeout_s: float) -> None:
        """Sleep until there is something to tell, or the time is over."""
        self._has_results.wait(timeout_s)

    def close(self) -> None:
        """Begin nothing more, and wait for what is under way."""
        with self._lock:
            self._is_closed = True
        self._pool.shutdown(wait=True, cancel_futures=True)


def carry_out(driver: Driver, order: Order) -> dict[str, Any]:
    """Do what an order says; a driver's accident is the order's failure, not the agent's."""
    result: dict[str, Any] = {"order_id": order.order_id, "ok": True}
    try:
        if order.kind == BUILD:
            driver.build(order)
        elif order.kind == DESTROY:
            driver.destroy(order)
        else:
            raise DriverFailed(f"This agent does not know orders of the kind {order.kind!r}.")
    except DriverFailed as failed:
        result.update(ok=False, fault=str(failed)[:FAULT_MAX])
    except Exception as error:
        LOG.error("driver_accident", order=order.order_id, exc_info=error)
        result.update(ok=False, fault="The driver had an accident; the agent's log tells more.")
    return result


def order_of(body: dict[str, Any]) -> Order:
    """An order as the service sends it."""
    return Order(body["id"], body["kind"], body["host"], body["server_id"], body["body"])
