"""These handlers list, change and delete compute services.

Every host has exactly one service, which is identified by the host's name.
"""

from __future__ import annotations

from typing import Any

from innkeeper.domain.compute import Host
from innkeeper.domain.errors import Invalid, NotFound
from innkeeper.domain.ids import canonical_uuid
from innkeeper.engine.transactions import Tx
from innkeeper.entrypoints.api.compute.hosts.schemas import is_true
from innkeeper.entrypoints.api.compute.timestamps import micros
from innkeeper.entrypoints.api.routing import Answer, Call
from innkeeper.systems.compute.hosts import hosts
from innkeeper.systems.compute.hosts.hosts import ServiceChange

BINARY = "nova-compute"
"""The API's name for the service on a host. Lists have services with this name only."""
ROW_DIGITS_MAX = 18


class WithOlderFields(dict[str, Any]):
    """A JSON object of an answer.

    ``older`` has additional values, which only older microversions show.

    A value in ``older`` is sent only if a microversion's step copies it into the object.
    """

    def __init__(self, shown: dict[str, Any], older: dict[str, Any]) -> None:
        super().__init__(shown)
        self.older = older


async def index(call: Call) -> Answer:
    """List compute services."""
    binary, host = call.last("binary"), call.last("host")
    found: list[Host] = []
    if binary in (None, "", BINARY):
        found = await call.read(lambda tx: hosts.page(tx, name=host or None))
    return Answer(200, {"services": [_shown(call, each) for each in found]})


async def update(call: Call) -> Answer:
    """Enable, disable or force down a compute service."""
    uuid = _uuid(call)
    change = _change(call.body)
    changed = await call.write(
        lambda tx: hosts.change_service(tx, hosts.by_service(tx, uuid), change, call.now)
    )
    shown = _shown(call, changed)
    # This answer shows the time of the change. Lists show the time of the last heartbeat.
    shown["updated_at"] = micros(changed.updated_at)
    return Answer(200, {"service": shown})


async def delete(call: Call) -> Answer:
    """Delete a compute service and its host. The host must have no servers."""
    uuid = _uuid(call)
    await call.write(lambda tx: hosts.remove_service(tx, hosts.by_service(tx, uuid), call.now))
    return Answer(204)


async def delete_by_row(call: Call) -> Answer:
    """Delete a compute service (by its numeric id) and its host. The host must have no servers."""
    row = row_of(call.params["service_id"])

    def write(tx: Tx) -> None:
        host = None if row is None else hosts.by_row(tx, row)
        if host is None:
            raise NotFound(f"Service {call.params['service_id']} could not be found.")
        hosts.remove_service(tx, host, call.now)

    await call.write(write)
    return Answer(204)


async def enable(call: Call) -> Answer:
    """Enable a host's compute service."""
    await _change_by_name(call, ServiceChange(is_disabled=False))
    return _answered(call, status="enabled")


async def disable(call: Call) -> Answer:
    """Disable a host's compute service."""
    await _change_by_name(call, ServiceChange(is_disabled=True))
    return _answered(call, status="disabled")


async def disable_with_reason(call: Call) -> Answer:
    """Disable a host's compute service, and record the reason."""
    reason = call.body["disabled_reason"]
    await _change_by_name(call, ServiceChange(is_disabled=True, disabled_reason=reason))
    return _answered(call, status="disabled", disabled_reason=reason)


async def force_down(call: Call) -> Answer:
    """Set or clear the forced-down flag of a host's compute service."""
    is_down = is_true(call.body["forced_down"])
    await _change_by_name(call, ServiceChange(is_forced_down=is_down))
    return _answered(call, forced_down=is_down)


async def _change_by_name(call: Call, change: ServiceChange) -> None:
    name, binary = call.body["host"], call.body["binary"]
    if binary != BINARY:
        raise NotFound(f"Could not find binary {binary} on host {name}.")
    await call.write(lambda tx: hosts.change_service(tx, hosts.by_name(tx, name), change, call.now))


def _answered(call: Call, **changed: Any) -> Answer:
    service = {"host": call.body["host"], "binary": call.body["binary"], **changed}
    return Answer(200, {"service": service})


def _change(body: dict[str, Any]) -> ServiceChange:
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
    """Parse a numeric id, as hosts had before version 2.53. Returns ``None`` if it is malformed."""
    is_number = text.isascii() and text.isdigit() and len(text) <= ROW_DIGITS_MAX
    return int(text) if is_number else None


def state(call: Call, host: Host) -> dict[str, str]:
    """Return the state and the status that the API shows for a host."""
    is_up = host.is_up(call.now, call.site.settings.computing.service_down_time_s)
    return {
        "state": "up" if is_up else "down",
        "status": "disabled" if host.is_disabled else "enabled",
    }


def _shown(call: Call, host: Host) -> WithOlderFields:
    shown = {
        "binary": BINARY,
        "host": host.name,
        "id": host.service_uuid,
        "zone": host.availability_zone,
        **state(call, host),
        "updated_at": micros(host.last_seen_at),
        "disabled_reason": host.disabled_reason,
        "forced_down": host.is_forced_down,
    }
    return WithOlderFields(shown, {"id": host.id})
