"""Attachments and transfers of volumes, which are stored only in the volumes' pods.

Always true: the door (gateway) stores no attachments and no transfers. It looks for them in the
pods of the caller's volumes, and shows only those of volumes that it knows. A project can accept a
volume only if its quota has room for the volume. This is checked in the transaction that begins the
transfer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from http import HTTPStatus

import msgspec
import structlog

from innkeeper.clients.pods import PodCall, PodSilent
from innkeeper.domain.compute import UNLIMITED
from innkeeper.domain.door import (
    SERVER,
    TAKES,
    VOLUME,
    DoorAnswer,
    DoorCaller,
    DoorLimits,
    DoorRequest,
    Json,
    object_of,
)
from innkeeper.domain.errors import Invalid, NotFound, Unavailable
from innkeeper.domain.pods import Pod, PodRouting
from innkeeper.domain.slices import Settings
from innkeeper.engine.pods import plans, shown
from innkeeper.engine.pods.clouds import PodClouds
from innkeeper.engine.pods.creating import AWAY, RETRY_AFTER_S, UNKNOWN, Creating
from innkeeper.engine.pods.forwarding import APART, IN_DOUBT
from innkeeper.engine.pods.lookups import Lookups
from innkeeper.engine.pods.shown import DoorView
from innkeeper.engine.pods.tenants import BLOCK_STORAGE, Tenants
from innkeeper.engine.retry import BINDING_ATTEMPTS_MAX, BINDINGS, again
from innkeeper.store.transactions import Tx
from innkeeper.systems.pods import routings

LOG = structlog.get_logger("innkeeper.pods")

Check = Callable[[PodRouting], None]


@dataclass(frozen=True, slots=True)
class VolumePart:
    """A kind of part of a volume: an attachment or a transfer.

    ``key`` and ``keys`` are the keys of one part and of a list in bodies. ``volume_field`` is the
    field with the volume's id.
    """

    key: str
    keys: str
    volume_field: str


ATTACHMENT = VolumePart("attachment", "attachments", "volume_uuid")
TRANSFER = VolumePart("transfer", "transfers", "volume_id")


class VolumeParts:
    """Makes, shows, lists and changes attachments and transfers in pods."""

    def __init__(
        self, clouds: PodClouds, settings: Settings, tenants: Tenants, creating: Creating
    ) -> None:
        self._clouds = clouds
        self._settings = settings
        self._tenants = tenants
        self._creating = creating
        self._lookups = Lookups(clouds, tenants)

    async def create(self, request: DoorRequest, part: VolumePart, check: Check) -> DoorAnswer:
        """Create an attachment or transfer in the pod of its volume."""
        fields = object_of(object_of(request.body)[part.key])
        uuid, server = str(fields[part.volume_field]), fields.get("instance_uuid")

        def look(tx: Tx) -> PodRouting:
            found = routings.place_of(tx, uuid, VOLUME)
            check(found)
            if server is not None and part is ATTACHMENT:
                try:
                    beside = routings.place_of(tx, str(server), SERVER)
                except NotFound as error:
                    raise Invalid(error.message) from error
                if (beside.pod_id, beside.project_id) != (found.pod_id, found.project_id):
                    raise Invalid(APART)
            return found

        routing = await self._clouds.engine.read(look)
        pod = next(each for each in await self._lookups.every_pod() if each.id == routing.pod_id)
        return await self._send(request, routing, pod)

    async def forward(self, request: DoorRequest, part: VolumePart, check: Check) -> DoorAnswer:
        """Send a request for an attachment or transfer to the pod that has it."""
        routing, pod = await self._find(request, part, await self._homes(request.caller))
        check(routing)
        return await self._send(request, routing, pod)

    async def _homes(self, caller: DoorCaller) -> list[Pod]:
        """Return the pods that may have attachments or transfers of the caller's volumes."""
        if caller.is_admin:
            return await self._lookups.every_pod()
        return await self._lookups.homes(caller.project_id)

    async def _find(
        self, request: DoorRequest, part: VolumePart, homes: Sequence[Pod]
    ) -> tuple[PodRouting, Pod]:
        """Return the volume to which a part belongs, and the volume's pod.

        Raises :class:`NotFound` if no pod has the part, and :class:`Unavailable` if a pod that did
        not answer may have it.
        """
        caller, target = request.caller, _place(request.target)
        project_id = None if caller.is_admin else caller.project_id
        told, missing = await self._lookups.ask(
            homes, project_id, BLOCK_STORAGE, target, request.headers
        )
        for pod, each in told:
            routing = await self._volume(_volume_of(each.get(part.key)))
            if routing is not None and routing.pod_id == pod.id:
                return routing, pod
        if missing:
            raise Unavailable(AWAY, retry_after_s=RETRY_AFTER_S)
        raise NotFound(
            f"{part.key.capitalize()} {target.rpartition('/')[2][:64]} could not be found."
        )

    async def _volume(self, uuid: str) -> PodRouting | None:
        try:
            return await self._clouds.engine.read(lambda tx: routings.place_of(tx, uuid, VOLUME))
        except NotFound:
            return None

    async def rows(
        self,
        request: DoorRequest,
        part: VolumePart,
        project_id: str | None,
        query: Mapping[str, str],
    ) -> tuple[list[Mapping[str, Json]], list[str]]:
        """Return all parts with details, and the names of pods that did not answer.

        Parts are in the descending order of their ids.
        """
        homes = await self._lookups.homes(project_id)
        every = {"all_tenants": "1"} if project_id is None else {}
        collection = request.target.partition("?")[0].split("/")[1]
        answers, missing = await self._lookups.rows(
            homes,
            project_id,
            BLOCK_STORAGE,
            f"/{collection}/detail",
            {**query, **every},
            request.headers,
            part.keys,
        )
        ids = {_volume_of(each) for _, rows in answers for each in rows}
        known = await self._lookups.volumes(project_id, ids)
        found: dict[str, Mapping[str, Json]] = {}
        for pod, rows in answers:
            try:
                for each in rows:
                    routing = known.get(_volume_of(each))
                    if routing is not None and routing.pod_id == pod.id:
                        view = _view(request, routing, pod)
                        found[str(each["id"])] = object_of(view.change(each))
            except PodSilent as error:
                LOG.warning("pod_list_failed", pod=pod.pod_name, reason=str(error))
                missing.append(pod)
        newest_first = sorted(found.values(), key=lambda each: str(each["id"]), reverse=True)
        return newest_first, [each.pod_name for each in missing]

    async def accept(self, request: DoorRequest) -> DoorAnswer:
        """Accept a transfer: let the caller's project take over a volume."""
        target = request.target.removesuffix("/accept")
        as_admin = replace(request, target=target, caller=replace(request.caller, is_admin=True))
        routing, pod = await self._find(as_admin, TRANSFER, await self._lookups.every_pod())
        project_id = request.caller.project_id
        try:
            login = await self._tenants.of_project(pod, project_id)
            await self._tenants.lift_quota(pod, login, BLOCK_STORAGE)
        except PodSilent as error:
            raise Unavailable(AWAY, retry_after_s=RETRY_AFTER_S) from error
        begun = await self._begin(request, routing)
        call = self._call(request)
        try:
            answer = await self._clouds.client.send(login, call)
            status, raw, headers = shown.answer_of(answer, _view(request, begun, pod), VOLUME)
        except PodSilent as error:
            LOG.warning("pod_accept_failed", pod=pod.pod_name, reason=str(error))
            if not error.may_have_arrived:
                await self._clouds.engine.write(lambda tx: routings.forget(tx, begun.id))
                raise Unavailable(AWAY, retry_after_s=RETRY_AFTER_S) from error
            # The periodic task finds out which project owns the volume.
            raise Unavailable(UNKNOWN, retry_after_s=RETRY_AFTER_S) from error
        if status >= HTTPStatus.BAD_REQUEST:
            await self._clouds.engine.write(lambda tx: routings.forget(tx, begun.id))
        else:
            await self._creating.settle(begun, [routing.top_id], pod)
        return DoorAnswer(status, raw, headers)

    async def _begin(self, request: DoorRequest, routing: PodRouting) -> PodRouting:
        now, caller, settings = self._clouds.clock(), request.caller, self._settings
        # A project may accept a volume that it has offered itself. Such a volume already counts in
        # its quota.
        is_new = routing.project_id != caller.project_id
        wanted = replace(
            routing,
            top_id=TAKES + routing.top_id,
            bottom_id=None,
            project_id=caller.project_id,
            user_id=caller.user_id,
            created_at=now,
            updated_at=now,
            number=int(is_new),
            group_name=None,
            deleted_at=None,
            changing_at=None,
            server_uuid=None,
        )

        def work(tx: Tx) -> PodRouting:
            limits = DoorLimits(UNLIMITED)
            if is_new:
                limits = plans.limits_of_volume(tx, settings, routing, caller.project_id)
            return routings.begin(tx, wanted, limits)

        return await again(lambda: self._clouds.engine.write(work), BINDINGS, BINDING_ATTEMPTS_MAX)

    async def _send(self, request: DoorRequest, routing: PodRouting, pod: Pod) -> DoorAnswer:
        project_id = None if request.caller.is_admin else routing.project_id
        try:
            login = await self._lookups.login(pod, project_id)
            answer = await self._clouds.client.send(login, self._call(request))
            status, raw, headers = shown.answer_of(answer, _view(request, routing, pod), VOLUME)
        except PodSilent as error:
            LOG.warning("pod_forward_failed", pod=pod.pod_name, reason=str(error))
            is_known = request.method == "GET" or not error.may_have_arrived
            raise Unavailable(
                AWAY if is_known else IN_DOUBT, retry_after_s=RETRY_AFTER_S
            ) from error
        return DoorAnswer(status, raw, headers)

    def _call(self, request: DoorRequest) -> PodCall:
        raw = b"" if request.body is None else msgspec.json.encode(request.body)
        timeout_s = self._clouds.podding.pod_request_timeout_s
        return PodCall(
            BLOCK_STORAGE, request.method, request.target, timeout_s, raw, request.headers
        )


def _view(request: DoorRequest, routing: PodRouting, pod: Pod) -> DoorView:
    return DoorView.of(pod, routing, request.address, is_admin=request.caller.is_admin)


def _place(target: str) -> str:
    """Return the path of the attachment or transfer itself, without a subpath or query."""
    parts: Sequence[str] = target.partition("?")[0].split("/")
    return "/".join(parts[:3])


def _volume_of(told: Json) -> str:
    uuid = told.get("volume_id") if isinstance(told, dict) else None
    return uuid if isinstance(uuid, str) else ""
