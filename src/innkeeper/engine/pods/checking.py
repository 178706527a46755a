"""Look at a resource in its pod: whether it exists, and which amounts it uses.

Always true: a resource is forgotten only if its pod answers that the resource does not exist. While
a resource changes, the amounts that its pod shows are ignored.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Annotated

import msgspec

from innkeeper.clients.pods import PodAnswer, PodCall, PodSilent
from innkeeper.domain.amounts import UNIT_MAX
from innkeeper.domain.converters import converter_to
from innkeeper.domain.door import SERVER, DoorAmounts, Json
from innkeeper.domain.pods import Pod, PodRouting
from innkeeper.engine.pods.clouds import PodClouds
from innkeeper.engine.pods.tenants import SERVICES, Tenants, decoded, is_gone
from innkeeper.store.transactions import Tx
from innkeeper.systems.pods import routings

WITHIN = timedelta(hours=1)
"""For this time after a delete or change began, this service often looks at the resource."""
WITH_FLAVORS: Mapping[str, str] = {"openstack-api-version": "compute 2.47"}
"""The headers of a request for a server. Their microversion is the first that shows a server with
the amounts of its flavor."""
MOVING = frozenset({"RESIZE", "VERIFY_RESIZE", "REVERT_RESIZE", "MIGRATING"})
GROWING = frozenset({"extending", "retyping", "deleting"})
MB_PER_GB = 1024


AMOUNT = Annotated[int, msgspec.Meta(ge=0, le=UNIT_MAX)]


class _Flavor(msgspec.Struct):
    vcpus: AMOUNT
    ram: AMOUNT
    disk: AMOUNT
    ephemeral: AMOUNT = 0
    swap: AMOUNT = 0


class _Volume(msgspec.Struct):
    size: AMOUNT
    status: str = ""


_flavor_of, _volume_of = converter_to(_Flavor), converter_to(_Volume)


class Checking:
    """Compares routings with their pods."""

    def __init__(self, clouds: PodClouds, tenants: Tenants) -> None:
        self._clouds = clouds
        self._tenants = tenants

    async def check(self, routing: PodRouting, pod: Pod) -> bool:
        """Record the state of a resource in its pod. Return whether a delete or change is settled.

        Raises :class:`PodSilent`.
        """
        answer = await self._ask(routing, pod)
        engine, now = self._clouds.engine, self._clouds.clock()
        if is_gone(answer):
            await engine.write(lambda tx: routings.lose(tx, routing, now))
            return True
        told = decoded(answer).get(routing.resource_type)
        if answer.status != HTTPStatus.OK or not isinstance(told, Mapping):
            raise PodSilent.of_status(answer.status)
        if routing.deleted_at is not None:
            work = routings.end_delete if _is_late(routing.deleted_at, now) else routings.touch
            await engine.write(lambda tx: work(tx, routing.id, now))
            if routing.changing_at is None:
                return False
        amounts = amounts_in(routing.resource_type, told)
        if amounts is None and not _is_late(routing.changing_at, now):
            await engine.write(lambda tx: routings.touch(tx, routing.id, now))
            return False

        def recount(tx: Tx) -> None:
            type_uuid = routings.type_named(tx, told.get("volume_type"))
            routings.recount(tx, routing, amounts, now, type_uuid)

        await engine.write(recount)
        return routing.changing_at is not None

    async def _ask(self, routing: PodRouting, pod: Pod) -> PodAnswer:
        login = await self._tenants.own(pod)
        kind, timeout_s = routing.resource_type, self._clouds.podding.pod_request_timeout_s
        target = f"/{kind}s/{routing.bottom_id}"
        headers = WITH_FLAVORS if kind == SERVER else {}
        call = PodCall(SERVICES[kind], "GET", target, timeout_s, b"", headers)
        answer = await self._clouds.client.send(login, call)
        if answer.status != HTTPStatus.NOT_ACCEPTABLE:
            return answer
        # A pod with an old release does not know this microversion. Ask again without it, to learn
        # at least whether the server exists.
        call = PodCall(SERVICES[kind], "GET", target, timeout_s)
        return await self._clouds.client.send(login, call)


def amounts_in(kind: str, told: Mapping[str, Json]) -> DoorAmounts | None:
    """Return the amounts of a resource as its pod shows them, or ``None`` while they may change."""
    try:
        if kind != SERVER:
            volume = _volume_of(told)
            return None if volume.status in GROWING else DoorAmounts(size_gb=volume.size)
        if str(told.get("status")) in MOVING or told.get("OS-EXT-STS:task_state"):
            return None
        flavor = _flavor_of(told.get("flavor"))
    except msgspec.ValidationError:
        return None
    disk_gb = flavor.disk + flavor.ephemeral - (-flavor.swap // MB_PER_GB)
    return DoorAmounts(flavor.vcpus, flavor.ram, disk_gb=disk_gb)


def _is_late(since: datetime | None, now: datetime) -> bool:
    return since is None or now - since > WITHIN
