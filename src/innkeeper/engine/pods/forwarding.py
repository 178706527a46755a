"""Send requests for one server or volume to the pod that has it.

Always true: the pod gets the complete body. Only an image, a flavor and a key pair are translated.
A server and a volume meet only in one pod. A resource that its pod does not know is forgotten.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from http import HTTPStatus

import msgspec
import structlog

from innkeeper.clients.pod_logins import PodLogin
from innkeeper.clients.pods import PodAnswer, PodCall, PodSilent
from innkeeper.domain.door import SERVER, VOLUME, DoorAmounts, DoorLimits, DoorRequest, Json
from innkeeper.domain.errors import Invalid, NotFound, Unavailable
from innkeeper.domain.pods import Pod, PodRouting
from innkeeper.domain.slices import Settings
from innkeeper.engine.pods import plans, shown
from innkeeper.engine.pods.clouds import PodClouds
from innkeeper.engine.pods.creating import AWAY, RETRY_AFTER_S, SERVICES, DoorAnswer
from innkeeper.engine.pods.pushing import Pushing
from innkeeper.engine.pods.shown import DoorView
from innkeeper.engine.pods.tenants import Tenants
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.accounts import quotas
from innkeeper.systems.compute.flavors import flavors
from innkeeper.systems.pods import pods, routings
from innkeeper.systems.volumes import quotas as volume_quotas

LOG = structlog.get_logger("innkeeper.pods")
APART = "The server and the volume are not in the same pod."
IMAGES_OF_PODS = ("createImage", "createBackup", "os-volume_upload_image")
"""Actions that make an image, which only the pod would have."""

Check = Callable[[PodRouting], None]


class Forwarding:
    """Forwards requests for resources that pods have."""

    def __init__(
        self, clouds: PodClouds, settings: Settings, tenants: Tenants, pushing: Pushing
    ) -> None:
        self._clouds = clouds
        self._settings = settings
        self._tenants = tenants
        self._pushing = pushing

    async def forward(self, request: DoorRequest, uuid: str, check: Check) -> DoorAnswer:
        """Send a request for a resource to its pod.

        ``check`` raises if the caller may not do this to the resource. Raises :class:`NotFound`,
        :class:`Invalid`, :class:`QuotaExceeded` and :class:`Unavailable`.
        """

        def look(tx: Tx) -> tuple[PodRouting, Pod]:
            found = routings.place_of(tx, uuid, request.kind)
            check(found)
            pod = pods.by_id(tx, found.pod_id)
            assert pod is not None, "a pod with routings is not deleted"
            return found, pod

        routing, pod = await self._clouds.engine.read(look)
        await self._check_volumes(request, routing)
        try:
            login = await self._login(request, routing, pod)
            body = await self._translated(request, routing, pod, login)
            answer = await self._send(request, login, body)
            view = DoorView.of(pod, routing, request.address, is_admin=request.caller.is_admin)
            status, raw, headers = shown.answer_of(answer, view, request.kind)
            await self._note(request, routing, login, answer)
        except PodSilent as error:
            LOG.warning("pod_forward_failed", pod=pod.pod_name, reason=str(error))
            raise Unavailable(AWAY, retry_after_s=RETRY_AFTER_S) from error
        return DoorAnswer(status, raw, headers)

    async def _login(self, request: DoorRequest, routing: PodRouting, pod: Pod) -> PodLogin:
        if request.caller.is_admin:
            return await self._tenants.own(pod)
        return await self._tenants.of_project(pod, routing.project_id)

    async def _send(self, request: DoorRequest, login: PodLogin, body: Json) -> PodAnswer:
        raw = b"" if body is None else msgspec.json.encode(body)
        timeout_s = self._clouds.podding.pod_request_timeout_s
        service = SERVICES[request.kind]
        call = PodCall(service, request.method, request.target, timeout_s, raw, request.headers)
        return await self._clouds.client.send(login, call)

    async def _check_volumes(self, request: DoorRequest, routing: PodRouting) -> None:
        """Raise :class:`Invalid` if a request brings a server and a volume of two pods together."""
        wanted = _counterpart(request)
        if wanted is None:
            return
        kind, uuid = wanted

        def look(tx: Tx) -> PodRouting:
            if kind == VOLUME:
                found: PodRouting = plans.volume_of(tx, request.caller, uuid)
                return found
            return routings.place_of(tx, uuid, SERVER)

        try:
            other = await self._clouds.engine.read(look)
        except NotFound as error:
            raise Invalid(error.message) from error
        if other.pod_id != routing.pod_id or other.project_id != routing.project_id:
            raise Invalid(APART)

    async def _translated(
        self, request: DoorRequest, routing: PodRouting, pod: Pod, login: PodLogin
    ) -> Json:
        """Return the body of an action for the pod, and count what a resize or extension adds."""
        body = request.body
        if not request.target.partition("?")[0].endswith("/action") or not isinstance(body, dict):
            return body
        for name in IMAGES_OF_PODS:
            if name in body:
                raise Invalid(f"The door does not serve {name}: images are those of the door.")
        if isinstance(body.get("resize"), Mapping):
            await self._resize(request, routing, pod, login)
        elif isinstance(body.get("os-extend"), Mapping):
            await self._extend(routing, int(body["os-extend"].get("new_size") or 0))
        elif isinstance(body.get("rebuild"), Mapping) and body["rebuild"].get("imageRef"):
            return await self._rebuild(request, routing, pod, login)
        return body

    async def _rebuild(
        self, request: DoorRequest, routing: PodRouting, pod: Pod, login: PodLogin
    ) -> Json:
        wanted = request.body["rebuild"]
        caller = request.caller
        image_id, name = await self._clouds.engine.read(
            lambda tx: plans.image_of(tx, wanted["imageRef"], caller)
        )
        there = await self._pushing.image(pod, login, name or "")
        now = self._clouds.clock()
        await self._clouds.engine.write(
            lambda tx: routings.show_image(tx, routing.id, image_id, now)
        )
        return {**request.body, "rebuild": {**wanted, "imageRef": there}}

    async def _resize(
        self, request: DoorRequest, routing: PodRouting, pod: Pod, login: PodLogin
    ) -> None:
        flavor_id = str(request.body["resize"].get("flavorRef"))
        caller, settings = request.caller, self._settings
        flavor = await self._clouds.engine.read(
            lambda tx: flavors.for_resize(
                tx, flavor_id, routing.project_id, is_admin=caller.is_admin
            )
        )
        own = await self._tenants.of_project(pod, routing.project_id)
        await self._pushing.flavor(pod, own, flavor)

        def work(tx: Tx) -> None:
            found = quotas.limits(tx, routing.project_id, quotas.defaults(settings.computing))
            limits = DoorLimits(found.servers, found.vcpus, found.memory_mb)
            self._grow(tx, routing, DoorAmounts(flavor.vcpus, flavor.memory_mb), limits)

        await self._clouds.engine.write(work)

    async def _extend(self, routing: PodRouting, size_gb: int) -> None:
        settings = self._settings

        def work(tx: Tx) -> None:
            default = volume_quotas.defaults(settings.volumes)
            found = volume_quotas.limits(tx, routing.project_id, default)
            limits = DoorLimits(found.volumes, size_gb=found.gigabytes)
            self._grow(tx, routing, DoorAmounts(size_gb=size_gb), limits)

        await self._clouds.engine.write(work)

    def _grow(self, tx: Tx, routing: PodRouting, wanted: DoorAmounts, limits: DoorLimits) -> None:
        """Count the larger ones of the amounts so far and the wanted ones."""
        has = DoorAmounts(routing.vcpus or 0, routing.memory_mb or 0, routing.size_gb or 0)
        both = DoorAmounts(
            max(has.vcpus, wanted.vcpus),
            max(has.memory_mb, wanted.memory_mb),
            max(has.size_gb, wanted.size_gb),
        )
        more = DoorAmounts(
            both.vcpus - has.vcpus, both.memory_mb - has.memory_mb, both.size_gb - has.size_gb
        )
        routings.demand_room(tx, routing, 0, more, limits)
        routings.recount(tx, routing.id, both, self._clouds.clock())

    async def _note(
        self, request: DoorRequest, routing: PodRouting, login: PodLogin, answer: PodAnswer
    ) -> None:
        """Record what an answer says about whether the resource exists."""
        path = request.target.partition("?")[0]
        is_whole = path == f"/{request.kind}s/{routing.top_id}"
        now = self._clouds.clock()
        if is_whole and answer.status == HTTPStatus.NOT_FOUND:
            await self._clouds.engine.write(lambda tx: routings.forget(tx, routing.id))
        elif is_whole and request.method == "DELETE" and answer.status < HTTPStatus.BAD_REQUEST:
            await self._clouds.engine.write(lambda tx: routings.begin_delete(tx, routing.id, now))
            look = replace(request, method="GET", target=path, body=None, headers={})
            try:
                after = await self._send(look, login, None)
            except PodSilent:
                return
            if after.status == HTTPStatus.NOT_FOUND:
                await self._clouds.engine.write(lambda tx: routings.forget(tx, routing.id))


def _counterpart(request: DoorRequest) -> tuple[str, str] | None:
    """Return the kind and id of what a request brings together with its resource."""
    body = request.body if isinstance(request.body, Mapping) else {}
    if request.kind == SERVER and request.method in ("POST", "PUT"):
        wanted = body.get("volumeAttachment")
        if isinstance(wanted, Mapping) and wanted.get("volumeId"):
            return VOLUME, str(wanted["volumeId"])
    wanted = body.get("os-attach")
    if request.kind == VOLUME and isinstance(wanted, Mapping) and wanted.get("instance_uuid"):
        return SERVER, str(wanted["instance_uuid"])
    return None
