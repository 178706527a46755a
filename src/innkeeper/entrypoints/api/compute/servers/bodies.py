"""This module converts the body of ``POST /servers`` into a boot request for the compute system.

It checks the addresses, base64 data, block devices and hosts, which a schema cannot check. These
checks do not depend on how the body was decoded.

Always true: boots, build plans and explanations raise the same errors for an invalid body.
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
import json
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from innkeeper.domain.compute import COUNTS_REVERSED, BootRequest, Definitions
from innkeeper.domain.converters import converter_to
from innkeeper.domain.errors import Invalid
from innkeeper.domain.ids import ServerId, canonical_uuid
from innkeeper.entrypoints.api.compute.servers import devices
from innkeeper.entrypoints.api.request_checks import project_and_user
from innkeeper.entrypoints.api.routing import Call
from innkeeper.entrypoints.api.schema_types import TRUE_WORDS
from innkeeper.systems.compute.accounts import quotas
from innkeeper.systems.compute.boot import definitions
from innkeeper.systems.compute.grouping.hint_names import FILTER_HINTS
from innkeeper.systems.compute.grouping.hints import names_hosts
from innkeeper.systems.compute.servers import labels

HINT_KEYS = ("os:scheduler_hints", "OS-SCH-HNT:scheduler_hints")
HINTS_BYTES_MAX = 16 * 1024
"""The maximum total size of a request's hints in bytes. Every server of the request stores all
hints."""
NO_OLD_DEVICES = "use block_device_mapping_v2 instead of block_device_mapping."
NO_VOLUMES_ACROSS = "volumes are supported neither with build plans nor in other zones."
NO_NETWORKS = 'Networks are not managed here: "networks" must be "auto" or "none".'
FORCED_HOST = "os_compute_api:servers:create:forced_host"
NAMED_BATCH = "os_compute_api:servers:create:reservation_id"
NAME_CHARS_MAX = 255
_told_definitions = converter_to(Definitions)


class ServerCreateRequest(msgspec.Struct):
    """A decoded body of ``POST /servers``, which has passed only the checks of the schema."""

    name: str
    flavor: str
    image: str | None = None
    networks: Any = None
    devices: Sequence[Mapping[str, Any]] = msgspec.field(default_factory=list)
    has_old_devices: bool = False
    metadata: Mapping[str, str] = msgspec.field(default_factory=dict)
    tags: Sequence[str] = ()
    availability_zone: str | None = None
    host: str | None = None
    hypervisor_hostname: str | None = None
    hostname: str | None = None
    description: str | None = None
    count_min: int | None = None
    count_max: int | None = None
    is_batch_id_wanted: bool = False
    batch_id: str | None = None
    key_name: str | None = None
    user_data: str | None = None
    has_config_drive: bool = False
    access_ip_v4: str = ""
    access_ip_v6: str = ""
    password: str | None = None
    has_certificates: bool = False
    hints: Mapping[str, Any] = msgspec.field(default_factory=dict)
    blob: str | None = None
    zone: Mapping[str, Any] | None = None


async def checked_body(call: Call) -> tuple[ServerCreateRequest, BootRequest]:
    """Decode and check the call's body, and return it with its boot request.

    Raises the errors that a boot with this body raises.
    """
    body = _decoded(call)
    request = boot_request(call, body)
    if body.metadata:
        labels.check_metadata(body.metadata, await metadata_items_max(call, request.project_id))
    return body, request


def _decoded(call: Call) -> ServerCreateRequest:
    return call.body if isinstance(call.body, ServerCreateRequest) else create_request(call.body)


def new_server_ids(call: Call) -> tuple[str, ...]:
    """Return new ids for the servers that a call boots.

    If the leader does not answer, the call is repeated with the same ids. The repeated call first
    looks up servers with these ids.

    Returns no ids if other zones may boot the servers, because a repeated call could not find out
    what these zones have done.

    Raises :class:`Invalid` for an invalid number of servers.
    """
    body = _decoded(call)
    _, count_max = _counts(call, body)
    return () if _has_tree(call) else tuple(call.site.ids.uuid() for _ in range(count_max))


async def metadata_items_max(call: Call, project_id: str | None) -> int:
    """Return the project's quota of metadata items per server."""
    default = quotas.defaults(call.site.settings.computing)
    if project_id is None:
        return default.metadata_items
    limits = await call.read(lambda tx: quotas.limits(tx, project_id, default))
    return limits.metadata_items


def create_request(body: Mapping[str, Any]) -> ServerCreateRequest:
    """Decode a body that the schema accepted."""
    server = body["server"]
    hints: Mapping[str, Any] = next((body[key] for key in HINT_KEYS if key in body), {})
    return ServerCreateRequest(
        name=server["name"],
        flavor=str(server["flavorRef"]),
        image=server.get("imageRef") or None,
        networks=server.get("networks"),
        devices=server.get("block_device_mapping_v2", []),
        has_old_devices=bool(server.get("block_device_mapping")),
        metadata=server.get("metadata", {}),
        tags=server.get("tags", ()),
        availability_zone=server.get("availability_zone"),
        host=server.get("host"),
        hypervisor_hostname=server.get("hypervisor_hostname"),
        hostname=server.get("hostname"),
        description=server.get("description"),
        count_min=_count(server, "min_count"),
        count_max=_count(server, "max_count"),
        is_batch_id_wanted=_is_true(server.get("return_reservation_id")),
        batch_id=server.get("reservation_id"),
        key_name=server.get("key_name"),
        user_data=server.get("user_data"),
        has_config_drive=_is_true(server.get("config_drive")),
        access_ip_v4=server.get("accessIPv4", ""),
        access_ip_v6=server.get("accessIPv6", ""),
        password=server.get("adminPass"),
        has_certificates=bool(server.get("trusted_image_certificates")),
        hints=hints,
        blob=server.get("blob"),
        zone=body.get("zone"),
    )


def _check_hints(call: Call, hints: Mapping[str, Any], project_id: str) -> None:
    _bound_hints(hints)
    if any(name in hints for name in FILTER_HINTS):
        call.demand("os_compute_api:servers:create:host_filters", project_id=project_id)
    if names_hosts(hints):
        # Check this even if the filter is disabled, because this code does not know the enabled
        # filters.
        call.demand(FORCED_HOST, project_id=project_id)


def _bound_hints(hints: Mapping[str, Any]) -> None:
    text = json.dumps(dict(hints), ensure_ascii=False, separators=(",", ":"))
    if len(text.encode(errors="surrogatepass")) > HINTS_BYTES_MAX:
        raise Invalid(
            f"The scheduler hints are too large: use at most {HINTS_BYTES_MAX} bytes of JSON."
        )


def _count(server: Mapping[str, Any], name: str) -> int | None:
    return int(server[name]) if name in server else None


def _is_true(value: Any) -> bool:
    return value in TRUE_WORDS


def boot_request(call: Call, body: ServerCreateRequest) -> BootRequest:
    """Check a decoded body and return its boot request.

    Raises :class:`Invalid` for wrong values, and :class:`Forbidden` if policy denies the request.
    """
    count_min, count_max = _counts(call, body)
    zone, forced_host = _place(call, body)
    ids = call.site.ids
    context = call.context
    project_id, user_id = project_and_user(call)
    _refuse_what_is_not_served(body)
    has_volumes = any(devices.is_volume(each) for each in body.devices)
    if has_volumes and (body.zone is not None or body.blob is not None):
        raise devices.invalid(NO_VOLUMES_ACROSS)
    if body.hints:
        _check_hints(call, body.hints, project_id)
    new_ids = call.new_ids or tuple(ids.uuid() for _ in range(count_max))
    server_ids = tuple(map(ServerId, new_ids))
    told = _definitions(call, body)
    return BootRequest(
        project_id=project_id,
        user_id=user_id,
        request_id=context.request_id,
        name=body.name,
        flavor_id=body.flavor.rpartition("/")[2],
        server_ids=server_ids,
        batch_id=_batch_id(call, body, server_ids[0]),
        seed=ids.seed(),
        now=call.now,
        is_admin=context.is_admin,
        image_id=_image(body),
        count_min=count_min,
        count_max=count_max,
        availability_zone=zone,
        forced_host=forced_host,
        hostname=body.hostname,
        description=body.description,
        key_name=body.key_name,
        has_config_drive=body.has_config_drive,
        user_data=checked_encoding(body.user_data),
        metadata=body.metadata,
        tags=tuple(sorted(set(body.tags))),
        hints=body.hints,
        access_ip_v4=checked_address("accessIPv4", body.access_ip_v4, 4),
        access_ip_v6=checked_address("accessIPv6", body.access_ip_v6, 6),
        definitions=told,
        is_volume_backed=devices.is_volume_backed(body.devices),
        is_across_zones=told is not None or (_has_tree(call) and not has_volumes),
        is_repeat=call.is_repeat,
    )


def _definitions(call: Call, body: ServerCreateRequest) -> Definitions | None:
    """Return the flavor, image, keypair and group that a zone parent defines for its request.

    Other callers may not send such definitions.
    """
    is_of_parent = call.context.hop is not None
    if is_of_parent != (body.zone is not None):
        raise Invalid("Zone parents must send the key 'zone', and other callers must not send it.")
    if body.zone is None:
        return None
    try:
        told = _told_definitions(body.zone["definitions"])
    except (KeyError, msgspec.ValidationError, RecursionError) as error:
        raise Invalid(f"The zone parent's definitions are invalid: {error}.") from error
    definitions.check(told, body.flavor.rpartition("/")[2], _image(body))
    return told


def _has_tree(call: Call) -> bool:
    return call.site.neighbours is not None and call.site.neighbours.tree.routes


def _batch_id(call: Call, body: ServerCreateRequest, first: ServerId) -> str:
    # Trusted callers may choose a batch id, and other callers get a new id. Otherwise, a project
    # could add its servers to another project's batch.
    if body.batch_id is not None and call.allows(NAMED_BATCH, project_id=call.context.project_id):
        return body.batch_id
    if body.zone is not None and body.zone.get("batch_id"):
        return str(body.zone["batch_id"])
    # The first server's id is time-ordered, so new batches are adjacent in the index.
    return f"r-{first}"


def _counts(call: Call, body: ServerCreateRequest) -> tuple[int, int]:
    count_min = body.count_min or 1
    count_max = body.count_max or count_min
    if count_min > count_max:
        raise Invalid(COUNTS_REVERSED)
    most = call.site.settings.scheduling.servers_per_request_max
    if body.zone is not None and "servers" not in body.zone:
        # The zone of a zone parent may allow more servers. This zone then offers as many as it
        # allows.
        count_min, count_max = min(count_min, most), min(count_max, most)
    if count_max > most:
        raise Invalid(f"max_count must be <= {most}")
    longest = max(len(body.name), len(body.hostname or "")) + len(f"-{count_max}")
    if count_max > 1 and longest > NAME_CHARS_MAX:
        raise Invalid("The name is too long: a request for several servers appends a number to it.")
    return count_min, count_max


def _place(call: Call, body: ServerCreateRequest) -> tuple[str | None, str | None]:
    """Return the requested availability zone and host. Raises if policy denies the host."""
    zone, host = _parse_zone(body.availability_zone)
    if host is not None:
        project = {"project_id": call.context.project_id}
        call.demand(FORCED_HOST, **project)
    named = [each for each in (body.host, body.hypervisor_hostname) if each is not None]
    if not named:
        return zone, host
    call.demand("compute:servers:create:requested_destination", project_id=call.context.project_id)
    if host is not None:
        raise Invalid("availability_zone already names a host: omit host and hypervisor_hostname.")
    if len(set(named)) > 1:
        raise Invalid(f"Compute host {named[0]}:{named[1]} could not be found.")
    return zone, named[0]


def _parse_zone(text: str | None) -> tuple[str | None, str | None]:
    parts = (text or "").split(":")
    zone, hosts = parts[0], [each for each in parts[1:] if each]
    if len(parts) > len(("zone", "host", "node")) or (len(parts) > 1 and not hosts):
        raise Invalid("Unable to parse availability_zone: expected ZONE, ZONE:HOST or :HOST.")
    if len(set(hosts)) > 1:
        # In ZONE:HOST:NODE, HOST and NODE must be equal, because a host is a single node here.
        raise Invalid(f"Compute host {hosts[0]}:{hosts[1]} could not be found.")
    return zone or None, hosts[0] if hosts else None


def _refuse_what_is_not_served(body: ServerCreateRequest) -> None:
    if body.networks not in (None, "auto", "none", []):
        raise Invalid(NO_NETWORKS)
    if body.has_old_devices:
        raise devices.invalid(NO_OLD_DEVICES)
    if body.has_certificates:
        raise Invalid("Images are not validated here: omit trusted_image_certificates.")
    _check_devices(body)


def _check_devices(body: ServerCreateRequest) -> None:
    bootable = [each for each in body.devices if devices.boot_index(each) == 0]
    for each in body.devices:
        if devices.is_volume(each):
            continue
        if each.get("source_type") not in ("blank", "image"):
            raise devices.invalid("a local disk must be blank or created from an image.")
        if each.get("volume_size") is not None:
            raise devices.invalid(
                "omit volume_size, because the flavor sets the size of local disks."
            )
        if each["source_type"] == "image" and each not in bootable:
            raise devices.invalid("only the boot disk can be created from an image.")
    devices.volumes_of(body.devices)
    if not body.devices:
        return
    if len(bootable) != 1 and (bootable or body.image is None):
        raise devices.invalid("exactly one device must have the boot_index 0.")
    _check_boot_image(bootable, body)


def _check_boot_image(bootable: Sequence[Mapping[str, Any]], body: ServerCreateRequest) -> None:
    for each in bootable:
        source = each.get("source_type", "volume")
        if source == "blank":
            if body.image is not None:
                raise devices.invalid("the boot disk cannot be blank if imageRef names an image.")
        elif source == "volume":
            if body.image is not None:
                raise devices.invalid("omit imageRef, because the server boots from a volume.")
        elif body.image is None and devices.is_volume(each):
            continue
        elif body.image is None or _same(each.get("uuid")) != _same(body.image):
            raise devices.invalid("the boot disk's uuid must be the image in imageRef.")


def _same(image: Any) -> str | None:
    return canonical_uuid(str(image))


def _image(body: ServerCreateRequest) -> str | None:
    return None if body.image is None else canonical_uuid(body.image)


def checked_encoding(text: str | None) -> str | None:
    """Return user data unchanged. Raises :class:`Invalid` if it is not base64."""
    if text is not None:
        try:
            base64.b64decode(text.replace("\n", "").replace("\r", ""), validate=True)
        except (binascii.Error, ValueError) as error:
            raise Invalid("Userdata content needs to be base 64 encoded.") from error
    return text


def checked_address(name: str, text: str, version: int) -> str:
    """Return an address or an empty string unchanged.

    Raises :class:`Invalid` if the text is not an address of this IP version.
    """
    if text:
        try:
            address = ipaddress.ip_address(text)
        except ValueError as error:
            raise _no_address(name, text) from error
        if address.version != version or "%" in text:
            raise _no_address(name, text)
    return text


def _no_address(name: str, text: str) -> Invalid:
    return Invalid(f"Invalid input for field/attribute {name}. Value: {text}.")
