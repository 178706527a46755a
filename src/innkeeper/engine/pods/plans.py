"""Read the quotas for a create, and the objects that it names, such as flavor, image and key pair.

Always true: if the caller may not use one of these objects at the door (gateway), the request is
refused before any pod is asked.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from innkeeper.domain.compute import COUNTS_REVERSED, Flavor
from innkeeper.domain.door import (
    MARK,
    SERVER,
    VOLUME,
    DoorAmounts,
    DoorCaller,
    DoorLimits,
    DoorRequest,
    Json,
    number_of,
    object_of,
)
from innkeeper.domain.errors import Invalid, NotFound
from innkeeper.domain.grouping import ServerGroup
from innkeeper.domain.ids import canonical_uuid
from innkeeper.domain.keypairs import Keypair
from innkeeper.domain.pods import DISK_GB, MEMORY_MB, VCPUS, VOLUME_GB, PodRequest, PodRouting
from innkeeper.domain.slices import Settings
from innkeeper.domain.volumes import VolumeType
from innkeeper.engine.pods import hints
from innkeeper.engine.pods.devices import IMAGE, Device, devices_of
from innkeeper.engine.pods.hints import Hinted
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.accounts import keypairs, quotas
from innkeeper.systems.compute.flavors import flavors, images
from innkeeper.systems.compute.grouping import groups
from innkeeper.systems.compute.servers import labels
from innkeeper.systems.pods import bindings, pod_groups, pods, routings
from innkeeper.systems.pods.boot_volumes import BootVolume
from innkeeper.systems.volumes import quotas as volume_quotas
from innkeeper.systems.volumes import types

SERVERS_MAX = 100
OTHER_TAGS = (
    "The volume type {} and the flavor have different tags. So the server and the volume would be "
    "in different pods."
)
ELSEWHERE = "The volumes and servers that the request names are not all in the same pod."


@dataclass(frozen=True, slots=True)
class Plan:
    """A create that was checked. ``asked`` is the input for the choice of a pod.

    If only one pod is possible, ``must`` is its row id. This pod has volumes that the request
    names, the server group of the request, or a resource that the new resource must be beside. With
    ``follows_group``, nothing but the server group requires the pod ``must``. ``kind`` is the
    volume type that the request names, or the type of the volume that is copied.
    """

    request: DoorRequest
    asked: PodRequest
    number: int
    one: DoorAmounts
    limits: DoorLimits
    flavor: Flavor | None = None
    kind: VolumeType | None = None
    keypair: Keypair | None = None
    image_name: str | None = None
    image_id: str | None = None
    must: int | None = None
    server_group: ServerGroup | None = None
    follows_group: bool = False
    hinted: Hinted = field(default_factory=Hinted)
    device_images: Mapping[str, str] = field(default_factory=dict)
    """The names of the images from which block devices are made, by the images' ids in the body."""
    device_types: Mapping[str, VolumeType] = field(default_factory=dict)
    """The volume types of new block devices, by the types' names in the body."""
    boot_volumes: Sequence[BootVolume] = ()
    """The volumes that the pod makes for each server."""

    @property
    def key(self) -> str:
        """The key under which bodies have the resource."""
        return self.request.kind

    @property
    def fields(self) -> Mapping[str, Json]:
        """The fields of the resource in the request's body."""
        return self.request.fields


def plan(tx: Tx, settings: Settings, request: DoorRequest) -> Plan:
    """Return the plan of a create.

    Raises :class:`Invalid`, :class:`NotFound`, or :class:`UnknownPlace` for a wrong request.
    """
    return (_server if request.kind == SERVER else _volume)(tx, settings, request)


def _server(tx: Tx, settings: Settings, request: DoorRequest) -> Plan:
    fields, caller = request.fields, request.caller
    flavor_id = str(fields["flavorRef"]).rpartition("/")[2]
    is_admin = caller.is_admin
    flavor = flavors.for_resize(tx, flavor_id, caller.project_id, is_admin=is_admin)
    name = fields.get("key_name")
    number = _number(fields)
    demand_items(tx, settings, caller.project_id, object_of(fields.get("metadata") or {}))
    devices = devices_of(fields)
    image_id, image_name = image_of(tx, fields.get("imageRef"), caller)
    images = _device_images(tx, caller, devices)
    kinds = {
        each.type_name: type_of(tx, caller, each.type_name) for each in devices if each.type_name
    }
    new = [_boot_volume(tx, settings, request, each, kinds) for each in devices if each.is_new]
    amounts = {
        VCPUS: float(flavor.vcpus * number),
        MEMORY_MB: float(flavor.memory_mb * number),
        DISK_GB: float(flavor.all_disk_gb * number),
    }
    if new:
        amounts[VOLUME_GB] = float(sum(each.size_gb for each in new) * number)
    asked = _pod_request(tx, settings, request, flavor.extra_specs, amounts)
    for kind in kinds.values():
        if _group_of(tx, settings, kind.extra_specs) != asked.group:
            raise Invalid(OTHER_TAGS.format(kind.name))
    group = _group(tx, request)
    named = [each.uuid for each in devices if each.source == VOLUME and each.uuid]
    hinted = hints.read(tx, request)
    must = _home({volume_of(tx, caller, each).pod_id for each in named}, hinted)
    has_home = must is not None
    if group is not None:
        beside = pod_groups.pod_of(tx, group.uuid)
        if None not in (must, beside) and must != beside:
            raise Invalid(pod_groups.APART)
        must = must if beside is None else beside
    return Plan(
        request,
        asked,
        number,
        DoorAmounts(flavor.vcpus, flavor.memory_mb, disk_gb=flavor.all_disk_gb),
        server_limits(tx, settings, caller.project_id),
        flavor=flavor,
        keypair=keypairs.for_boot(tx, caller.user_id, str(name)) if name else None,
        image_id=image_id,
        image_name=image_name,
        must=must,
        server_group=group,
        follows_group=group is not None and not has_home,
        hinted=hinted,
        device_images=images,
        device_types=kinds,
        boot_volumes=new,
    )


def _group(tx: Tx, request: DoorRequest) -> ServerGroup | None:
    wanted = hints.group_of(object_of(request.body))
    return None if wanted is None else groups.of_project(tx, wanted, request.caller.project_id)


def _number(fields: Mapping[str, Json]) -> int:
    least = number_of(fields.get("min_count") or 1)
    most = number_of(fields.get("max_count") or least)
    if least > most:
        raise Invalid(COUNTS_REVERSED)
    if most > SERVERS_MAX:
        raise Invalid(f"max_count must be <= {SERVERS_MAX}")
    return most


def _volume(tx: Tx, settings: Settings, request: DoorRequest) -> Plan:
    fields, caller = request.fields, request.caller
    name, source = fields.get("volume_type"), str(fields.get("source_volid") or "")
    kind = type_of(tx, caller, str(name)) if name else None
    image_id, image_name = image_of(tx, fields.get("imageRef") or fields.get("image_id"), caller)
    size_gb, hinted = number_of(fields.get("size")), hints.read(tx, request)
    copied = volume_of(tx, caller, source) if source else None
    if copied is not None:
        # Without a size and a type, a copy has those of its source. It shows the source's image.
        size_gb = size_gb or copied.size_gb or 0
        image_id = image_id or copied.image_id
        if kind is None and copied.type_uuid is not None:
            kind = types.found(tx, copied.type_uuid)
    must = _home(() if copied is None else (copied.pod_id,), hinted)
    specs = {} if kind is None else kind.extra_specs
    asked = _pod_request(tx, settings, request, specs, {VOLUME_GB: float(size_gb)})
    home = None if must is None or name else pods.by_id(tx, must)
    if home is not None:
        # Without a type, nothing but the pod's other resources chooses the group of pods.
        asked = replace(asked, group=home.group)
    return Plan(
        request,
        asked,
        1,
        DoorAmounts(size_gb=size_gb),
        volume_limits(tx, settings, caller.project_id, kind),
        kind=kind,
        image_id=image_id,
        image_name=image_name,
        must=must,
        hinted=hinted,
    )


def _pod_request(
    tx: Tx,
    settings: Settings,
    request: DoorRequest,
    specs: Mapping[str, str],
    amounts: Mapping[str, float],
) -> PodRequest:
    zone = str(request.fields.get("availability_zone") or "") or None
    if zone is not None and ":" in zone:
        raise Invalid("Servers cannot be placed on named hosts. Name only an availability zone.")
    group = _group_of(tx, settings, specs)
    return PodRequest(request.caller.project_id, group, zone, amounts)


def _group_of(tx: Tx, settings: Settings, specs: Mapping[str, str]) -> str:
    return bindings.group_of_specs(tx, specs, settings.podding.pod_affinity_keys)


def server_limits(tx: Tx, settings: Settings, project_id: str) -> DoorLimits:
    """Return the quotas of a project for servers."""
    found = quotas.limits(tx, project_id, quotas.defaults(settings.computing))
    members_max = found.server_group_members
    return DoorLimits(found.servers, found.vcpus, found.memory_mb, group_members=members_max)


def demand_items(tx: Tx, settings: Settings, project_id: str, items: Mapping[str, Json]) -> None:
    """Raise :class:`QuotaExceeded` if a server of a project would have too many metadata items.

    The mark of this service does not count.
    """
    if items:
        found = quotas.limits(tx, project_id, quotas.defaults(settings.computing))
        labels.check_metadata(items.keys() - {MARK}, found.metadata_items)


def volume_limits(
    tx: Tx, settings: Settings, project_id: str, kind: VolumeType | None
) -> DoorLimits:
    """Return a project's quotas for volumes, including those of a volume type."""
    found = volume_quotas.limits(tx, project_id, volume_quotas.defaults(settings.volumes))
    limits = DoorLimits(
        found.volumes, size_gb=found.gigabytes, per_volume_gb=found.per_volume_gigabytes
    )
    if kind is None:
        return limits
    return replace(
        limits,
        type_name=kind.name,
        type_number=found.of_type("volumes", kind.uuid),
        type_size_gb=found.of_type("gigabytes", kind.uuid),
    )


def limits_of_volume(
    tx: Tx, settings: Settings, routing: PodRouting, project_id: str
) -> DoorLimits:
    """Return a project's quotas for an existing volume, including the quotas of its type."""
    kind = None if routing.type_uuid is None else types.found(tx, routing.type_uuid)
    return volume_limits(tx, settings, project_id, kind)


def type_of(tx: Tx, caller: DoorCaller, name: str) -> VolumeType:
    """Return the volume type that a caller names. Raises :class:`NotFound`."""
    return types.named(tx, name, caller.project_id, is_admin=caller.is_admin)


def image_of(tx: Tx, ref: object, caller: DoorCaller) -> tuple[str | None, str | None]:
    """Return the id and the name of an image in this service."""
    if not ref:
        return None, None
    uuid = canonical_uuid(str(ref).rpartition("/")[2])
    try:
        image = images.get(tx, uuid or str(ref), caller.project_id, is_admin=caller.is_admin)
    except NotFound as error:
        raise Invalid(f"Image {str(ref)[:64]} could not be found.") from error
    if not image.name:
        raise Invalid("The image has no name, so it cannot be found in any pod.")
    return image.id, image.name


def _device_images(tx: Tx, caller: DoorCaller, devices: Sequence[Device]) -> dict[str, str]:
    refs = {each.uuid for each in devices if each.source == IMAGE and each.uuid is not None}
    return {ref: image_of(tx, ref, caller)[1] or "" for ref in sorted(refs)}


def _boot_volume(
    tx: Tx,
    settings: Settings,
    request: DoorRequest,
    device: Device,
    kinds: Mapping[str, VolumeType],
) -> BootVolume:
    caller, kind = request.caller, kinds.get(device.type_name or "")
    image_id = image_of(tx, device.uuid, caller)[0] if device.source == IMAGE else None
    limits = volume_limits(tx, settings, caller.project_id, kind)
    return BootVolume(device.size_gb, limits, None if kind is None else kind.uuid, image_id)


def _home(named: Collection[int], hinted: Hinted) -> int | None:
    """Return the row id of the pod with the resources that a new resource must be beside.

    ``named`` are the row ids of the pods of the volumes that the request names.
    """
    homes = {*named, *hinted.homes}
    if len(homes) > 1:
        raise Invalid(ELSEWHERE)
    return homes.pop() if homes else None


def volume_of(tx: Tx, caller: DoorCaller, uuid: str) -> PodRouting:
    """Return the routing of a volume. Raises :class:`Invalid` if the caller has no such volume."""
    try:
        found = routings.place_of(tx, str(uuid), VOLUME)
    except NotFound as error:
        raise Invalid(f"Volume {str(uuid)[:64]} could not be found.") from error
    if not caller.is_admin and found.project_id != caller.project_id:
        raise Invalid(f"Volume {str(uuid)[:64]} could not be found.")
    return found


def may_leave(tx: Tx, plan: Plan) -> bool:
    """Return whether the plan's server group may move to another pod.

    It may move if no server of the group is known.
    """
    return plan.server_group is not None and pod_groups.may_leave(tx, plan.server_group.uuid)


def others(tx: Tx, pod_id: int) -> frozenset[int]:
    """Return the row ids of all pods except ``pod_id``."""
    return frozenset(each.id for each in pods.every(tx) if each.id != pod_id)
