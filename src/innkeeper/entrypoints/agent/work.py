"""Carries out orders: different servers' at once, one server's in their order, but for those
that interrupt what is under way.

Always true: an order that is under way or whose result was not taken yet is not begun again,
however often it is given; the results stay here until the service has taken them, or has
refused to.

May be false: that an order is carried out once. Where an answer is lost, or an agent dies, the
order is given again and carried out again; drivers know that.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any

import structlog

from innkeeper.entrypoints.agent.drivers.driver import Driver, DriverFailed, Order, OrderName

LOG = structlog.get_logger("innkeeper.agent")
FAULT_MAX = 4000


class Workshop:
    """Threads that carry out orders, and the results that wait to be told."""

    def __init__(self, driver: Driver, threads: int) -> None:
        self._driver = driver
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="work")
        # Taken again by the same thread where an order ends before its end is waited for.
        self._lock = threading.RLock()
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
                if order.kind in OrderName.BESIDE:
                    self._begin_beside(order)
                    continue
                queue = self._queues.setdefault(order.server_id, deque())
                queue.append(order)
                if len(queue) == 1:
                    self._begin(order)
        return begun

    def _begin_beside(self, order: Order) -> None:
        # It is about what is under way, and would come too late behind it.
        future = self._pool.submit(carry_out, self._driver, order)
        future.add_done_callback(partial(self._keep, order))

    def _begin(self, order: Order) -> None:
        future = self._pool.submit(carry_out, self._driver, order)
        future.add_done_callback(partial(self._end, order))

    def _end(self, order: Order, future: Future[None]) -> None:
        if future.cancelled():
            # The agent is stopping; the order is given again to the next one.
            return
        with self._lock:
            self._keep(order, future)
            queue = self._queues[order.server_id]
            queue.popleft()
            if not queue:
                del self._queues[order.server_id]
            elif not self._is_closed:
                self._begin(queue[0])

    def _keep(self, order: Order, future: Future[None]) -> None:
        if future.cancelled():
            return
        with self._lock:
            self._results[order.order_id] = result_of(order, future.exception())
            self._has_results.set()

    def results(self, most: int) -> list[dict[str, Any]]:
        """Results that wait to be told, oldest first; they stay until :meth:`told`."""
        with self._lock:
            waiting = list(self._results.values())[:most]
            if not waiting:
                self._has_results.clear()
        return waiting

    def told(self, results: Sequence[Mapping[str, Any]]) -> None:
        """Forget results that the service has taken."""
        with self._lock:
            for each in results:
                del self._results[each["order_id"]]
                self._known.discard(each["order_id"])

    def drop(self, result: Mapping[str, Any]) -> None:
        """Forget a result that the service does not take; its order is not begun again."""
        with self._lock:
            del self._results[result["order_id"]]

    def wait_for_results(self, timeout_s: float) -> None:
        """Sleep until there is something to tell, or the time is over."""
        self._has_results.wait(timeout_s)

    def close(self) -> None:
        """Begin nothing more, and wait for what is under way."""
        with self._lock:
            self._is_closed = True
        self._pool.shutdown(wait=True, cancel_futures=True)


def carry_out(driver: Driver, order: Order) -> None:
    """Do what an order says; raises :class:`DriverFailed` where that cannot be done."""
    if order.kind == OrderName.BUILD:
        driver.build(order)
    elif order.kind == OrderName.DESTROY:
        driver.destroy(order)
    elif order.kind in OrderName.BESIDE:
        driver.interrupt(order)
    elif order.kind in OrderName.CHANGES:
        driver.change(order)
    else:
        raise DriverFailed(f"This agent does not know orders of the kind {order.kind!r}.")


def result_of(order: Order, error: BaseException | None) -> dict[str, Any]:
    """What to tell of an order; a driver's accident is the order's failure, not the agent's."""
    result: dict[str, Any] = {"order_id": order.order_id, "ok": error is None}
    if isinstance(error, DriverFailed):
        result["fault"] = _plain(str(error))[:FAULT_MAX]
    elif error is not None:
        LOG.error("driver_accident", order=order.order_id, exc_info=error)
        result["fault"] = "The driver had an accident; the agent's log tells more."
    return result


def _plain(text: str) -> str:
    """What can be sent of a text: no NULs, and nothing that is not Unicode."""
    return text.replace("\0", "").encode("utf-8", "replace").decode("utf-8")


def order_of(body: dict[str, Any]) -> Order:
    """An order as the service sends it."""
    return Order(body["id"], body["kind"], body["host"], body["server_id"], body["body"])
