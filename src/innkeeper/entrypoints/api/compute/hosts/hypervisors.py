"""These handlers show hosts, which the Compute API calls hypervisors.

They show a host's inventories, uptime and servers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from innkeeper.domain.compute import Host
from innkeeper.domain.errors import Invalid, NotFound
from innkeeper.domain.ids import canonical_uuid
from innkeeper.engine.transactions import Tx
from innkeeper.entrypoints.api.compute.hosts.schemas import is_true
from innkeeper.entrypoints.api.compute.hosts.services import WithOlderFields, row_of, state
from innkeeper.entrypoints.api.compute.links import next_page
from innkeeper.entrypoints.api.faults import HttpRefusal
from innkeeper.entrypoints.api.paging import limit_of
from innkeeper.entrypoints.api.routing import Answer, Call
from innkeeper.systems.compute.hosts import hosts, inventories
from innkeeper.systems.compute.hosts.inventories import HostInventories

Servers = dict[str, list[tuple[str, str]]]
SECONDS_PER_MINUTE, MINUTES_PER_HOUR, HOURS_PER_DAY = 60, 60, 24
UNSUPPORTED = 501


async def index(call: Call) -> Answer:
    """List hypervisors in pages."""
    return await _list(call, "os-hypervisors", is_detailed=False)


async def detail(call: Call) -> Answer:
    """List hypervisors with details, in pages."""
    return await _list(call, "os-hypervisors/detail", is_detailed=True)


async def index_all(call: Call) -> Answer:
    """List all hypervisors."""
    found = await call.read(hosts.page)
    return Answer(200, {"hypervisors": [_brief(call, each) for each in found]})


async def detail_all(call: Call) -> Answer:
    """List all hypervisors with details."""

    def read(tx: Tx) -> list[tuple[Host, HostInventories]]:
        found = hosts.page(tx)
        return list(zip(found, inventories.of_hosts(tx, found), strict=True))

    found = await call.read(read)
    return Answer(200, {"hypervisors": [_detailed(call, *each) for each in found]})


async def show(call: Call) -> Answer:
    """Show a hypervisor by its UUID."""
    return await _show(call, _by_uuid, with_servers=is_true(call.last("with_servers", "false")))


async def show_by_row(call: Call) -> Answer:
    """Show a hypervisor by its numeric id."""
    return await _show(call, _by_row, with_servers=False)


async def _show(call: Call, find: Callable[[Tx, Call], Host], *, with_servers: bool) -> Answer:
    def read(tx: Tx) -> tuple[Host, HostInventories, Servers]:
        host = find(tx, call)
        servers = hosts.servers_on(tx, [host.name]) if with_servers else {}
        return host, inventories.of_hosts(tx, [host])[0], servers

    host, has, servers = await call.read(read)
    shown = _detailed(call, host, has)
    if with_servers:
        _add_servers([shown], servers)
    return Answer(200, {"hypervisor": shown})


async def statistics(call: Call) -> Answer:
    """Show the total capacity and usage of all hypervisors."""
    count, totals = await call.read(inventories.of_all)
    return Answer(200, {"hypervisor_statistics": {"count": count, **_amounts(totals)}})


async def uptime(call: Call) -> Answer:
    """Show the uptime of a hypervisor by the hypervisor's UUID."""
    return _uptime_answer(call, await call.read(lambda tx: _by_uuid(tx, call)))


async def uptime_by_row(call: Call) -> Answer:
    """Show the uptime of a hypervisor by the hypervisor's numeric id."""
    return _uptime_answer(call, await call.read(lambda tx: _by_row(tx, call)))


async def search(call: Call) -> Answer:
    """Find hypervisors whose names contain a string."""
    part = call.params["hypervisor_id"]
    found = await call.read(lambda tx: _matching(tx, part))
    return Answer(200, {"hypervisors": [_brief(call, each) for each in found]})


async def servers(call: Call) -> Answer:
    """List the servers on hypervisors whose names contain a string."""
    part = call.params["hypervisor_id"]

    def read(tx: Tx) -> tuple[list[Host], Servers]:
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

    def read(tx: Tx) -> tuple[list[Host], list[HostInventories], Servers]:
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
    body = WithOlderFields({"hypervisors": shown}, {})
    if found and len(found) == limit and part is None:
        body["hypervisors_links"] = next_page(call, path, found[-1].provider_uuid)
        # Before 2.53, the marker of a page is a host's numeric id.
        body.older["links"] = next_page(call, path, str(found[-1].id))
    return Answer(200, body)


def _page(tx: Tx, call: Call, limit: int) -> list[Host]:
    marker = call.last("marker")
    if marker is None:
        return hosts.page(tx, limit=limit)
    row, uuid = row_of(marker), canonical_uuid(marker)
    if uuid is not None:
        host = hosts.by_provider(tx, uuid)
    else:
        host = None if row is None else hosts.by_row(tx, row)
    if host is None:
        raise Invalid(f"marker [{marker}] not found")
    return hosts.page(tx, after_row=host.id, limit=limit)


def _matching(tx: Tx, part: str) -> list[Host]:
    found = hosts.page(tx, name_part=part)
    if not found:
        raise NotFound(f"No hypervisor matching '{part}' could be found.")
    return found


def _by_uuid(tx: Tx, call: Call) -> Host:
    text = call.params["hypervisor_id"]
    uuid = canonical_uuid(text)
    if uuid is None:
        raise Invalid(f"Invalid uuid {text}")
    return _found(hosts.by_provider(tx, uuid), text)


def _by_row(tx: Tx, call: Call) -> Host:
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
    """Format an uptime like the ``uptime`` command, without the users and load, which are unknown.

    Returns ``None`` if the boot time is unknown.
    """
    if booted_at is None:
        return None
    minutes = max(0, int((now - booted_at).total_seconds()) // SECONDS_PER_MINUTE)
    hours, minutes = divmod(minutes, MINUTES_PER_HOUR)
    days, hours = divmod(hours, HOURS_PER_DAY)
    since = f"{days} day{'' if days == 1 else 's'}, " if days else ""
    return f"{now:%H:%M:%S} up {since}{hours}:{minutes:02}"


def _brief(call: Call, host: Host) -> WithOlderFields:
    shown = {"id": host.provider_uuid, "hypervisor_hostname": host.name, **state(call, host)}
    return WithOlderFields(shown, {"id": host.id})


def _detailed(call: Call, host: Host, has: HostInventories) -> WithOlderFields:
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
    return WithOlderFields(shown, older)


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


def _add_servers(shown: Sequence[WithOlderFields], on_them: Servers) -> None:
    for each in shown:
        on_it = on_them.get(each["hypervisor_hostname"], ())
        each["servers"] = [{"uuid": uuid, "name": name} for uuid, name in on_it]
