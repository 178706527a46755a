"""The periodic tasks of a service.

Always true: a task does no harm if it runs late, or twice. If a task concerns the whole cloud, one
process runs it each time. All other tasks concern only this process.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import structlog

from innkeeper.clients.lease_checks import LeaseCheckClient
from innkeeper.clients.webhooks import Webhook
from innkeeper.domain.errors import Refusal, Unavailable
from innkeeper.domain.ids import Clock, IdSource
from innkeeper.domain.moves import Initiator
from innkeeper.domain.slices import Settings
from innkeeper.engine import metrics, pruning
from innkeeper.engine.clock_steps import ClockSteps
from innkeeper.engine.commands import Decide, Work, Write
from innkeeper.engine.leases import end_checks as lease_end_checks
from innkeeper.engine.leases import events as lease_events
from innkeeper.engine.leases import healing as lease_healing
from innkeeper.engine.leases import idle as idle_leases
from innkeeper.engine.leases import preemption
from innkeeper.engine.leases import webhook as lease_webhook
from innkeeper.engine.leases.end_checks import LeaseEndChecks
from innkeeper.engine.leases.events import LeaseEvents
from innkeeper.engine.leases.healing import LeaseHealing
from innkeeper.engine.leases.idle import IdleLeases
from innkeeper.engine.leases.preemption import PreemptionTask
from innkeeper.engine.leases.webhook import LeaseWebhook
from innkeeper.engine.pods import clouds
from innkeeper.engine.pods.clouds import PodUpkeep
from innkeeper.engine.writer import Writer
from innkeeper.engine.zones import polling, repairing
from innkeeper.engine.zones.upkeep import ZoneUpkeep
from innkeeper.store import periodic
from innkeeper.store.transactions import Store, Tx
from innkeeper.systems.compute.grouping import groups
from innkeeper.systems.compute.hosts import table_audit, work
from innkeeper.systems.compute.servers.results import ResultSettings
from innkeeper.systems.leases import draining
from innkeeper.systems.leases.context import LeaseContext
from innkeeper.systems.leases.resource_types.catalogue import BUILT_IN, ResourceTypes
from innkeeper.systems.pclouds import pclouds, ratio_rollout, replaced, requests, sizes
from innkeeper.systems.pclouds.context import PcloudContext
from innkeeper.systems.placement import feed
from innkeeper.systems.zones import parents, used_entries

LOG = structlog.get_logger("innkeeper.service")
T = TypeVar("T")
SWEEP_PERIOD_S = 10.0
PRUNE_PERIOD_S = 60.0
MEASURE_PERIOD_S = 5.0
PROBE_PERIOD_S = 5.0
"""The time in seconds within which an idle service notices that its database refuses writes, or
accepts writes again."""
PROBE = "probe"
BY_ITSELF = "upkeep"
"""The request id under which the actions of periodic tasks are recorded."""
STEPS_MAX = 100
"""The maximum number of steps of a ratio rollout in one turn. Other tasks wait until the turn ends.
"""
TABLE_AUDIT_PERIOD_S = 20.0
"""With this period, a table of 35,000 hosts is compared once an hour."""
FOLLOWERS_PATIENCE = 2
"""Usually, the leader runs a task. If the task has not run for this many periods, any other process
may run it."""
TASK_TIMEOUT_S = 60.0
"""The maximum time for which a task waits for a commit. After this time, the work is left to the
task's next turn."""


@dataclass(frozen=True, slots=True)
class PeriodicTask:
    """A function to run every ``period_s`` seconds. ``work`` returns the number of things it did.

    Tasks with the same ``thread`` run one after the other.
    """

    name: str
    period_s: float
    work: Callable[[], int]
    thread: str = "worker"


class PeriodicTasks:
    """The periodic work of one serving process."""

    def __init__(
        self,
        settings: Settings,
        store: Store,
        writer: Writer,
        clock: Clock,
        ids: IdSource,
        types: ResourceTypes = BUILT_IN,
        zones: ZoneUpkeep | None = None,
        pods: PodUpkeep | None = None,
    ) -> None:
        self._settings = settings
        self._store = store
        self._writer = writer
        self._clock = clock
        self._ids = ids
        self._types = types
        self._zones = zones
        self._pods = pods
        self._is_following: Callable[[], bool] = lambda: False
        self._audited_row = 0

    def tasks(self, is_following: Callable[[], bool] | None = None) -> list[PeriodicTask]:
        """Return all tasks, with their periods.

        ``is_following`` returns whether another process is the leader. The leader usually runs the
        tasks that concern the whole cloud.
        """
        self._is_following = is_following or self._is_following
        timeout_s = self._settings.computing.order_timeout_s
        context = ResultSettings.of(self._settings.scheduling, self._settings.computing)
        steps = ClockSteps(self._clock, time.monotonic)

        def sweep(tx: Tx) -> int:
            late_s = timeout_s + steps.forward_s(timeout_s)
            return work.sweep(tx, late_s, self._clock(), context)

        return [
            self._in_turn("late_orders", SWEEP_PERIOD_S, sweep),
            self._pruning("old_changes", lambda tx: feed.prune(tx, self._clock())),
            self._pruning("old_orders", lambda tx: work.prune(tx, self._clock())),
            *self._of_pclouds(),
            *self._of_leases(),
            *self._of_zones(),
            *self._of_pods(),
            self._in_turn(
                "leaving_hosts", SWEEP_PERIOD_S, lambda tx: draining.let_leave(tx, self._clock())
            ),
            PeriodicTask("measures", MEASURE_PERIOD_S, self._measure),
            PeriodicTask("probe", PROBE_PERIOD_S, self._probe),
            PeriodicTask("table_audit", TABLE_AUDIT_PERIOD_S, self._audit_table),
        ]

    def _of_pclouds(self) -> list[PeriodicTask]:
        return [
            self._in_turn(
                "replaced_hosts",
                SWEEP_PERIOD_S,
                lambda tx: replaced.look_after(tx, self._context()),
            ),
            self._pruning(
                "old_pcloud_actions", lambda tx: pclouds.forget_old_actions(tx, self._context())
            ),
            self._pruning("old_pcloud_requests", lambda tx: requests.forget_old(tx, self._clock())),
            self._each_in_turn("pcloud_sizes", sizes.due, self._keep_size),
            self._each_in_turn("pcloud_ratios", ratio_rollout.due, self._roll_out),
        ]

    def _of_leases(self) -> list[PeriodicTask]:
        """Return the tasks of leases.

        Events have their own thread, because they must be on time. Webhooks also have their own
        thread, because they are slow.
        """
        store, writer, leasing = self._store, self._writer, self._settings.leasing
        events = LeaseEvents(store, writer, self._clock, time.monotonic, self._lease_context)
        tasks = [PeriodicTask(lease_events.TASK, lease_events.PERIOD_S, events.work, "leases")]
        if leasing.lease_webhook_url is not None:
            webhook = Webhook(
                leasing.lease_webhook_url, leasing.lease_webhook_secret, time.monotonic
            )
            work = LeaseWebhook(store, writer, self._clock, time.monotonic, webhook).work
            period_s = lease_webhook.PERIOD_S
            tasks.append(PeriodicTask(lease_webhook.TASK, period_s, work, "webhook"))
        idle = IdleLeases(store, writer, self._clock, self._lease_context)
        tasks.append(PeriodicTask(idle_leases.TASK, idle_leases.PERIOD_S, idle.work))
        preempting = PreemptionTask(store, writer, self._lease_context)
        tasks.append(PeriodicTask(preemption.TASK, preemption.PERIOD_S, preempting.work))
        healing = LeaseHealing(store, writer, self._clock, self._lease_context)
        tasks.append(PeriodicTask(lease_healing.TASK, lease_healing.PERIOD_S, healing.work))
        client = self._lease_checks()
        if client is not None:
            told = LeaseEndChecks(store, writer, self._clock, client, self._settings)
            period_s = lease_end_checks.PERIOD_S
            tasks.append(PeriodicTask(lease_end_checks.TASK, period_s, told.work, "lease-check"))
        return tasks

    def _of_zones(self) -> list[PeriodicTask]:
        """Return the tasks of zones.

        They have their own threads, because they wait for other zones.
        """
        zones = self._zones
        if zones is None:
            return []
        return [
            PeriodicTask(polling.TASK, zones.period_s, zones.poll, "zone-polls"),
            PeriodicTask(repairing.TASK, zones.period_s, zones.repair, "zone-repair"),
            self._pruning(
                "old_zone_requests",
                lambda tx: groups.prune_of_parents(tx, self._clock()),
                lambda tx: parents.prune(tx, self._clock()),
                lambda tx: used_entries.prune(tx, self._clock()),
            ),
        ]

    def _of_pods(self) -> list[PeriodicTask]:
        """Return the tasks of pods. They have their own threads, because they wait for pods."""
        pods = self._pods
        if pods is None:
            return []
        found = [
            PeriodicTask(clouds.POLLS, pods.poll_period_s, pods.poll, "pod-polls"),
            PeriodicTask(clouds.MEASURES, pods.measure_period_s, pods.measure, "pod-measures"),
        ]
        if pods.settle is not None:
            period_s = clouds.SETTLE_PERIOD_S
            found.append(PeriodicTask(clouds.SETTLES, period_s, pods.settle, "pod-settles"))
        if pods.check is not None:
            period_s = clouds.CHECK_PERIOD_S
            found.append(PeriodicTask(clouds.CHECKS, period_s, pods.check, "pod-checks"))
        return found

    def _lease_checks(self) -> LeaseCheckClient | None:
        leasing = self._settings.leasing
        if leasing.lease_check_url is None:
            return None
        return LeaseCheckClient(
            leasing.lease_check_url,
            token=leasing.lease_check_token,
            timeout_s=leasing.lease_check_timeout_s,
            clock=time.monotonic,
        )

    def _keep_size(self, uuid: str) -> int:

        def keep(tx: Tx) -> int:
            return sizes.keep(tx, uuid, self._context())

        return self._write(keep)

    def _roll_out(self, uuid: str) -> int:
        """Continue a rollout of ratios whose request ended early. Return the number of steps.

        If the request is still running, the request and this task share the steps.
        """

        def go_on(tx: Tx) -> int:
            return ratio_rollout.go_on(tx, uuid, self._context())

        steps = 1
        while self._write(go_on) and steps < STEPS_MAX:
            steps += 1
        return steps

    def _lease_context(self) -> LeaseContext:
        return LeaseContext(
            self._settings.computing.service_down_time_s,
            Initiator(BY_ITSELF),
            self._clock(),
            self._ids.seed(),
            self._settings.leasing,
            types=self._types,
        )

    def _context(self) -> PcloudContext:
        return PcloudContext(
            self._settings.dedicating,
            self._settings.computing.service_down_time_s,
            Initiator(BY_ITSELF),
            self._clock(),
            self._ids.seed(),
        )

    def _probe(self) -> int:
        """Write a row, if nothing was written recently. Reads would not notice a full disk."""
        if time.perf_counter() - self._store.written_at_s < PROBE_PERIOD_S:
            return 0
        mark = partial(periodic.mark_done, name=PROBE, now=self._clock())
        self._write(mark)
        return 0

    def _measure(self) -> int:
        metrics.LATER.settle()
        metrics.waiting(self._writer.waiting)
        for name, engine in self._store.engines._asdict().items():
            pool = engine.pool
            metrics.CONNECTIONS.labels(name, "most").set(pool.size())
            metrics.CONNECTIONS.labels(name, "in_use").set(pool.checkedout())
        return 0

    def _audit_table(self) -> int:
        """Compare the next rows of the host table with the store, and count the differences."""
        compare = Decide(
            lambda tx, context: table_audit.compare(tx, context, self._audited_row), self._clock()
        )
        done = self._writer.submit_and_wait(compare, TASK_TIMEOUT_S)
        self._audited_row = done.next_row
        metrics.COMPARED.inc(done.rows)
        metrics.DIFFERENCES.inc(len(done.differences))
        if done.differences:
            LOG.error("table_differs", count=len(done.differences), first=done.differences[:10])
        return len(done.differences)

    def _in_turn(self, name: str, period_s: float, act: Callable[[Tx], int]) -> PeriodicTask:
        """Return a task that only one process runs each time."""

        def take_turn(tx: Tx) -> int:
            if not periodic.take_turn(tx, name, period_s, self._clock()):
                return 0
            metrics.TURNS.labels(name).inc()
            return act(tx)

        def work() -> int:
            return self._write(take_turn) if self._is_due(name, period_s) else 0

        return PeriodicTask(name, period_s, work)

    def _pruning(self, name: str, *prunes: Work[int]) -> PeriodicTask:
        """Return a task that deletes rows that are due. Only one process runs it each time."""
        turn = self._in_turn(name, PRUNE_PERIOD_S, lambda tx: 1)

        def work() -> int:
            return pruning.all_due(self._write, prunes) if turn.work() else 0

        return PeriodicTask(name, PRUNE_PERIOD_S, work, "pruning")

    def _each_in_turn(
        self, name: str, due: Callable[[Tx], list[str]], act: Callable[[str], int]
    ) -> PeriodicTask:
        """Return a task that calls ``act`` for each due object. Only one process runs it each time.

        ``due`` returns the ids of these objects. Each object is handled in a transaction of its
        own.
        """

        def take_turn(tx: Tx) -> list[str]:
            is_ours = periodic.take_turn(tx, name, SWEEP_PERIOD_S, self._clock())
            return due(tx) if is_ours else []

        def work() -> int:
            if not self._is_due(name, SWEEP_PERIOD_S):
                return 0
            found = self._write(take_turn)
            return sum(_act_on(each, act, name) for each in found)

        return PeriodicTask(name, SWEEP_PERIOD_S, work)

    def _is_due(self, name: str, period_s: float) -> bool:
        """Return whether this process should try to run the task now."""
        patience = FOLLOWERS_PATIENCE if self._is_following() else 1
        with self._store.read() as tx:
            return periodic.is_due(tx, name, patience * period_s, self._clock())

    def _write(self, work: Work[T]) -> T:
        return self._writer.submit_and_wait(Write(work), TASK_TIMEOUT_S)


def _act_on(uuid: str, act: Callable[[str], int], name: str) -> int:
    """Call ``act`` with the id of an object. A refusal is logged, and the object stays due."""
    try:
        return act(uuid)
    except Unavailable:
        raise
    except Refusal as refusal:
        LOG.warning("upkeep_refused", task=name, of=uuid, reason=refusal.message)
        return 0
