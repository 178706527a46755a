"""Find out what became of creates, deletes and changes with an unknown outcome.

Always true: a create is forgotten only if its pod has answered twice, some time apart, that no
resource has the create's mark. One answer is not enough. A pod that was paused may answer this
before it carries out a create that arrived during the pause. A resource is forgotten only if its
pod answers that the resource does not exist.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import structlog

from innkeeper.clients.pods import PodSilent
from innkeeper.domain.door import GROUP, TAKES, WITH_SERVERS
from innkeeper.domain.pods import Pod, PodRouting
from innkeeper.engine.pods.boot_volumes import BootVolumes
from innkeeper.engine.pods.checking import WITHIN, Checking
from innkeeper.engine.pods.clouds import PodClouds, sum_of
from innkeeper.engine.pods.creating import Creating
from innkeeper.engine.pods.group_provisioning import GroupProvisioning
from innkeeper.engine.pods.marks import Marks
from innkeeper.engine.pods.tenants import Tenants
from innkeeper.store.transactions import Tx
from innkeeper.systems.pods import pod_groups, pods, routings

LOG = structlog.get_logger("innkeeper.pods")
AT_ONCE = 100
"""The maximum number of open routings of each pod that are looked at in one round."""
DOUBT = 4
"""For this many request timeouts, a create that has made nothing is kept."""


class Recovery:
    """The periodic work on open routings."""

    def __init__(self, clouds: PodClouds, tenants: Tenants, creating: Creating) -> None:
        self._clouds = clouds
        self._tenants = tenants
        self._creating = creating
        self._marks = Marks(clouds)
        self._checking = Checking(clouds, tenants)
        self._groups = GroupProvisioning(clouds, tenants)
        self._boot_volumes = BootVolumes(clouds, tenants)

    async def settle(self) -> int:
        """Ask pods about the resources of open routings. Return the number of settled routings."""
        now = self._clouds.clock()
        timeout = timedelta(seconds=self._clouds.podding.pod_request_timeout_s)

        def look(tx: Tx) -> list[tuple[PodRouting, Pod]]:
            # A pod that is down must not delay the work on other pods.
            by_id = {each.id: each for each in pods.every(tx) if each.health.is_up is not False}
            found = [
                each
                for each in routings.open_in_each(tx, list(by_id), AT_ONCE)
                # A request in progress settles its own routing.
                if each.deleted_at is not None
                or each.top_id.startswith(WITH_SERVERS)
                or now - (each.changing_at or each.created_at) > timeout * 2
            ]
            found += pod_groups.unused(tx, list(by_id), now - WITHIN, AT_ONCE)
            return [(each, by_id[each.pod_id]) for each in found]

        of_pods: dict[str, list[tuple[PodRouting, Pod]]] = {}
        for routing, pod in await self._clouds.engine.read(look):
            of_pods.setdefault(pod.uuid, []).append((routing, pod))
        return await sum_of(map(self._in_pod, of_pods.values()))

    async def _in_pod(self, found: Sequence[tuple[PodRouting, Pod]]) -> int:
        """Settle routings of one pod. Stop if the pod does not answer."""
        count = 0
        for routing, pod in found:
            try:
                count += await self._one(routing, pod)
            except PodSilent as error:
                LOG.warning("pod_not_settled", pod=pod.pod_name, reason=str(error))
                await self._touch(routing)
                break
        return count

    async def _touch(self, routing: PodRouting) -> None:
        """Record the time of this look, so that the next round begins with other routings."""
        now = self._clouds.clock()
        await self._clouds.engine.write(lambda tx: routings.touch(tx, routing.id, now))

    async def _one(self, routing: PodRouting, pod: Pod) -> bool:
        if routing.resource_type == GROUP:
            return await self._groups.remove(routing, pod)
        if routing.top_id.startswith(WITH_SERVERS):
            return await self._boot_volumes.learn(routing, pod)
        if routing.bottom_id is None:
            return await self._create(routing, pod)
        return await self._checking.check(routing, pod)

    async def _create(self, routing: PodRouting, pod: Pod) -> bool:
        login = await self._tenants.of_project(pod, routing.project_id)
        found = await self._marks.found(login, routing)
        now = self._clouds.clock()
        wait_s = self._clouds.podding.pod_request_timeout_s * DOUBT
        is_late = now - routing.created_at > timedelta(seconds=wait_s)
        if not is_late and len(found) < (routing.number or 1):
            await self._touch(routing)
            return False
        if routing.deleted_at is None and len(found) < (routing.number or 1):
            await self._clouds.engine.write(lambda tx: routings.miss(tx, routing.id, now))
            return False
        if not found and routing.top_id.startswith(TAKES):
            await self._clouds.engine.write(lambda tx: routings.lapse(tx, routing, now))
        else:
            await self._creating.settle(routing, found, pod)
        LOG.info("pod_create_settled", pod=pod.pod_name, found=len(found))
        return True
