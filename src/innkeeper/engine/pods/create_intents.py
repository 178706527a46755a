"""Choose a pod for a create, and record the intended create before the pod is asked.

Always true: one transaction makes the plan, chooses the pod, counts the quotas and writes the
routing with the mark. So a create needs one commit before its pod is asked, and the choice sees
everything that was recorded earlier. What the pod has made is recorded later, in the commit of the
next write or in a commit of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from innkeeper.domain.door import VOLUME, DoorRequest
from innkeeper.domain.errors import QuotaExceeded, VolumeQuotaExceeded
from innkeeper.domain.pods import Pod, PodRouting
from innkeeper.domain.slices import Settings
from innkeeper.engine.pods import plans
from innkeeper.engine.pods.clouds import PodClouds
from innkeeper.engine.pods.plans import Plan
from innkeeper.store.transactions import Tx
from innkeeper.systems.pods import bindings, boot_volumes, routings
from innkeeper.systems.pods.bindings import NoPod
from innkeeper.systems.pods.pod_groups import GroupElsewhere


@dataclass(frozen=True, slots=True)
class CreateIntent:
    """A create that is about to be sent to a pod. Its ``routing`` is on the disk."""

    plan: Plan
    pod: Pod
    routing: PodRouting


@dataclass(frozen=True, slots=True)
class MadeInPod:
    """The resources that a pod has made for a create.

    ``found`` has their ids. With ``has_volumes``, the pod may also make volumes for them.
    """

    begun: PodRouting
    found: Sequence[str]
    now: datetime
    has_volumes: bool = True


class CreateIntents:
    """Chooses the pods of creates, and records them."""

    def __init__(self, clouds: PodClouds, settings: Settings) -> None:
        self._clouds = clouds
        self._settings = settings

    async def begin(
        self, request: DoorRequest, known: Plan | None, refused: Sequence[Pod]
    ) -> CreateIntent:
        """Choose a pod that has not refused the request yet, and record the create.

        Without a ``known`` plan, a plan is made. Raises the errors of :func:`plans.plan`,
        :class:`NoPod`, :class:`GroupElsewhere` and :class:`QuotaExceeded`.
        """
        now, gone = self._clouds.clock(), frozenset(each.id for each in refused)

        def work(tx: Tx) -> CreateIntent:
            plan = known or plans.plan(tx, self._settings, request)
            pod, moves = self._choose(tx, plan, gone)
            wanted = self._wanted(plan, pod, now, moves=moves)
            begun = routings.begin(tx, wanted, plan.limits)
            boot_volumes.begin(tx, begun, plan.boot_volumes)
            return CreateIntent(plan, pod, begun)

        try:
            return await self._clouds.engine.write(work)
        except VolumeQuotaExceeded as error:
            if request.kind == VOLUME:
                raise
            # In the Compute API, a quota error has another status than in the Block Storage API.
            raise QuotaExceeded(error.message) from error

    def _choose(self, tx: Tx, plan: Plan, refused: frozenset[int]) -> tuple[Pod, bool]:
        """Return the chosen pod, and whether the project moves to this pod.

        A project does not move if it keeps its binding, or if the plan allows only one pod.
        """
        away = refused if plan.must is None else refused | plans.others(tx, plan.must)
        try:
            choice = bindings.choose(tx, self._clouds.policy, replace(plan.asked, refused=away))
        except NoPod as error:
            if plan.follows_group and plan.must in refused and plans.may_leave(tx, plan):
                # The group may leave this pod if the pod also refuses the group's other servers.
                raise GroupElsewhere from error
            raise
        return choice.pod, choice.binding is None and plan.must is None

    def _wanted(self, plan: Plan, pod: Pod, now: datetime, *, moves: bool) -> PodRouting:
        caller = plan.request.caller
        return PodRouting(
            0,
            self._clouds.ids.uuid(),
            None,
            pod.id,
            caller.project_id,
            plan.request.kind,
            now,
            now,
            user_id=caller.user_id,
            image_id=plan.image_id,
            number=plan.number,
            vcpus=plan.one.vcpus,
            memory_mb=plan.one.memory_mb,
            size_gb=plan.one.size_gb,
            disk_gb=plan.one.disk_gb,
            # A request that must go to the pod of a volume or server does not move the project.
            group_name=plan.asked.group if moves else None,
            az_name=plan.asked.az_name,
            server_group_uuid=None if plan.server_group is None else plan.server_group.uuid,
            type_uuid=None if plan.kind is None else plan.kind.uuid,
        )


def record(tx: Tx, made: MadeInPod) -> list[str]:
    """Record what a pod has made for a create. Return the recorded ids."""
    settled = routings.settle(tx, made.begun, made.found, made.now)
    if made.has_volumes:
        boot_volumes.settle(tx, made.begun, settled, made.now)
    return settled


def record_together(tx: Tx, made: Sequence[MadeInPod]) -> list[list[str]]:
    """Record what pods have made for several creates, none of which moves its project."""
    return [record(tx, each) for each in made]
