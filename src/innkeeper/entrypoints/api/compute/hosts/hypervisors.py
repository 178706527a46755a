"""Hosts with what they have, under the name that the Compute API has for them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from innkeeper.domain.compute import Host
from innkeeper.domain.errors import Invalid, NotFound
from innkeeper.domain.ids import canonical_uuid
from innkeeper.entrypoints.api.compute.hosts.schemas import is_true
from innkeeper.entrypoints.api.compute.hosts.services import row_of, state
from innkeeper.entrypoints.api.compute.older_fields import Remembering
from innkeeper.entrypoints.api.faults import HttpRefusal
from innkeeper.entrypoints.api.paging import limit_of, next_query
from innkeeper.entrypoints.api.routing import Answer, Call
from innkeeper.systems.compute.hosts import hosts, inventories
from innkeeper.systems.compute.hosts.inventories import HostInventories

Servers = dict[str, list[tuple[str, str]]]
SECONDS_PER_MINUTE, MINUTES_PER_HOUR, HOURS_PER_DAY = 60, 60, 24
UNSUPPORTED = 501


def in_answer(answer: Answer) -> list[Any]:
    """The hosts in an answer, one or many, for those who lower it to an older version."""
    body = answer.body
    found: list[Any] = body["hypervisors"] if "hypervisors" in body else [body["hypervisor"]]
    return found


async def index(call: Call) -> Answer:
    """List hosts."""
    return await _list(call, "/v2.1/os-hypervisors", is_detailed=False)


async def detail(call: Call) -> Answer:
    """List hosts with what they have."""
    return await _list(call, "/v2.1/os-hypervisors/detail", is_detailed=True)


async def index_all(call: Call) -> Answer:
    """List all hosts at once."""
    found = await call.read(hosts.page)
    return Answer(200, {"hypervisors": [_brief(call, each) for each in found]})


async def detail_all(call: Call) -> Answer:
    """List all hosts at once with what they have."""

    def read(tx: Any) -> list[tuple[Host, HostInventories]]:
        found = hosts.page(tx)
        return list(zip(found, inventories.of_hosts(tx, found), strict=True))

    found = await call.read(read)
    return Answer(200, {"hypervisors": [_detailed(call, *each) for each in found]})


async def show(call: Call) -> Answer:
    """Show a host."""
    with_servers = is_true(call.last("with_servers", "false"))

    def read(tx: Any) -> tuple[Host, HostInventories, Servers]:
        host = _by_uuid(tx, call)
        servers = hosts.servers_on(tx, [host.name]) if with_servers else {}
        return host, inventories.of_hosts(tx, [host])[0], servers

    host, has, servers = await call.read(read)
    shown = _detailed(call, host, has)
    if with_servers:
        _add_servers([shown], servers)
    return Answer(200, {"hypervisor": shown})


async def statistics(call: Call) -> Answer:
    """The sums over all hosts."""
    count, whole = await call.read(inventories.of_all)
    return Answer(200, {"hypervisor_statistics": {"count": count, **_amounts(whole)}})


async def show_by_row(call: Call) -> Answer:
    """As :func:`show`, for a host that is named by its number."""

    def read(tx: Any) -> tuple[Host, HostInventories]:
        host = _by_row(tx, call)
        return host, inventories.of_hosts(tx, [host])[0]

    host, has = await call.read(read)
    return Answer(200, {"hypervisor": _detailed(call, host, has)})


async def uptime(call: Call) -> Answer:
    """How long a host has been running."""
    return _uptime_answer(call, await call.read(lambda tx: _by_uuid(tx, call)))


async def uptime_by_row(call: Call) -> Answer:
    """As :func:`uptime`, for a host that is named by its number."""
    return _uptime_answer(call, await call.read(lambda tx: _by_row(tx, call)))


async def search(call: Call) -> Answer:
    """Find hosts by a part of their names."""
    part = call.params["hypervisor_id"]
    found = await call.read(lambda tx: _matching(tx, part))
    return Answer(200, {"hypervisors": [_brief(call, each) for each in found]})


async def servers(call: Call) -> Answer:
    """Find hosts by a part of their names, and list the servers on them."""
    part = call.params["hypervisor_id"]

    def read(tx: Any) -> tuple[list[Host], Servers]:
        found = _matching(tx, part)
        return found, hosts.servers_on(tx, [each.name for each in found])

    found, on_them = await call.read(read)
    shown = [_brief(call, each) for each in found]
    for each, host in zip(shown, found, strict=True):
        if host.name in on_them:
            _add_servers([each], on_them)
    return Answer(200, {"hypervisors": shown})


async def _list(call: Call, path: str, *, is_detailed: bool) -> Answer:
    limit = limit_of(call)
    part = call.last("hypervisor_hostname_pattern")
    if part is not None and ("limit" in call.query or "marker" in call.query):
        raise Invalid(
            "Paging over hypervisors with the hypervisor_hostname_pattern query parameter is "
            "not supported."
        )
    with_servers = is_true(call.last("with_servers", "false"))

    def read(tx: Any) -> tuple[list[Host], list[HostInventories], Servers]:
        found = _matching(tx, part) if part is not None else _page(tx, call, limit)
        names = [each.name for each in found]
        on_them = hosts.servers_on(tx, names) if with_servers and names else {}
        return found, inventories.of_hosts(tx, found) if is_detailed else [], on_them

    found, has, on_them = await call.read(read)
    if is_detailed:
        shown = [_detailed(call, *each) for each in zip(found, has, strict=True)]
    else:
        shown = [_brief(call, each) for each in found]
    if with_servers:
        _add_servers(shown, on_them)
    body = Remembering({"hypervisors": shown}, {})
    if found and len(found) == limit and part is None:
        behind = next_query(call, found[-1].provider_uuid)
        body["hypervisors_links"] = [{"rel": "next", "href": f"{call.address}{path}?{behind}"}]
        # Before 2.53 hosts had numbers for ids, and pages went by them.
        by_row = next_query(call, str(found[-1].id))
        body.older["next"] = f"{call.address}{path}?{by_row}"
    return Answer(200, body)


def _page(tx: Any, call: Call, limit: int) -> list[Host]:
    marker = call.last("marker")
    if marker is None:
        return hosts.page(tx, limit=limit)
    row = row_of(marker)
    uuid = canonical_uuid(marker)
    if uuid is not None:
        host = hosts.by_provider(tx, uuid)
    else:
        host = None if row is None else hosts.by_row(tx, row)
    if host is None:
        raise Invalid(f"marker [{marker}] not found")
    return hosts.page(tx, after_row=host.id, limit=limit)


def _matching(tx: Any, part: str) -> list[Host]:
    found = hosts.page(tx, name_part=part)
    if not found:
        raise NotFound(f"No hypervisor matching '{part}' could be found.")
    return found


def _by_uuid(tx: Any, call: Call) -> Host:
    text = call.params["hypervisor_id"]
    uuid = canonical_uuid(text)
    if uuid is None:
        raise Invalid(f"Invalid uuid {text}")
    return _found(hosts.by_provider(tx, uuid), text)


def _by_row(tx: Any, call: Call) -> Host:
    text = call.params["hypervisor_id"]
    row = row_of(text)
    return _found(None if row is None else hosts.by_row(tx, row), text)


def _found(host: Host | None, named: str) -> Host:
    if host is None:
        raise NotFound(f"Hypervisor with ID '{named}' could not be found.")
    return host


def _uptime_answer(call: Call, host: Host) -> Answer:
    text = _uptime(host.booted_at, call.now)
    if text is None:
        raise HttpRefusal(UNSUPPORTED, "The requested functionality is not supported.")
    shown = _brief(call, host)
    shown["uptime"] = text
    return Answer(200, {"hypervisor": shown})


def _uptime(booted_at: datetime | None, now: datetime) -> str | None:
    """As the program of that name says it, without the users and the load, who are unknown."""
    if booted_at is None:
        return None
    minutes = max(0, int((now - booted_at).total_seconds()) // SECONDS_PER_MINUTE)
    hours, minutes = divmod(minutes, MINUTES_PER_HOUR)
    days, hours = divmod(hours, HOURS_PER_DAY)
    since = f"{days} day{'' if days == 1 else 's'}, " if days else ""
    return f"{now:%H:%M:%S} up {since}{hours}:{minutes:02}"


def _brief(call: Call, host: Host) -> Remembering:
    shown = {"id": host.provider_uuid, "hypervisor_hostname": host.name, **state(call, host)}
    return Remembering(shown, {"id": host.id})


def _detailed(call: Call, host: Host, has: HostInventories) -> Remembering:
    brief = _brief(call, host)
    shown = {
        **brief,
        "hypervisor_type": host.hypervisor_type,
        "hypervisor_version": host.hypervisor_version,
        "host_ip": host.host_ip,
        "service": {
            "id": host.service_uuid,
            "host": host.name,
            "disabled_reason": host.disabled_reason,
        },
        "uptime": _uptime(host.booted_at, call.now),
    }
    older = {**brief.older, "amounts": _amounts(has), "cpu_info": dict(host.cpu_facts)}
    return Remembering(shown, older)


def _amounts(has: HostInventories) -> dict[str, int]:
    memory_mb, disk_gb = has.memory_mb, has.disk_gb
    free_disk_gb = disk_gb.total - disk_gb.held
    return {
        "vcpus": has.vcpus.total,
        "memory_mb": memory_mb.total,
        "local_gb": disk_gb.total,
        "vcpus_used": has.vcpus.used,
        "memory_mb_used": memory_mb.held,
        "local_gb_used": disk_gb.used,
        "free_ram_mb": memory_mb.total - memory_mb.held,
        "free_disk_gb": free_disk_gb,
        "current_workload": has.busy_servers,
        "running_vms": has.servers,
        "disk_available_least": free_disk_gb,
    }


def _add_servers(shown: Sequence[Remembering], on_them: Servers) -> None:
    for each in shown:
        on_it = on_them.get(each["hypervisor_hostname"], ())
        each["servers"] = [{"uuid": uuid, "name": name} for uuid, name in on_it]
