"""Settle creates and deletes whose outcome was not known, and look whether resources still exist.

Always true: a create is forgotten only if its pod answered twice, after a while, that it has
nothing with the mark. A pod that was paused may answer once before it carries out the create that
came meanwhile. A resource is forgotten only if its pod answers that it does not exist.
"""

from __future__ import annotations

from datetime import timedelta
from http import HTTPStatus

import structlog

from innkeeper.clients.pods import PodCall, PodSilent
from innkeeper.domain.pods import Pod, PodRouting
from innkeeper.engine.pods.clouds import PodClouds
from innkeeper.engine.pods.creating import SERVICES, Creating
from innkeeper.engine.pods.tenants import Tenants
from innkeeper.store.transactions import Tx
from innkeeper.systems.pods import pods, routings

LOG = structlog.get_logger("innkeeper.pods")
AT_ONCE = 100
DOUBT = 4
"""A create is in doubt for so many times the timeout of a request."""
DELETES_WITHIN = timedelta(hours=1)


class Completing:
    """The periodic work on open routings."""

    def __init__(self, clouds: PodClouds, tenants: Tenants, creating: Creating) -> None:
        self._clouds = clouds
        self._tenants = tenants
        self._creating = creating

    async def settle(self) -> int:
        """Look for what pods have made and deleted. Return how many routings were settled."""
        now = self._clouds.clock()
        recheck = timedelta(seconds=self._clouds.podding.pod_recheck_interval_s)
        timeout = timedelta(seconds=self._clouds.podding.pod_request_timeout_s)

        def look(tx: Tx) -> list[tuple[PodRouting, Pod]]:
            by_id = {each.id: each for each in pods.every(tx)}
            found = [
                each
                for each in routings.open_ones(tx, AT_ONCE)
                # A request that is in progress settles its routing itself.
                if each.deleted_at is not None or now - each.created_at > timeout * 2
            ]
            found += routings.unchecked(tx, now - recheck, AT_ONCE)
            return [(each, by_id[each.pod_id]) for each in found]

        count = 0
        for routing, pod in await self._clouds.engine.read(look):
            if pod.health.is_up is False:
                continue
            try:
                count += await self._one(routing, pod)
            except PodSilent as error:
                LOG.warning("pod_not_settled", pod=pod.pod_name, reason=str(error))
        return count

    async def _one(self, routing: PodRouting, pod: Pod) -> bool:
        if routing.bottom_id is None:
            return await self._create(routing, pod)
        return await self._check(routing, pod)

    async def _create(self, routing: PodRouting, pod: Pod) -> bool:
        login = await self._tenants.of_project(pod, routing.project_id)
        found = await self._creating.marked(login, routing)
        now = self._clouds.clock()
        wait_s = self._clouds.podding.pod_request_timeout_s * DOUBT
        is_late = now - routing.created_at > timedelta(seconds=wait_s)
        if not is_late and len(found) < (routing.number or 1):
            await self._clouds.engine.write(lambda tx: routings.touch(tx, routing.id, now))
            return False
        if routing.deleted_at is None and len(found) < (routing.number or 1):
            await self._clouds.engine.write(lambda tx: routings.miss(tx, routing.id, now))
            return False
        await self._creating.settle(routing, found, None, pod)
        LOG.info("pod_create_settled", pod=pod.pod_name, found=len(found))
        return True

    async def _check(self, routing: PodRouting, pod: Pod) -> bool:
        login = await self._tenants.own(pod)
        kind, now = routing.resource_type, self._clouds.clock()
        timeout_s = self._clouds.podding.pod_request_timeout_s
        call = PodCall(SERVICES[kind], "GET", f"/{kind}s/{routing.bottom_id}", timeout_s)
        answer = await self._clouds.client.send(login, call)
        if answer.status == HTTPStatus.NOT_FOUND:
            await self._clouds.engine.write(lambda tx: routings.forget(tx, routing.id))
            return True
        is_late = routing.deleted_at is not None and now - routing.deleted_at > DELETES_WITHIN
        work = routings.end_delete if is_late else routings.touch
        await self._clouds.engine.write(lambda tx: work(tx, routing.id, now))
        return False
