"""Contact, poll and measure pods (clouds behind this service), and choose pods for projects.

Always true: each request to a pod has a time limit from the settings. A pod that does not answer
delays neither the work on other pods nor the requests of users.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, replace
from datetime import timedelta

import structlog

from innkeeper.clients.pod_logins import PodLogin
from innkeeper.clients.pods import PodClient, PodSilent, WireOf
from innkeeper.domain.errors import Conflict, NotFound
from innkeeper.domain.ids import Clock, IdSource
from innkeeper.domain.pod_settings import Podding
from innkeeper.domain.pods import Pod, PodBinding, PodRequest
from innkeeper.domain.slices import Settings
from innkeeper.engine import callers, metrics
from innkeeper.engine.engine import Engine
from innkeeper.engine.lateness import Lateness
from innkeeper.engine.pods import measuring
from innkeeper.engine.retry import BINDING_ATTEMPTS_MAX, BINDINGS, again
from innkeeper.scheduling.pod_choosing import PodPolicy
from innkeeper.store import periodic
from innkeeper.store.transactions import Tx
from innkeeper.systems.identity.secret_boxes import SecretBox
from innkeeper.systems.pods import bindings, pods, usage
from innkeeper.systems.pods.audit import SETTLE_TASK
from innkeeper.systems.pods.policy import policy_of

LOG = structlog.get_logger("innkeeper.pods")
POLLS, MEASURES, SETTLES, CHECKS = "pod_polls", "pod_measures", SETTLE_TASK, "pod_checks"
LOOK_PERIOD_S, SETTLE_PERIOD_S, CHECK_PERIOD_S = 60.0, 5.0, 5.0


@dataclass(frozen=True, slots=True)
class PodClouds:
    """Access to the pods, for use in one event loop.

    ``late`` remembers the pods that did not answer a list in time.
    """

    engine: Engine
    client: PodClient
    box: SecretBox
    podding: Podding
    policy: PodPolicy
    clock: Clock
    ids: IdSource
    late: Lateness

    def beside(self) -> PodClouds:
        """Return a copy for another event loop, with its own connections."""
        return replace(self, client=self.client.beside())

    def note_late(self, pod: Pod) -> None:
        """Remember that this pod did not answer a list in time."""
        self.late.note(pod.uuid, self.clock())

    def is_awaited(self, pod: Pod) -> bool:
        """Return whether lists ask a pod. A pod that is down or late is left out."""
        is_late = self.late.is_late(pod.uuid, pod.health.last_seen_at)
        return pod.health.is_up is not False and not is_late

    async def contact(self, pod: Pod, password: str) -> float:
        """Log in to a pod, and send its Compute API a request.

        Return how many milliseconds this took.

        ``pod`` may be a pod that is not stored yet. Raises :class:`PodSilent`.
        """
        trial = replace(login_of(pod, password), uuid="", name="")
        client = self.client.beside({})
        begun_s = time.perf_counter()
        try:
            await measuring.poll(client, trial, self.podding.pod_request_timeout_s)
        finally:
            await client.close()
        return (time.perf_counter() - begun_s) * 1000

    async def login(self, uuid: str) -> PodLogin:
        """Return the login of this service at a pod. Raises :class:`NotFound`."""

        def look(tx: Tx) -> PodLogin:
            pod = pods.get(tx, uuid)
            return login_of(pod, pods.password_of(tx, pod, self.box))

        return await self.engine.read(look)

    async def own_login(self, pod: Pod) -> PodLogin:
        """Return the login of this service at a pod.

        A missing login raises :class:`PodSilent`, the error for pods that do not answer.
        """
        try:
            return await self.login(pod.uuid)
        except (Conflict, NotFound) as error:
            raise PodSilent(error.message) from error

    async def bind(self, resolve: Callable[[Tx], PodRequest]) -> tuple[PodBinding, bool]:
        """Return the active binding of a project to a pod, and whether the binding is new.

        ``resolve`` returns the request, which has the project. If the project keeps its binding,
        nothing is written. Raises :class:`UnknownPlace` for an unknown availability zone, and
        :class:`NoPod`.
        """
        kept = await self.engine.read(
            lambda tx: bindings.choose(tx, self.policy, resolve(tx)).binding
        )
        if kept is not None:
            return kept, False
        now = self.clock()

        def work(tx: Tx) -> tuple[PodBinding, bool]:
            return bindings.bind(tx, self.policy, resolve(tx), ids=self.ids, now=now)

        return await again(lambda: self.engine.write(work), BINDINGS, BINDING_ATTEMPTS_MAX)

    async def poll(self) -> int:
        """Poll all pods, if it is this process's turn.

        Return the number of pods that went up or down.
        """
        period_s = self.podding.pod_poll_interval_s
        return await self._each_in_turn(POLLS, period_s, pods.every, self.poll_one)

    async def measure(self) -> int:
        """Measure the pods that are due, if it is this process's turn. Return their number.

        For the other pods, a gateway counts the servers and volumes that were placed since the last
        measurement.
        """
        now = self.clock()
        if self.podding.role == "gateway":
            await self.engine.write(lambda tx: usage.count_placed(tx, now))

        def due(tx: Tx) -> list[Pod]:
            return usage.due(tx, self.podding, now)

        count = await self._each_in_turn(
            MEASURES, measure_period_s(self.podding), due, self.measure_one
        )
        if count:
            # Each run deletes more measurements than it adds. So it also removes a backlog that was
            # left by a long pause.
            await self.engine.write(lambda tx: usage.prune(tx, self.podding, now))
        return count

    async def poll_one(self, pod: Pod) -> bool:
        """Poll a pod. Return whether the pod went up or down."""
        begun_s = time.perf_counter()
        fault: str | None = None
        try:
            login = await self.own_login(pod)
            await measuring.poll(self.client, login, self.podding.pod_request_timeout_s)
        except PodSilent as error:
            fault = str(error)
        latency_ms = (time.perf_counter() - begun_s) * 1000
        after = await self._record(pod, fault, latency_ms)
        if after is None or after.health.is_up == pod.health.is_up:
            return False
        if after.health.is_up:
            LOG.info("pod_up", pod=pod.pod_name)
            await self.check_soon(pod)
        else:
            LOG.warning("pod_down", pod=pod.pod_name, reason=fault)
        return True

    async def check_soon(self, pod: Pod) -> None:
        """Make a pod due at the next periodic check, which compares it with its routings."""
        due_at = self.clock() - timedelta(seconds=self.podding.pod_recheck_interval_s)
        await self.engine.write(lambda tx: periodic.mark_done(tx, check_task(pod), due_at))

    async def measure_one(self, pod: Pod) -> bool:
        """Measure a pod, and store the measurement. Return whether it succeeded."""
        try:
            login = await self.own_login(pod)
            found = await measuring.measure(self.client, login, self.podding.pod_request_timeout_s)
        except PodSilent as error:
            LOG.warning("pod_not_measured", pod=pod.pod_name, reason=str(error))
            await self._record(pod, f"the pod cannot be measured: {error}", 0.0)
            return False
        now = self.clock()
        return await self.engine.write(lambda tx: usage.record(tx, pod.uuid, found, now))

    async def measure_now(self, pod: Pod) -> bool:
        """Measure a pod over new connections. Return whether the measurement succeeded."""
        here = self.beside()
        try:
            return await here.measure_one(pod)
        finally:
            await here.client.close()

    async def _record(self, pod: Pod, fault: str | None, latency_ms: float) -> Pod | None:
        now, failures_max = self.clock(), self.podding.pod_failures_to_offline

        def record(tx: Tx) -> Pod | None:
            if fault is None:
                return pods.record_success(tx, pod.uuid, latency_ms, now)
            return pods.record_failure(tx, pod.uuid, fault, failures_max, now)

        return await self.engine.write(record)

    async def _each_in_turn(
        self,
        task: str,
        period_s: float,
        look: Callable[[Tx], list[Pod]],
        act: Callable[[Pod], Awaitable[bool]],
    ) -> int:
        known = await self.engine.read(look)
        if not known:
            return 0
        now = self.clock()
        if not await self.engine.write(lambda tx: periodic.take_turn(tx, task, period_s, now)):
            return 0
        return await sum_of(act(each) for each in known)


async def sum_of(works: Iterable[Awaitable[int]]) -> int:
    """Run the work on several pods at once, and return the sum of the results.

    If the work on a pod fails, its error is raised after the work on all other pods has ended.
    """
    found = await asyncio.gather(*works, return_exceptions=True)
    for each in found:
        if isinstance(each, BaseException):
            raise each
    return sum(each for each in found if not isinstance(each, BaseException))


def clouds_of(
    settings: Settings,
    engine: Engine,
    box: SecretBox | None,
    clock: Clock,
    ids: IdSource,
    wire_of: WireOf | None = None,
) -> PodClouds | None:
    """Return the access to this service's pods, or ``None`` if it administers no pods.

    Raises ``ValueError`` if the settings name an unknown filter or weigher.
    """
    podding = settings.podding
    policy = policy_of(podding)
    if box is None or not settings.has_pods:
        return None
    most = podding.pod_requests_max
    client = PodClient(
        clock, most, observe=metrics.asked_pod, wire_of=wire_of, begin=callers.must_finish
    )
    late = Lateness(podding.pod_poll_interval_s)
    return PodClouds(engine, client, box, podding, policy, clock, ids, late)


def login_of(pod: Pod, password: str) -> PodLogin:
    """Return the login of this service at a pod."""
    return PodLogin(
        pod.uuid,
        pod.pod_name,
        pod.auth_url,
        pod.username,
        password,
        pod.user_domain,
        pod.project_name,
        pod.project_domain,
        pod.region_name,
        pod.endpoints,
    )


def check_task(pod: Pod) -> str:
    """Return the name of the periodic check of a pod."""
    return f"pod_check.{pod.uuid}"


def measure_period_s(podding: Podding) -> float:
    """Return the time between two checks for pods that are due to be measured.

    It is short enough to measure new pods soon.
    """
    return min(podding.pod_measure_interval_s, LOOK_PERIOD_S)


class PodUpkeep:
    """The periodic work for pods, as the worker threads call it.

    ``settle`` and ``check`` exist only for a door (gateway). In other roles they are ``None``.
    """

    def __init__(
        self,
        clouds: PodClouds,
        settle: Callable[[], int] | None = None,
        check: Callable[[], int] | None = None,
    ) -> None:
        self._clouds = clouds
        self.settle = settle
        self.check = check
        self.poll_period_s = clouds.podding.pod_poll_interval_s
        self.measure_period_s = measure_period_s(clouds.podding)

    def poll(self) -> int:
        """Poll the pods, if it is this process's turn. Return how many went up or down."""
        return asyncio.run(self._run(lambda clouds: clouds.poll()))

    def measure(self) -> int:
        """Measure the pods, if it is this process's turn. Return how many were measured."""
        return asyncio.run(self._run(lambda clouds: clouds.measure()))

    async def _run(self, work: Callable[[PodClouds], Awaitable[int]]) -> int:
        here = self._clouds.beside()
        try:
            count = await work(here)
            now = here.clock()
            metrics.pods(await here.engine.read(lambda tx: usage.ages(tx, now)))
            return count
        finally:
            await here.client.close()
