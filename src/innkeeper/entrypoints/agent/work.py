"""Executes orders.

Orders for different servers run in parallel, and orders for one server in sequence. An order that
interrupts others runs at once.

Always true: if the service sends an order again while the order runs or its result is pending, the
order is not started again. A result is kept until the service has accepted or rejected it.

An order may be executed more than once. After a lost response or a crash of the agent, the service
sends the order again, and the agent executes it again. So drivers are idempotent.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any

import structlog

from innkeeper.domain.orders import OrderKind
from innkeeper.entrypoints.agent.drivers.driver import Driver, DriverFailed, Order

LOG = structlog.get_logger("innkeeper.agent")
FAULT_MAX = 4000


class OrderExecutor:
    """Executes orders in threads, and keeps the results that are not reported yet."""

    def __init__(self, driver: Driver, threads: int) -> None:
        self._driver = driver
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="work")
        # The lock is reentrant, because the callback of an order that has already ended runs in the
        # submitting thread.
        self._lock = threading.RLock()
        self._known: set[int] = set()
        self._queues: dict[str, deque[Order]] = {}
        self._results: dict[int, dict[str, Any]] = {}
        self._has_results = threading.Event()
        self._is_closed = False

    def submit(self, orders: Iterable[Order]) -> int:
        """Accept the orders that are not known yet, and return the number of accepted orders."""
        accepted = 0
        with self._lock:
            for order in orders:
                if order.order_id in self._known or self._is_closed:
                    continue
                self._known.add(order.order_id)
                accepted += 1
                if order.kind in OrderKind.BESIDE:
                    self._start(order, self._store_result)
                    continue
                queue = self._queues.setdefault(order.server_id, deque())
                queue.append(order)
                if len(queue) == 1:
                    self._start(order, self._finish)
        return accepted

    def _start(self, order: Order, done: Callable[[Order, Future[None]], None]) -> None:
        future = self._pool.submit(carry_out, self._driver, order)
        future.add_done_callback(partial(done, order))

    def _finish(self, order: Order, future: Future[None]) -> None:
        """Store the result of an order, and start the server's next order."""
        if future.cancelled():
            # The agent is stopping, and its successor gets the order again.
            return
        with self._lock:
            self._store_result(order, future)
            queue = self._queues[order.server_id]
            queue.popleft()
            if not queue:
                del self._queues[order.server_id]
            elif not self._is_closed:
                self._start(queue[0], self._finish)

    def _store_result(self, order: Order, future: Future[None]) -> None:
        if future.cancelled():
            return
        with self._lock:
            self._results[order.order_id] = result_of(order, future.exception())
            self._has_results.set()

    def results(self, most: int) -> list[dict[str, Any]]:
        """Return the oldest pending results, which stay pending until :meth:`acknowledge`."""
        with self._lock:
            pending = list(self._results.values())[:most]
            if not pending:
                self._has_results.clear()
        return pending

    def acknowledge(self, results: Sequence[Mapping[str, Any]]) -> None:
        """Forget results that the service has accepted."""
        with self._lock:
            for each in results:
                del self._results[each["order_id"]]
                self._known.discard(each["order_id"])

    def drop(self, result: Mapping[str, Any]) -> None:
        """Forget a result that the service has rejected. The order is not started again."""
        with self._lock:
            del self._results[result["order_id"]]

    def wait_for_results(self, timeout_s: float) -> None:
        """Block until a result is pending or the timeout has passed."""
        self._has_results.wait(timeout_s)

    def close(self) -> None:
        """Start no more orders, and wait for running orders."""
        with self._lock:
            self._is_closed = True
        self._pool.shutdown(wait=True, cancel_futures=True)


def carry_out(driver: Driver, order: Order) -> None:
    """Let the driver execute an order. Raises :class:`DriverFailed` if the driver fails."""
    if order.kind == OrderKind.BUILD:
        driver.build(order)
    elif order.kind == OrderKind.DESTROY:
        driver.destroy(order)
    elif order.kind in OrderKind.BESIDE:
        driver.interrupt(order)
    elif order.kind in OrderKind.CHANGES:
        driver.change(order)
    elif order.kind in OrderKind.VOLUMES:
        driver.change_volume(order)
    else:
        raise DriverFailed(f"This agent does not know orders of the kind {order.kind!r}.")


def result_of(order: Order, error: BaseException | None) -> dict[str, Any]:
    """Return the result of an order to report.

    After an unexpected error, the order counts as failed.
    """
    result: dict[str, Any] = {"order_id": order.order_id, "ok": error is None}
    if isinstance(error, DriverFailed):
        # The protocol accepts neither NULs nor invalid Unicode.
        plain = str(error).replace("\0", "").encode("utf-8", "replace").decode("utf-8")
        result["fault"] = plain[:FAULT_MAX]
    elif error is not None:
        LOG.error("driver_accident", order=order.order_id, exc_info=error)
        result["fault"] = "The driver failed unexpectedly; the agent's log has the details."
    return result


def order_of(body: dict[str, Any]) -> Order:
    """Convert a JSON order of the service to an :class:`Order`."""
    return Order(body["id"], body["kind"], body["host"], body["server_id"], body["body"])
