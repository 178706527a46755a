"""This module formats servers for answers of the newest version of the Compute API.

Always true: only administrators see a server's host and the host's state. Answers of older versions
have fewer fields, but no additional ones.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

from innkeeper.domain.compute import Host, Server, Status
from innkeeper.domain.ids import ProviderUuid
from innkeeper.entrypoints.api.compute.links import links_to
from innkeeper.entrypoints.api.compute.servers import states
from innkeeper.entrypoints.api.compute.timestamps import micros
from innkeeper.entrypoints.api.routing import Call
from innkeeper.systems.compute.servers.servers import fault_message

SHOWS_PROGRESS = frozenset({"ACTIVE", "BUILD", "MIGRATING", "REBUILD", "RESIZE", "VERIFY_RESIZE"})
"""Servers with these statuses show their progress, which is always 0 because it is not measured."""
SHOWS_FAULT = (Status.ERROR, Status.DELETED)
ROOT_DEVICE = "/dev/sda"
DISK_CONFIG = "MANUAL"
"""Always ``MANUAL``, because partitions are never resized automatically."""
ATTRIBUTES = "OS-EXT-SRV-ATTR"
USAGE = "OS-SRV-USG"
STATES = "OS-EXT-STS"
HOST_IDS_MAX = 10_000
"""Maximum number of cached host ids. Many servers of a list have the same host id."""


class ShownFlavor(dict[str, Any]):
    """The flavor in the JSON value of a server. Only older versions show ``flavor_id``."""

    flavor_id: str


def link(call: Call, server_id: str) -> list[dict[str, str]]:
    """Return a server's links."""
    return links_to(call, f"servers/{server_id}")


def brief(call: Call, server: Server) -> dict[str, Any]:
    """Return the JSON value of a server in a list without details."""
    return {"id": server.uuid, "name": server.name, "links": link(call, server.uuid)}


@dataclass(frozen=True, slots=True)
class SeenFields:
    """The fields of a project's servers that the caller may see."""

    has_attributes: bool
    has_host_status: bool
    has_extra_specs: bool

    @staticmethod
    def of(call: Call, project_id: str) -> SeenFields:
        """Return the fields that policy lets the caller see."""
        return SeenFields(
            call.allows("os_compute_api:os-extended-server-attributes", project_id=project_id),
            call.allows("os_compute_api:servers:show:host_status", project_id=project_id),
            call.allows("os_compute_api:servers:show:flavor-extra-specs", project_id=project_id),
        )


def full(
    call: Call, server: Server, homes: Mapping[str, Host], seen: SeenFields | None = None
) -> dict[str, Any]:
    """Return the JSON value of a server in a list with details.

    ``seen`` has the optional fields that the caller may see. If ``seen`` is ``None``, policy
    decides about these fields.
    """
    seen = seen or SeenFields.of(call, server.project_id)
    home = homes.get(server.host or "")
    shown = {**_facts(call, server, seen), **_states(server, home)}
    if shown["status"] in SHOWS_PROGRESS:
        shown["progress"] = 0
    if shown["status"] in SHOWS_FAULT and server.fault:
        shown["fault"] = _fault(call, server.fault)
    if seen.has_attributes:
        shown.update(_attributes(server))
    if seen.has_host_status:
        shown["host_status"] = _host_status(call, server, home)
    return shown


def alone(
    call: Call, server: Server, homes: Mapping[str, Host], groups: Sequence[str]
) -> dict[str, Any]:
    """Return the JSON value of a single server, with details and the server's groups."""
    return {**full(call, server, homes), "server_groups": list(groups)}


def of_child(shown: Mapping[str, Any], flavor_id: str) -> dict[str, Any]:
    """Return the JSON value of a child zone's server in a list."""
    if "flavor" not in shown:
        return dict(shown)
    flavor = ShownFlavor(shown["flavor"])
    flavor.flavor_id = flavor_id
    return {**shown, "flavor": flavor}


def _facts(call: Call, server: Server, seen: SeenFields) -> dict[str, Any]:
    return {
        "id": server.uuid,
        "name": server.name,
        "links": link(call, server.uuid),
        "description": server.description,
        "metadata": dict(server.metadata),
        "tags": list(server.tags),
        "tenant_id": server.project_id,
        "user_id": server.user_id,
        "flavor": _flavor(server, seen),
        "image": _image(call, server),
        "addresses": {},
        "accessIPv4": server.access_ip_v4,
        "accessIPv6": server.access_ip_v6,
        "key_name": server.key_name,
        "config_drive": "True" if server.has_config_drive else "",
        "created": _seconds(server.created_at),
        "updated": _seconds(server.updated_at),
        "OS-DCF:diskConfig": DISK_CONFIG,
        "locked": server.is_locked,
        "locked_reason": server.locked_reason,
        "trusted_image_certificates": None,
        "scheduler_hints": dict(server.hints),
        "os-extended-volumes:volumes_attached": [],
        f"{ATTRIBUTES}:hostname": server.hostname,
    }


def _states(server: Server, home: Host | None) -> dict[str, Any]:
    return {
        "status": states.shown(server.status, server.task_state),
        f"{STATES}:vm_state": states.VM_STATES[server.status],
        f"{STATES}:task_state": server.task_state,
        f"{STATES}:power_state": server.power_state,
        f"{USAGE}:launched_at": micros(server.launched_at),
        f"{USAGE}:terminated_at": micros(server.deleted_at),
        "hostId": host_id(server.project_id, None if home is None else home.provider_uuid),
        "OS-EXT-AZ:availability_zone": (
            server.asked_az or "" if home is None else home.availability_zone
        ),
        "pinned_availability_zone": server.asked_az,
    }


def _attributes(server: Server) -> dict[str, Any]:
    return {
        f"{ATTRIBUTES}:host": server.host,
        f"{ATTRIBUTES}:hypervisor_hostname": server.host,
        f"{ATTRIBUTES}:instance_name": f"instance-{server.id:08x}",
        f"{ATTRIBUTES}:kernel_id": "",
        f"{ATTRIBUTES}:ramdisk_id": "",
        f"{ATTRIBUTES}:launch_index": server.launch_index,
        f"{ATTRIBUTES}:reservation_id": server.batch_id,
        f"{ATTRIBUTES}:root_device_name": None if server.host is None else ROOT_DEVICE,
        f"{ATTRIBUTES}:user_data": server.user_data,
    }


def _flavor(server: Server, seen: SeenFields) -> dict[str, Any]:
    flavor = server.flavor
    shown = ShownFlavor(
        original_name=flavor["name"],
        vcpus=flavor["vcpus"],
        ram=flavor["memory_mb"],
        disk=flavor["disk_gb"],
        ephemeral=flavor["ephemeral_gb"],
        swap=flavor["swap_mb"],
    )
    shown.flavor_id = server.flavor_id
    if seen.has_extra_specs:
        shown["extra_specs"] = dict(flavor["extra_specs"])
    return shown


def _image(call: Call, server: Server) -> Any:
    if server.image_id is None:
        return ""
    bookmark = {"rel": "bookmark", "href": f"{call.address}/images/{server.image_id}"}
    properties = dict(server.image_properties)
    return {"id": server.image_id, "links": [bookmark], "properties": properties}


@lru_cache(HOST_IDS_MAX)
def host_id(project_id: str, provider_uuid: ProviderUuid | None) -> str:
    """Return an opaque id of a host, which is the same for all servers of one project on the host.

    The id is a hash of the UUID of the host's provider, which no project can see or guess. A hash
    of the host's name would let a client confirm a guessed name. The id is empty for a server
    without a host or on a deleted host.
    """
    if provider_uuid is None:
        return ""
    return hashlib.sha224((project_id + provider_uuid).encode()).hexdigest()


def _host_status(call: Call, server: Server, home: Host | None) -> str:
    if server.host is None:
        return ""
    if home is None:
        return "UNKNOWN"
    if home.is_forced_down:
        return "DOWN"
    if home.is_disabled:
        return "MAINTENANCE"
    down_time_s = call.site.settings.computing.service_down_time_s
    return "UP" if home.is_up(call.now, down_time_s) else "UNKNOWN"


def _fault(call: Call, fault: Mapping[str, Any]) -> dict[str, Any]:
    shown = {name: fault[name] for name in ("code", "created")}
    shown["message"] = fault_message(fault, is_counted=call.context.is_admin)
    if fault.get("details") and call.context.is_admin:
        shown["details"] = fault["details"]
    return shown


def _seconds(moment: datetime) -> str:
    return f"{moment.isoformat(timespec='seconds')}Z"
