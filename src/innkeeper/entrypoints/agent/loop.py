"""The agent's life: register, be heard, take work, tell results, and begin anew when needed.

Always true: nothing that the service or the driver does ends the agent. It goes on trying, less
and less often up to a limit, until it is told to stop; what it carries out meanwhile is not
lost. An agent that cannot look at its machines, or cannot begin work or tell of it, is not
heard: its hosts go down, and nobody is placed on them.
"""

from __future__ import annotations

import threading
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import structlog

from innkeeper.domain.errors import Invalid, NotFound, Refusal, TooLarge
from innkeeper.entrypoints.agent import cutting, report
from innkeeper.entrypoints.agent.drivers.driver import Driver
from innkeeper.entrypoints.agent.work import Workshop, order_of

LOG = structlog.get_logger("innkeeper.agent")
RETRY_FIRST_S = 0.2
RETRY_MAX_S = 10.0
LOOK_S = 1.0
"""How often to look whether there is something to do, where nothing tells."""
RESULTS_MAX = 500
AILING_AFTER = 3
"""Accidents of its own in a row, after which an agent falls silent. One strange answer is none
of the hosts' business."""
DRAIN_S = 5.0
"""How long an agent that has stopped working goes on telling results; what is left is asked of
the next one again."""


class ServiceApi(Protocol):
    """The service as an agent sees it; each call raises a refusal or ends in time."""

    def register(self, name: str, driver: str) -> Mapping[str, Any]:
        """Make the agent known."""

    def report(self, agent_id: str, hosts: Sequence[Mapping[str, Any]]) -> None:
        """Report hosts."""

    def beat(self, agent_id: str) -> None:
        """Be heard."""

    def take_work(self, agent_id: str, after: int, wait_s: float) -> list[dict[str, Any]]:
        """Orders behind a number, waiting for some."""

    def tell_results(self, agent_id: str, results: Sequence[Mapping[str, Any]]) -> None:
        """Tell how orders ended."""

    def close(self) -> None:
        """End all calls."""


def backoff_s(attempt: int, name: str) -> float:
    """How long to wait after the ``attempt``-th failure in a row, the first being 0.

    Agents with different names wait differently: those that lost the same service do not all
    come back at the same moment.
    """
    spread = 0.75 + (zlib.crc32(f"{name}/{attempt}".encode()) % 1000) / 2000
    waited: float = min(RETRY_MAX_S, RETRY_FIRST_S * 2 ** min(attempt, 10)) * spread
    return waited


class AgentLoop:
    """One agent with its hosts: three threads, and those that carry out orders."""

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
        self._workshop = Workshop(driver, threads)
        self._is_registered = threading.Event()
        # Nothing is carried out any more; nothing is told any more.
        self._is_idle = threading.Event()
        self._is_over = threading.Event()
        self._telling = threading.Lock()
        self._accidents: dict[str, int] = {}
        self._agent_id = ""
        self._after = 0
        self._interval_s = RETRY_MAX_S
        self._beats = 0
        self._beats_per_report = 1
        self._poll_s = RETRY_MAX_S

    def run(self) -> None:
        """Live until told to stop."""
        steps = {"work": self._take_work, "results": self._tell_results, "beat": self._beat}
        threads = {
            name: threading.Thread(target=self._keep, args=(name, step), name=name, daemon=True)
            for name, step in steps.items()
        }
        for each in threads.values():
            each.start()
        self._stop.wait()
        LOG.info("agent_stopping", agent=self._name)
        # What ends in the meantime is told in the meantime.
        self._workshop.close()
        self._is_idle.set()
        threads["results"].join(DRAIN_S)
        self._is_over.set()
        # A question for work would go on being answered for as long as the service likes.
        self._service.close()
        self._driver.close()

    def _keep(self, name: str, step: Callable[[], bool]) -> None:
        """Repeat a step, waiting longer after each failure, until it says that all is done."""
        attempt = 0
        is_on = True
        while is_on:
            try:
                is_on = step()
                attempt = 0
                self._accidents[name] = 0
            except Refusal as refusal:
                if isinstance(refusal, NotFound):
                    # The service knows no such agent: it has another database than before.
                    self._is_registered.clear()
                if not self._stop.is_set():
                    LOG.warning("step_failed", step=name, reason=refusal.message)
                is_on = self._pause(name, attempt)
                attempt += 1
            except Exception as error:
                # A driver may fail in any way, and so may whatever reads a strange answer.
                LOG.error("step_accident", step=name, exc_info=error)
                self._accidents[name] = self._accidents.get(name, 0) + 1
                is_on = self._pause(name, attempt)
                attempt += 1

    def _ailing(self) -> list[str]:
        """The steps that fail again and again through no fault of the service."""
        return [name for name, count in self._accidents.items() if count >= AILING_AFTER]

    def _pause(self, name: str, attempt: int) -> bool:
        # Results go on being told when nothing else goes on.
        end = self._is_over if name == "results" else self._stop
        return not end.wait(backoff_s(attempt, self._name))

    def _register(self) -> None:
        # No result may be told between looking at the servers and reporting them: the service
        # would miss a server that it was just told of, and take it for lost.
        with self._telling:
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
        """Say again what the hosts are capable of: what is old counts as unknown."""
        for part in report.parts(self._driver.hosts(), None):
            self._service.report(self._agent_id, part)

    def _take_work(self) -> bool:
        if not self._is_registered.is_set():
            self._register()
        # After an accident no long answer is waited for: it would be long until one is heard.
        wait_s = 0.0 if self._accidents.get("work") else self._poll_s
        orders = self._service.take_work(self._agent_id, self._after, wait_s)
        self._workshop.take(order_of(each) for each in orders)
        # Only what is behind the newest is asked for, or orders under way would be given again
        # at once; now and then all is, since a number may be committed after a higher one.
        self._after = max((each["id"] for each in orders), default=0)
        return not self._stop.is_set()

    def _tell_results(self) -> bool:
        # Looked at before the results: what ends later is told the next time.
        may_end = self._is_idle.is_set()
        self._workshop.wait_for_results(RETRY_FIRST_S if self._stop.is_set() else LOOK_S)
        results = self._workshop.results(RESULTS_MAX)
        if not results:
            return not may_end
        with self._telling:
            if self._is_registered.is_set():
                self._tell(next(cutting.parts(results, RESULTS_MAX)))
                return True
        return not self._is_over.wait(RETRY_FIRST_S)

    def _tell(self, results: Sequence[Mapping[str, Any]]) -> None:
        try:
            self._service.tell_results(self._agent_id, results)
        except (Invalid, TooLarge) as refusal:
            # One of them is at fault, and must not keep the others from being told.
            if len(results) == 1:
                order = results[0]["order_id"]
                LOG.error("result_dropped", order=order, reason=refusal.message)
                self._workshop.drop(results[0])
                return
            for each in results:
                self._tell([each])
            return
        self._workshop.told(results)

    def _beat(self) -> bool:
        if not self._is_registered.wait(LOOK_S):
            return not self._stop.is_set()
        ailing = self._ailing()
        if ailing:
            LOG.error("not_heard", agent=self._name, ailing=ailing)
            return not self._stop.wait(LOOK_S)
        self._service.beat(self._agent_id)
        self._beats += 1
        if self._beats % self._beats_per_report == 0:
            self._report_hosts()
        return not self._stop.wait(self._interval_s)
