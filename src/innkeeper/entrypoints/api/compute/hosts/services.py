"""Compute services: every host has one, under the host's name."""

from __future__ import annotations

from typing import Any

from innkeeper.domain.compute import Host
from innkeeper.domain.errors import Invalid, NotFound
from innkeeper.domain.ids import canonical_uuid
from innkeeper.entrypoints.api.compute.hosts.schemas import is_true
from innkeeper.entrypoints.api.compute.older_fields import Remembering
from innkeeper.entrypoints.api.routing import Answer, Call
from innkeeper.systems.compute.hosts import hosts
from innkeeper.systems.compute.hosts.hosts import ServiceChange

BINARY = "nova-compute"
"""What clients call the service on a host. No other service is listed, as none runs apart."""
ROW_DIGITS_MAX = 18


async def index(call: Call) -> Answer:
    """List services, all or those of one host."""
    binary, host = call.last("binary"), call.last("host")
    found: list[Host] = []
    if binary in (None, "", BINARY):
        found = await call.read(lambda tx: hosts.page(tx, name=host or None))
    return Answer(200, {"services": [_shown(call, each) for each in found]})


async def update(call: Call) -> Answer:
    """Enable, disable or force down a service."""
    uuid = _uuid(call)
    wanted = _wanted(call.body)
    changed = await call.write(
        lambda tx: hosts.change_service(tx, hosts.by_service(tx, uuid), wanted, call.now)
    )
    shown = _shown(call, changed)
    # The moment of the change, where a list has the moment of the last heartbeat.
    shown["updated_at"] = moment(changed.updated_at)
    return Answer(200, {"service": shown})


async def delete(call: Call) -> Answer:
    """Forget a host without servers."""
    uuid = _uuid(call)
    await call.write(lambda tx: hosts.remove_service(tx, hosts.by_service(tx, uuid), call.now))
    return Answer(204)


async def delete_by_row(call: Call) -> Answer:
    """As :func:`delete`, for a service that is named by its number."""
    row = row_of(call.params["service_id"])

    def write(tx: Any) -> None:
        host = None if row is None else hosts.by_row(tx, row)
        if host is None:
            raise NotFound(f"Service {call.params['service_id']} could not be found.")
        hosts.remove_service(tx, host, call.now)

    await call.write(write)
    return Answer(204)


async def enable(call: Call) -> Answer:
    """Enable the service of a host that is named."""
    await _change_by_name(call, ServiceChange(is_disabled=False))
    return _answered(call, status="enabled")


async def disable(call: Call) -> Answer:
    """Disable the service of a host that is named."""
    await _change_by_name(call, ServiceChange(is_disabled=True))
    return _answered(call, status="disabled")


async def disable_with_reason(call: Call) -> Answer:
    """Disable the service of a host that is named, and say why."""
    reason = call.body["disabled_reason"]
    await _change_by_name(call, ServiceChange(is_disabled=True, disabled_reason=reason))
    return _answered(call, status="disabled", disabled_reason=reason)


async def force_down(call: Call) -> Answer:
    """Declare the service of a host that is named down, or no longer."""
    is_down = is_true(call.body["forced_down"])
    await _change_by_name(call, ServiceChange(is_forced_down=is_down))
    return _answered(call, forced_down=is_down)


async def _change_by_name(call: Call, wanted: ServiceChange) -> None:
    name, binary = call.body["host"], call.body["binary"]
    if binary != BINARY:
        raise NotFound(f"Could not find binary {binary} on host {name}.")
    await call.write(lambda tx: hosts.change_service(tx, hosts.by_name(tx, name), wanted, call.now))


def _answered(call: Call, **said: Any) -> Answer:
    named = {"host": call.body["host"], "binary": call.body["binary"]}
    return Answer(200, {"service": {**named, **said}})


def _wanted(body: dict[str, Any]) -> ServiceChange:
    status, reason = body.get("status"), body.get("disabled_reason")
    if status is None and "forced_down" not in body:
        raise Invalid(
            "No updates were requested. Fields 'status' or 'forced_down' should be specified."
        )
    if reason is not None and status != "disabled":
        raise Invalid("Specifying 'disabled_reason' requires that status is 'disabled'.")
    return ServiceChange(
        is_disabled=None if status is None else status == "disabled",
        disabled_reason=reason,
        is_forced_down=is_true(body["forced_down"]) if "forced_down" in body else None,
    )


def _uuid(call: Call) -> str:
    text = call.params["service_id"]
    found = canonical_uuid(text)
    if found is None:
        raise Invalid(f"Invalid uuid {text}")
    return found


def row_of(text: str) -> int | None:
    """The number that a service or a host had for an id before 2.53; None if it is none."""
    is_number = text.isascii() and text.isdigit() and len(text) <= ROW_DIGITS_MAX
    return int(text) if is_number else None


def moment(value: Any) -> str:
    """A moment as services show it, to the microsecond."""
    text: str = value.strftime("%Y-%m-%dT%H:%M:%S.%f")
    return text


def state(call: Call, host: Host) -> dict[str, str]:
    """Whether a host is up and enabled, in the API's words."""
    is_up = host.is_up(call.now, call.site.settings.computing.service_down_time_s)
    return {
        "state": "up" if is_up else "down",
        "status": "disabled" if host.is_disabled else "enabled",
    }


def _shown(call: Call, host: Host) -> Remembering:
    shown = {
        "binary": BINARY,
        "host": host.name,
        "id": host.service_uuid,
        "zone": host.availability_zone,
        **state(call, host),
        "updated_at": moment(host.last_seen_at),
        "disabled_reason": host.disabled_reason,
        "forced_down": host.is_forced_down,
    }
    return Remembering(shown, {"id": host.id})
