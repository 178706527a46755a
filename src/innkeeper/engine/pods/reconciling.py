"""Compare pods with their routings, from time to time and after outages. Repair the routings.

Always true: a repair changes the owner of a volume only if the new project had asked for the volume
at this door (gateway). In all other cases, the recorded owner stays. If a pod has lost most of its
resources at once, they are left to the operator, because the pod's address may lead to another
cloud.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import structlog

from innkeeper.clients.pods import PodSilent
from innkeeper.domain.pods import Pod
from innkeeper.engine.pods.clouds import PodClouds, check_task, sum_of
from innkeeper.engine.pods.comparing import Comparing, PodComparison
from innkeeper.store import periodic
from innkeeper.store.transactions import Tx
from innkeeper.systems.pods import checks, pods, routings
from innkeeper.systems.pods.checks import PodDifference, PodFault

LOG = structlog.get_logger("innkeeper.pods")
AT_ONCE = 100
"""The maximum number of repairs in one transaction. All other writers wait for the transaction."""
RETRY_S = 60.0
"""After a failed check, the pod is checked again after this time."""
LOST_MAX = 20
"""If a pod has lost more resources than this, and more than half of its resources, its address may
lead to another cloud."""
BY_ITSELF = frozenset({PodFault.LOST, PodFault.UNKNOWN, PodFault.AMOUNTS})
"""The kinds of faults that are usually repaired without an operator."""
NOTES_KEPT = timedelta(days=7)
"""The maximum time that a pod may take to carry out an accepted volume transfer."""


class Reconciling:
    """The periodic comparison of the pods with their routings."""

    def __init__(self, clouds: PodClouds) -> None:
        self._clouds = clouds
        timeout_s = clouds.podding.pod_request_timeout_s
        self._comparing = Comparing(clouds.engine.read, clouds.client, timeout_s, clouds.clock)

    async def check(self) -> int:
        """Check the pods that are due and not down. Return the number of repairs."""
        now, period_s = self._clouds.clock(), self._clouds.podding.pod_recheck_interval_s
        lapse_s = period_s * periodic.EARLY

        def look(tx: Tx) -> list[Pod]:
            return [
                each
                for each in pods.every(tx)
                if each.health.is_up is not False
                and periodic.is_open(tx, check_task(each), None, lapse_s, now)
            ]

        due = await self._clouds.engine.read(look)
        return await sum_of(map(self._in_turn, due))

    async def _in_turn(self, pod: Pod) -> int:
        engine, clock = self._clouds.engine, self._clouds.clock
        now, period_s = clock(), self._clouds.podding.pod_recheck_interval_s
        task = check_task(pod)
        if not await engine.write(lambda tx: periodic.take_turn(tx, task, period_s, now)):
            return 0
        try:
            return await self._check(pod)
        except PodSilent as error:
            LOG.warning("pod_not_checked", pod=pod.pod_name, reason=str(error))
            again_at = clock() - timedelta(seconds=retried_s(period_s))
            await engine.write(lambda tx: periodic.mark_done(tx, task, again_at))
            return 0

    async def _check(self, pod: Pod) -> int:
        """Compare a pod with its routings. Make the safe repairs, and return their number."""
        login = await self._clouds.own_login(pod)
        found = await self._comparing.compare(pod, login)
        safe = repairable(found)
        report(pod, found, safe)
        done = 0
        for start in range(0, len(safe), AT_ONCE):
            done += await self._repair(safe[start : start + AT_ONCE])
        before = self._clouds.clock() - NOTES_KEPT
        await self._clouds.engine.write(lambda tx: routings.drop_notes(tx, pod.id, before))
        return done

    async def _repair(self, found: Sequence[PodDifference]) -> int:
        now = self._clouds.clock()

        def work(tx: Tx) -> list[str]:
            told = (checks.repair(tx, each, now) for each in found)
            return [each for each in told if each is not None]

        done = await self._clouds.engine.write(work)
        for each in done:
            LOG.info("pod_repaired", pod=found[0].pod.pod_name, repair=each)
        return len(done)


def retried_s(period_s: float) -> float:
    """Return the age that is recorded for a check that has just failed.

    With this age, the next check is due after :data:`RETRY_S`, or after the period of checks if the
    period is shorter.
    """
    return max(0.0, period_s * periodic.EARLY - RETRY_S)


def report(pod: Pod, found: PodComparison, repaired: Sequence[PodDifference]) -> None:
    """Log the differences that are left to an operator."""
    handled = set(map(id, repaired))
    left = [each for each in found.differences if id(each) not in handled]
    lost = sum(each.fault is PodFault.LOST for each in left)
    if lost:
        LOG.error("pod_lost_most", pod=pod.pod_name, lost=lost, known=found.known)
    for each in left:
        if each.fault is not PodFault.LOST:
            LOG.warning("pod_differs", pod=pod.pod_name, difference=each.text)


def repairable(found: PodComparison) -> list[PodDifference]:
    """Return the differences to repair without an operator."""
    safe = [
        each
        for each in found.differences
        if each.fault in BY_ITSELF or (each.fault is PodFault.PROJECT and each.note is not None)
    ]
    lost = sum(each.fault is PodFault.LOST for each in safe)
    if lost > LOST_MAX and lost * 2 > found.known:
        return [each for each in safe if each.fault is not PodFault.LOST]
    return safe
