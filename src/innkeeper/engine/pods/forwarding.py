"""Send requests for one server or volume to the pod that has it.

Always true: the pod gets the complete body. Only the ids and names that differ in the pod are
translated. A volume can be attached to a server only if both are in the same pod. If a pod answers
that it does not know a resource, the resource is forgotten.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from http import HTTPStatus

import msgspec
import structlog

from innkeeper.clients.pod_logins import PodLogin
from innkeeper.clients.pods import PodAnswer, PodCall, PodSilent
from innkeeper.domain.door import SERVER, VOLUME, DoorAnswer, DoorRequest, Json
from innkeeper.domain.errors import Invalid, NotFound, Unavailable
from innkeeper.domain.moves import FORCE_DELETE
from innkeeper.domain.pods import Pod, PodRouting
from innkeeper.domain.slices import Settings
from innkeeper.engine.pods import plans, shown
from innkeeper.engine.pods.acknowledged_creates import AcknowledgedCreates
from innkeeper.engine.pods.boot_volumes import BootVolumes
from innkeeper.engine.pods.checking import Checking
from innkeeper.engine.pods.clouds import PodClouds
from innkeeper.engine.pods.creating import AWAY, RETRY_AFTER_S
from innkeeper.engine.pods.provisioning import Provisioning
from innkeeper.engine.pods.shown import DoorView
from innkeeper.engine.pods.tenants import SERVICES, Tenants, is_gone
from innkeeper.engine.pods.translating import Translating
from innkeeper.store.transactions import Tx
from innkeeper.systems.pods import boot_volumes, pods, routings
from innkeeper.systems.pods.routings import LostResource

LOG = structlog.get_logger("innkeeper.pods")
APART = "The server and the volume are not in the same pod."
IN_DOUBT = "It is not known whether the request was carried out. Check the resource first."
FORCED = {SERVER: FORCE_DELETE, VOLUME: "os-force_delete"}
"""The actions that delete a resource, by the kind of resource."""

Check = Callable[[PodRouting], None]


class Forwarding:
    """Forwards requests for resources that pods have."""

    def __init__(
        self,
        clouds: PodClouds,
        settings: Settings,
        tenants: Tenants,
        provisioning: Provisioning,
        acknowledged: AcknowledgedCreates,
    ) -> None:
        self._clouds = clouds
        self._acknowledged = acknowledged
        self._is_one_of_several = settings.is_one_of_several
        self._tenants = tenants
        self._translating = Translating(clouds, settings, tenants, provisioning)
        self._checking = Checking(clouds, tenants)
        self._boot_volumes = BootVolumes(clouds, tenants)

    async def forward(self, request: DoorRequest, uuid: str, check: Check) -> DoorAnswer:
        """Send a request for a resource to its pod.

        ``check`` gets the resource's routing, and raises an error if the caller may not send the
        request. Raises :class:`NotFound`, :class:`Invalid`, :class:`QuotaExceeded` and
        :class:`Unavailable`.
        """

        def look(tx: Tx) -> tuple[PodRouting, Pod, Sequence[PodRouting]]:
            found = routings.place_of(tx, uuid, request.kind)
            check(found)
            pod = pods.by_id(tx, found.pod_id)
            assert pod is not None, "a pod with routings is not deleted"
            volumes = boot_volumes.open_of(tx, uuid) if _deletes(request, found) else ()
            return found, pod, volumes

        routing, pod, volumes = await self._clouds.engine.read(look)
        if volumes:
            await self._learn_volumes(volumes[0], pod)
        await self._check_volumes(request, routing)
        try:
            login = await self._login(request, routing, pod)
            translated = await self._translating.translated(request, routing, pod, login)
        except PodSilent as error:
            LOG.warning("pod_forward_failed", pod=pod.pod_name, reason=str(error))
            raise Unavailable(AWAY, retry_after_s=RETRY_AFTER_S) from error
        rebuilt = routing
        if translated.image_id is not None:
            # Show the new image before the pod is asked, because the outcome of a rebuild may stay
            # unknown.
            rebuilt = replace(routing, image_id=translated.image_id)
            await self._show_image(rebuilt)
        try:
            answer = await self._send(request, login, translated.body)
            view = DoorView.of(pod, rebuilt, request.address, is_admin=request.caller.is_admin)
            status, raw, headers = shown.answer_of(answer, view, request.kind)
            await self._note(request, routing, login, answer)
        except PodSilent as error:
            LOG.warning("pod_forward_failed", pod=pod.pod_name, reason=str(error))
            if rebuilt is not routing and not error.may_have_arrived:
                await self._show_image(routing)
            raise await self._unavailable(request, routing, error) from error
        if status >= HTTPStatus.BAD_REQUEST:
            if translated.changing is not None:
                await self._uncount(translated.changing, pod)
            if rebuilt is not routing:
                await self._show_image(routing)
        return DoorAnswer(status, raw, headers)

    async def _show_image(self, routing: PodRouting) -> None:
        """Record the image of a server or volume, by the image's id in this service."""
        row_id, image_id, now = routing.id, routing.image_id, self._clouds.clock()
        await self._clouds.engine.write(lambda tx: routings.show_image(tx, row_id, image_id, now))

    async def _learn_volumes(self, volume: PodRouting, pod: Pod) -> None:
        """Learn which volumes the pod made for a server, before the server is deleted.

        ``volume`` is the open routing of one of these volumes.
        """
        try:
            await self._boot_volumes.learn(volume, pod)
        except PodSilent as error:
            LOG.warning("pod_volumes_not_learned", pod=pod.pod_name, reason=str(error))
            raise Unavailable(AWAY, retry_after_s=RETRY_AFTER_S) from error

    async def _unavailable(
        self, request: DoorRequest, routing: PodRouting, error: PodSilent
    ) -> Unavailable:
        """Return the error for the client, after the pod gave no answer.

        If a delete may have arrived, note it, so that a later check finds out whether it was done.
        """
        if request.method == "GET" or not error.may_have_arrived:
            return Unavailable(AWAY, retry_after_s=RETRY_AFTER_S)
        if _deletes(request, routing):
            now = self._clouds.clock()
            await self._clouds.engine.write(lambda tx: routings.begin_delete(tx, routing.id, now))
        return Unavailable(IN_DOUBT, retry_after_s=RETRY_AFTER_S)

    async def _uncount(self, changing: PodRouting, pod: Pod) -> None:
        """Count the real amounts of a resource again, because its pod refused the change."""
        try:
            await self._checking.check(changing, pod)
        except PodSilent as error:
            # The periodic task looks again.
            LOG.warning("pod_not_checked", pod=pod.pod_name, reason=str(error))

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
        """Raise :class:`Invalid` if a request would attach a volume to a server in another pod."""
        wanted = _counterpart(request)
        if wanted is None:
            return
        kind, uuid = wanted

        def look(tx: Tx) -> PodRouting:
            if kind == VOLUME:
                return plans.volume_of(tx, request.caller, uuid)
            return routings.place_of(tx, uuid, SERVER)

        try:
            other = await self._clouds.engine.read(look)
        except NotFound as error:
            raise Invalid(error.message) from error
        if other.pod_id != routing.pod_id or other.project_id != routing.project_id:
            raise Invalid(APART)

    async def _note(
        self, request: DoorRequest, routing: PodRouting, login: PodLogin, answer: PodAnswer
    ) -> None:
        """Record what the answer shows: an attachment, a missing resource, or a begun delete."""
        deletes, now = _deletes(request, routing), self._clouds.clock()
        wanted = _counterpart(request)
        if wanted is not None and answer.status < HTTPStatus.BAD_REQUEST:
            pair = {request.kind: routing.top_id, wanted[0]: wanted[1]}
            await self._clouds.engine.write(
                lambda tx: boot_volumes.attached(tx, pair[VOLUME], pair[SERVER], now)
            )
        if (deletes or _is_whole(request, routing)) and is_gone(answer):
            await self._clouds.engine.write(lambda tx: routings.lose(tx, routing, now))
        elif deletes and answer.status < HTTPStatus.BAD_REQUEST:
            await self._clouds.engine.write(lambda tx: routings.begin_delete(tx, routing.id, now))
            ending = self._end(request, routing, login)
            if self._is_one_of_several:
                await ending
            else:
                self._acknowledged.follow(routing.project_id, ending)

    async def _end(self, request: DoorRequest, routing: PodRouting, login: PodLogin) -> None:
        """Forget a resource if its pod has deleted it. Otherwise, a periodic task does so later."""
        target = f"/{request.kind}s/{routing.top_id}"
        look = replace(request, method="GET", target=target, body=None, headers={})
        try:
            is_over = is_gone(await self._send(look, login, None))
        except PodSilent as error:
            LOG.warning("pod_delete_not_seen", pod=login.name, reason=str(error))
            return
        if is_over:
            lost = LostResource(routing, self._clouds.clock())
            engine = self._clouds.engine
            recorded = engine.write_with_next(routings.lose_together, lost)
            if self._is_one_of_several:
                # The client waits for this commit.
                engine.hasten()
            await self._acknowledged.recorded(recorded)


def _is_whole(request: DoorRequest, routing: PodRouting) -> bool:
    """Return whether the path of a request names the resource itself, and not a part of it."""
    return request.target.partition("?")[0] == f"/{request.kind}s/{routing.top_id}"


def _deletes(request: DoorRequest, routing: PodRouting) -> bool:
    """Return whether a request deletes its resource."""
    if _is_whole(request, routing):
        return request.method == "DELETE"
    is_action = request.target.partition("?")[0].endswith("/action")
    return is_action and isinstance(request.body, Mapping) and FORCED[request.kind] in request.body


def _counterpart(request: DoorRequest) -> tuple[str, str] | None:
    """Return the kind and id of the other resource in a request that attaches a volume."""
    body = request.body if isinstance(request.body, Mapping) else {}
    if request.kind == SERVER and request.method in ("POST", "PUT"):
        wanted = body.get("volumeAttachment")
        if isinstance(wanted, Mapping) and wanted.get("volumeId"):
            return VOLUME, str(wanted["volumeId"])
    wanted = body.get("os-attach")
    if request.kind == VOLUME and isinstance(wanted, Mapping) and wanted.get("instance_uuid"):
        return SERVER, str(wanted["instance_uuid"])
    return None
