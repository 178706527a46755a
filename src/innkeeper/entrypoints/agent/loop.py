"""The agent's main loop, which registers, sends heartbeats, polls for work and reports results.

Always true: no failure of the service or the driver ends the agent. The agent retries with backoff
until it is asked to stop, and loses no running orders. If a step of the agent crashes again and
again, the agent sends no heartbeats. The service then regards its hosts as down, and places no
servers on them.
"""

from __future__ import annotations

import threading
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import structlog

from innkeeper.domain.errors import Invalid, NotFound, Refusal, TooLarge
from innkeeper.entrypoints.agent import report
from innkeeper.entrypoints.agent.drivers.driver import Driver
from innkeeper.entrypoints.agent.work import OrderExecutor, order_of

LOG = structlog.get_logger("innkeeper.agent")
RETRY_FIRST_S = 0.2
RETRY_MAX_S = 10.0
LOOK_S = 1.0
"""The seconds between two checks for changes that do not set an event."""
RESULTS_MAX = 500
AILING_AFTER = 3
"""The number of consecutive crashes of a step after which heartbeats stop. With a smaller number, a
single strange response would take the hosts down."""
DRAIN_S = 5.0
"""The seconds for which a stopping agent still reports results. The service sends orders without a
reported result again, to the agent's successor."""


class ServiceApi(Protocol):
    """The service's API for agents. Each call ends in time, or raises an error.

    See :class:`innkeeper.clients.agents.AgentApi`.
    """

    def register(self, name: str, driver: str) -> Mapping[str, Any]: ...
    def report(self, agent_id: str, hosts: Sequence[Mapping[str, Any]]) -> None: ...
    def heartbeat(self, agent_id: str) -> None: ...
    def take_work(self, agent_id: str, after: int, wait_s: float) -> list[dict[str, Any]]: ...
    def report_results(self, agent_id: str, results: Sequence[Mapping[str, Any]]) -> None: ...
    def close(self) -> None: ...


def backoff_s(attempt: int, name: str) -> float:
    """Return the seconds to wait after a failure. ``attempt`` counts consecutive failures from 0.

    The pause depends on the agent's name, so that not all agents of a service retry at the same
    moment.
    """
    spread = 0.75 + (zlib.crc32(f"{name}/{attempt}".encode()) % 1000) / 2000
    pause_s: float = min(RETRY_MAX_S, RETRY_FIRST_S * 2 ** min(attempt, 10)) * spread
    return pause_s


class AgentLoop:
    """Runs one agent, with three threads and a pool of threads that execute orders."""

    def __init__(
        self,
        service: ServiceApi,
        driver: Driver,
        *,
        name: str,
        driver_name: str,
        threads: int,
        stop: threading.Event,
    ) -> None:
        self._service = service
        self._driver = driver
        self._name = name
        self._driver_name = driver_name
        self._stop = stop
        self._executor = OrderExecutor(driver, threads)
        self._is_registered = threading.Event()
        # These events are set while the agent stops. Idle means that no order runs any more, and
        # over means that no result is reported any more.
        self._is_idle = threading.Event()
        self._is_over = threading.Event()
        self._reporting = threading.Lock()
        self._crashes: dict[str, int] = {}
        self._agent_id = ""
        self._after = 0
        self._interval_s = RETRY_MAX_S
        self._beats = 0
        self._beats_per_report = 1
        self._poll_s = RETRY_MAX_S

    def run(self) -> None:
        """Run until the agent is asked to stop."""
        steps = {"work": self._poll_work, "results": self._report_results, "beat": self._beat}
        threads = {
            name: threading.Thread(target=self._repeat, args=(name, step), name=name, daemon=True)
            for name, step in steps.items()
        }
        for each in threads.values():
            each.start()
        self._stop.wait()
        LOG.info("agent_stopping", agent=self._name)
        # Results are still reported while the remaining orders end.
        self._executor.close()
        self._is_idle.set()
        threads["results"].join(DRAIN_S)
        self._is_over.set()
        # A poll may still be open, so close the connections to end the poll.
        self._service.close()
        self._driver.close()

    def _repeat(self, name: str, step: Callable[[], bool]) -> None:
        """Repeat a step until it returns False, with backoff after failures."""
        attempt = 0
        is_on = True
        while is_on:
            try:
                is_on = step()
                attempt = 0
                self._crashes[name] = 0
            except Refusal as refusal:
                if isinstance(refusal, NotFound):
                    # The service no longer knows this agent, because its database was replaced.
                    self._is_registered.clear()
                if not self._stop.is_set():
                    LOG.warning("step_failed", step=name, reason=refusal.message)
                is_on = self._pause(name, attempt)
                attempt += 1
            except Exception as error:
                # A driver or the parser of a response may fail with any error.
                LOG.error("step_accident", step=name, exc_info=error)
                self._crashes[name] = self._crashes.get(name, 0) + 1
                is_on = self._pause(name, attempt)
                attempt += 1

    def _ailing(self) -> list[str]:
        return [name for name, count in self._crashes.items() if count >= AILING_AFTER]

    def _pause(self, name: str, attempt: int) -> bool:
        # Results are still reported when everything else has stopped.
        end = self._is_over if name == "results" else self._stop
        return not end.wait(backoff_s(attempt, self._name))

    def _register(self) -> None:
        # No result may be reported between the listing of servers and the sending of the list.
        # Otherwise, a server whose build was just reported would be missing from the list, and the
        # service would consider the server lost.
        with self._reporting:
            hosts, servers = self._driver.hosts(), self._driver.servers()
            not_running = self._driver.not_running()
            agent = self._service.register(self._name, self._driver_name)
            for part in report.parts(hosts, servers, not_running):
                self._service.report(agent["id"], part)
        self._interval_s = float(agent["heartbeat_interval_s"])
        self._poll_s = float(agent["work_poll_s"])
        reports_s = float(agent["report_interval_s"])
        self._beats = 0
        self._beats_per_report = max(1, int(reports_s / self._interval_s))
        self._agent_id = agent["id"]
        self._after = 0
        self._is_registered.set()
        LOG.info("agent_registered", agent=self._name, id=self._agent_id, hosts=len(hosts))

    def _report_hosts(self) -> None:
        """Report the hosts again, because outdated capabilities count as unknown."""
        for part in report.parts(self._driver.hosts(), None):
            self._service.report(self._agent_id, part)

    def _poll_work(self) -> bool:
        if not self._is_registered.is_set():
            self._register()
        # After a crash, do not use a long poll, because heartbeats resume only after a poll has
        # succeeded.
        wait_s = 0.0 if self._crashes.get("work") else self._poll_s
        orders = self._service.take_work(self._agent_id, self._after, wait_s)
        self._executor.submit(order_of(each) for each in orders)
        # With the number of the newest order, the service does not send running orders again at
        # once. An empty response resets the number, because an order with a lower number may be
        # committed later.
        self._after = max((each["id"] for each in orders), default=0)
        return not self._stop.is_set()

    def _report_results(self) -> bool:
        # Read this flag before the results. If an order ends in between, the next round reports its
        # result.
        may_end = self._is_idle.is_set()
        self._executor.wait_for_results(RETRY_FIRST_S if self._stop.is_set() else LOOK_S)
        results = self._executor.results(RESULTS_MAX)
        if not results:
            return not may_end
        with self._reporting:
            if self._is_registered.is_set():
                self._report(next(report.split(results, RESULTS_MAX)))
                return True
        return not self._is_over.wait(RETRY_FIRST_S)

    def _report(self, results: Sequence[Mapping[str, Any]]) -> None:
        try:
            self._service.report_results(self._agent_id, results)
        except (Invalid, TooLarge) as refusal:
            # A rejected result must not hold up other results, so report the results one by one.
            if len(results) == 1:
                order = results[0]["order_id"]
                LOG.error("result_dropped", order=order, reason=refusal.message)
                self._executor.drop(results[0])
                return
            for each in results:
                self._report([each])
            return
        self._executor.acknowledge(results)

    def _beat(self) -> bool:
        if not self._is_registered.wait(LOOK_S):
            return not self._stop.is_set()
        ailing = self._ailing()
        if ailing:
            LOG.error("not_heard", agent=self._name, ailing=ailing)
            return not self._stop.wait(LOOK_S)
        self._service.heartbeat(self._agent_id)
        self._beats += 1
        if self._beats % self._beats_per_report == 0:
            self._report_hosts()
        return not self._stop.wait(self._interval_s)
