"""Translate the bodies of actions for a pod, and count the amounts that the actions may add.

Always true: amounts that an action may add are counted before the pod is asked. Amounts that an
action frees count until the pod shows the change. If a request replaces all metadata, the door's
mark is kept.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus

from innkeeper.clients.pod_logins import PodLogin
from innkeeper.clients.pods import PodCall, PodSilent
from innkeeper.domain.compute import Flavor
from innkeeper.domain.door import (
    MARK,
    SERVER,
    DoorAmounts,
    DoorLimits,
    DoorRequest,
    Json,
    number_of,
    object_of,
)
from innkeeper.domain.errors import Invalid, NotFound
from innkeeper.domain.moves import ENDS_OF_RESIZES
from innkeeper.domain.pods import Pod, PodRouting
from innkeeper.domain.slices import Settings
from innkeeper.domain.volumes import VolumeType
from innkeeper.engine.pods import plans
from innkeeper.engine.pods.clouds import PodClouds
from innkeeper.engine.pods.provisioning import Provisioning
from innkeeper.engine.pods.tenants import COMPUTE, Tenants, decoded
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.accounts import keypairs
from innkeeper.systems.compute.flavors import flavors
from innkeeper.systems.pods import bindings, routings

IMAGES_OF_PODS = ("createImage", "createBackup", "os-volume_upload_image")
"""Actions that would create an image only in the pod."""
OTHER_GROUP = "This flavor or volume type belongs to other clouds. Create a new resource instead."


@dataclass(frozen=True, slots=True)
class Translated:
    """A body for a pod.

    If the action may change the amounts of the resource, ``changing`` is the resource's routing.
    For an action that writes another image, ``image_id`` is the image's id in this service.
    """

    body: Json
    changing: PodRouting | None = None
    image_id: str | None = None


@dataclass(frozen=True, slots=True)
class _Action:
    """A client's action on a resource, with its arguments."""

    request: DoorRequest
    name: str
    arguments: Mapping[str, Json]
    routing: PodRouting
    pod: Pod
    login: PodLogin

    def with_arguments(self, **changed: Json) -> dict[str, Json]:
        """Return the body with changed arguments. Arguments that are ``None`` are removed."""
        whole = {**self.arguments, **changed}
        kept = {name: each for name, each in whole.items() if each is not None}
        return {**object_of(self.request.body), self.name: kept}


class Translating:
    """Translates the bodies of actions."""

    def __init__(
        self, clouds: PodClouds, settings: Settings, tenants: Tenants, provisioning: Provisioning
    ) -> None:
        self._clouds = clouds
        self._settings = settings
        self._tenants = tenants
        self._provisioning = provisioning
        self._steps: Mapping[str, Callable[[_Action], Awaitable[Translated]]] = {
            "resize": self._resize,
            "os-extend": self._extend,
            "rebuild": self._rebuild,
            "rescue": self._rescue,
            "unshelve": self._unshelve,
            "os-retype": self._retype,
            "os-reimage": self._reimage,
        }

    async def translated(
        self, request: DoorRequest, routing: PodRouting, pod: Pod, login: PodLogin
    ) -> Translated:
        """Return the body of a request, translated for the pod.

        Raises :class:`Invalid`, :class:`QuotaExceeded`, :class:`Conflict` and :class:`PodSilent`.
        Raises :class:`NotFound` for a metadata item that is this service's mark, because users do
        not see it.
        """
        body, path = request.body, request.target.partition("?")[0]
        if path.endswith(f"/metadata/{MARK}"):
            raise NotFound("Metadata item was not found.")
        if not isinstance(body, dict):
            return Translated(body)
        if path.endswith("/action"):
            return await self._translated_action(request, body, routing, pod, login)
        await self._demand_items(request, body, routing, login)
        return Translated(_with_mark(request.method, path, body, routing))

    async def _demand_items(
        self, request: DoorRequest, body: Mapping[str, Json], routing: PodRouting, login: PodLogin
    ) -> None:
        """Raise :class:`QuotaExceeded` if a request would give a server too many metadata items.

        The pod does not check this, because the door has lifted its quota.
        """
        _, _, _, part, *key = f"{request.target.partition('?')[0]}/".split("/")
        items = body.get("meta" if any(key) else "metadata")
        if request.kind != SERVER or part != "metadata" or not isinstance(items, Mapping):
            return
        replaces = request.method == "PUT" and not any(key)
        kept = {} if replaces else await self._items(routing, login)
        await self._demand_room_for({**kept, **items}, routing)

    async def _demand_room_for(self, items: Mapping[str, Json], routing: PodRouting) -> None:
        settings, project_id = self._settings, routing.project_id
        await self._clouds.engine.read(
            lambda tx: plans.demand_items(tx, settings, project_id, items)
        )

    async def _items(self, routing: PodRouting, login: PodLogin) -> Mapping[str, Json]:
        """Return the metadata that a server has in its pod. Raises :class:`PodSilent`."""
        timeout_s = self._clouds.podding.pod_request_timeout_s
        call = PodCall(COMPUTE, "GET", f"/servers/{routing.bottom_id}/metadata", timeout_s)
        answer = await self._clouds.client.send(login, call)
        if answer.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            raise PodSilent.of_status(answer.status)
        found = decoded(answer).get("metadata") if answer.status == HTTPStatus.OK else None
        return found if isinstance(found, dict) else {}

    async def _translated_action(
        self,
        request: DoorRequest,
        body: Mapping[str, Json],
        routing: PodRouting,
        pod: Pod,
        login: PodLogin,
    ) -> Translated:
        for name in IMAGES_OF_PODS:
            if name in body:
                raise Invalid(
                    f"The action {name} is not served. Its image would be in one pod only."
                )
        # These actions add nothing, but they may change the amounts that count for the server.
        for name in ENDS_OF_RESIZES:
            if name in body:
                return Translated(body, await self._grow(routing, DoorAmounts(), DoorLimits(-1)))
        for name, step in self._steps.items():
            arguments = body.get(name)
            if isinstance(arguments, Mapping):
                return await step(_Action(request, name, arguments, routing, pod, login))
        return Translated(body)

    async def _resize(self, action: _Action) -> Translated:
        flavor_id = str(action.arguments.get("flavorRef")).rpartition("/")[2]
        request, routing = action.request, action.routing

        def look(tx: Tx) -> Flavor:
            is_admin = request.caller.is_admin
            flavor = flavors.for_resize(tx, flavor_id, routing.project_id, is_admin=is_admin)
            self._demand_group(tx, action.pod, flavor.extra_specs)
            return flavor

        flavor = await self._clouds.engine.read(look)
        own = await self._tenants.of_project(action.pod, routing.project_id)
        await self._provisioning.flavor(action.pod, own, flavor)
        wanted = DoorAmounts(flavor.vcpus, flavor.memory_mb, disk_gb=flavor.all_disk_gb)
        limits = await self._clouds.engine.read(
            lambda tx: plans.server_limits(tx, self._settings, routing.project_id)
        )
        body = action.with_arguments(flavorRef=flavor_id)
        return Translated(body, await self._grow(routing, wanted, limits))

    async def _extend(self, action: _Action) -> Translated:
        size_gb = number_of(action.arguments.get("new_size"))
        routing = action.routing
        limits = await self._clouds.engine.read(
            lambda tx: plans.limits_of_volume(tx, self._settings, routing, routing.project_id)
        )
        changing = await self._grow(routing, DoorAmounts(size_gb=size_gb), limits)
        return Translated(action.request.body, changing)

    def _demand_group(self, tx: Tx, pod: Pod, specs: Mapping[str, str]) -> None:
        """Raise :class:`Invalid` if these extra specs choose a group other than that of the pod."""
        keys = self._settings.podding.pod_affinity_keys
        if bindings.group_of_specs(tx, specs, keys) != pod.group:
            raise Invalid(OTHER_GROUP)

    async def _grow(
        self, routing: PodRouting, wanted: DoorAmounts, limits: DoorLimits
    ) -> PodRouting:
        now = self._clouds.clock()
        return await self._clouds.engine.write(
            lambda tx: routings.grow(tx, routing.id, wanted, limits, now)
        )

    async def _rebuild(self, action: _Action) -> Translated:
        arguments = _marked(action.arguments, action.routing)
        changed: dict[str, Json] = {"metadata": arguments.get("metadata")}
        if isinstance(changed["metadata"], Mapping):
            await self._demand_room_for(changed["metadata"], action.routing)
        key_name = action.arguments.get("key_name")
        if key_name is not None:
            caller = action.request.caller
            keypair = await self._clouds.engine.read(
                lambda tx: keypairs.for_boot(tx, caller.user_id, str(key_name))
            )
            own = await self._tenants.of_project(action.pod, action.routing.project_id)
            changed["key_name"] = await self._provisioning.keypair(action.pod, own, keypair)
        image_id = None
        if action.arguments.get("imageRef"):
            image_id, changed["imageRef"] = await self._image(action, "imageRef")
        body = action.with_arguments(**changed)
        if key_name is None and "key_name" in action.arguments:
            # A null in the request removes the key pair.
            body["rebuild"] = {**object_of(body["rebuild"]), "key_name": None}
        return Translated(body, image_id=image_id)

    async def _rescue(self, action: _Action) -> Translated:
        if not action.arguments.get("rescue_image_ref"):
            return Translated(action.request.body)
        _, there = await self._image(action, "rescue_image_ref")
        return Translated(action.with_arguments(rescue_image_ref=there))

    async def _reimage(self, action: _Action) -> Translated:
        if not action.arguments.get("image_id"):
            return Translated(action.request.body)
        image_id, there = await self._image(action, "image_id")
        return Translated(action.with_arguments(image_id=there), image_id=image_id)

    async def _image(self, action: _Action, field: str) -> tuple[str | None, str]:
        """Return the id of an image in this service, and its id in the pod."""
        caller, ref = action.request.caller, action.arguments[field]
        image_id, name = await self._clouds.engine.read(lambda tx: plans.image_of(tx, ref, caller))
        return image_id, await self._provisioning.image(action.pod, action.login, name or "")

    async def _unshelve(self, action: _Action) -> Translated:
        zone = action.arguments.get("availability_zone")
        if zone is None:
            return Translated(action.request.body)
        if zone != action.pod.az_name:
            raise Invalid("A server cannot leave its availability zone.")
        there = action.pod.pod_az_name or None
        body = action.with_arguments(availability_zone=there)
        return Translated(body if body["unshelve"] else {**body, "unshelve": None})

    async def _retype(self, action: _Action) -> Translated:
        caller, wanted = action.request.caller, str(action.arguments.get("new_type"))

        def look(tx: Tx) -> VolumeType:
            kind = plans.type_of(tx, caller, wanted)
            self._demand_group(tx, action.pod, kind.extra_specs)
            return kind

        kind = await self._clouds.engine.read(look)
        own = await self._tenants.of_project(action.pod, action.routing.project_id)
        await self._provisioning.volume_type(action.pod, own, kind)
        settings, row_id, now = self._settings, action.routing.id, self._clouds.clock()
        project_id = action.routing.project_id

        def work(tx: Tx) -> PodRouting:
            limits = plans.volume_limits(tx, settings, project_id, kind)
            return routings.retype(tx, row_id, kind.uuid, limits, now)

        changing = await self._clouds.engine.write(work)
        return Translated(action.with_arguments(new_type=kind.name), changing)


def _with_mark(method: str, path: str, body: Mapping[str, Json], routing: PodRouting) -> Json:
    """Return the body of a request other than an action, changed so that the mark is kept."""
    if method == "PUT":
        return {
            name: _marked(each, routing) if isinstance(each, dict) else each
            for name, each in _marked(body, routing).items()
        }
    metadata = body.get("metadata")
    if not path.endswith("/metadata") or not isinstance(metadata, dict):
        return body
    # The pod adds these items to the resource's metadata.
    return {**body, "metadata": {name: each for name, each in metadata.items() if name != MARK}}


def _marked(fields: Mapping[str, Json], routing: PodRouting) -> Mapping[str, Json]:
    """Return the fields. If they have metadata, add this service's mark to it."""
    metadata = fields.get("metadata")
    if not isinstance(metadata, dict):
        return fields
    # The mark of the create is not stored any more. But any mark tells that the resource is this
    # service's.
    return {**fields, "metadata": {**metadata, MARK: routing.top_id}}
