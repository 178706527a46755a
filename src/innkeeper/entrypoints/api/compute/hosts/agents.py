"""Agents call these handlers to register, report hosts, send heartbeats and do work.

The routes exist only in Innkeeper and have no microversions. Microversions are not needed, because
an agent has the same release as the service that it calls, and new fields are optional.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any

import structlog

from innkeeper.domain.compute import Agent
from innkeeper.domain.errors import Invalid
from innkeeper.domain.hosts import HostDefaults, HostReport, Reported
from innkeeper.domain.ids import ProviderUuid, ServerId, canonical_uuid
from innkeeper.domain.orders import WorkOrder
from innkeeper.engine import commands
from innkeeper.entrypoints.api.compute.hosts.agent_bodies import (
    HostBody,
    ReportBody,
    ResultsBody,
    converter_of,
    given,
)
from innkeeper.entrypoints.api.compute.hosts.agent_schemas import ORDERS_MAX
from innkeeper.entrypoints.api.compute.links import next_page
from innkeeper.entrypoints.api.paging import limit_of
from innkeeper.entrypoints.api.routing import Answer, Call
from innkeeper.systems.compute.hosts import agents, reports, work
from innkeeper.systems.compute.hosts.agents import AgentHeartbeat
from innkeeper.systems.compute.hosts.reports import AgentReport
from innkeeper.systems.compute.hosts.work import Poll, ResultsReport
from innkeeper.systems.compute.servers.results import Result, ResultSettings

LOG = structlog.get_logger("innkeeper.compute")
HEARTBEATS = 3
"""The number of heartbeats per ``service_down_time``. An agent must still count as up if one
heartbeat is lost."""
REPORTS = 3
"""The number of reports per ``capabilities_max_age``. Capabilities must still count as known if one
report is lost."""
UNKNOWN_LOGGED_MAX = 10
RECHECK_S = 5.0
"""The seconds between two reads of the database for orders that another process committed."""
TICK_S = 0.25
"""Requests that wait for work read the database at multiples of this time (in seconds), so that
they share a read."""
_report, _results = converter_of(ReportBody), converter_of(ResultsBody)


async def register(call: Call) -> Answer:
    """Register an agent, and return its intervals for heartbeats and reports."""
    requested = call.body["agent"]
    new_id = call.site.ids.uuid()
    agent = await call.write(
        lambda tx: agents.register(
            tx, call.context, requested["name"], requested["driver"], new_id=new_id, now=call.now
        )
    )
    computing = call.site.settings.computing
    shown = {
        **_shown(call, agent),
        "heartbeat_interval_s": computing.service_down_time_s / HEARTBEATS,
        "report_interval_s": call.site.settings.scheduling.capabilities_max_age_s / REPORTS,
        "work_poll_s": computing.work_poll_s,
    }
    return Answer(200, {"agent": shown})


async def index(call: Call) -> Answer:
    """List agents, ordered by name."""
    limit, marker = limit_of(call), call.last("marker")
    found = await call.read(lambda tx: agents.page(tx, marker, limit))
    body: dict[str, Any] = {"agents": [_shown(call, each) for each in found]}
    if found and len(found) == limit:
        body["agents_links"] = next_page(call, "os-agents", found[-1].name)
    return Answer(200, body)


async def show(call: Call) -> Answer:
    """Show an agent."""
    agent = await call.read(lambda tx: agents.own(tx, call.context, _id(call)))
    return Answer(200, {"agent": _shown(call, agent)})


async def report(call: Call) -> Answer:
    """Report hosts, with their inventories, traits and servers."""
    body = _report(_with_canonical_uuids(call.body))
    found = [_host(each) for each in body.hosts]
    said = AgentReport(call.context, _id(call), found, _defaults(call), call.site.ids, call.now)
    reported = await call.site.engine.write_together(
        reports.apply_together, said, reports.line_count(found), commands.REPORTS
    )
    # Log after the commit, because a transaction may be rolled back and retried.
    _log_unknown(_id(call), reported)
    shown = [
        {"name": each.name, "provider_uuid": each.provider_uuid, "service_id": each.service_uuid}
        for each in reported
    ]
    return Answer(200, {"hosts": shown})


def _log_unknown(agent_id: str, reported: Sequence[Reported]) -> None:
    """Log all unknown servers of a report in one event.

    If the agent belongs to another cloud, it may report thousands of unknown servers.
    """
    unknown = [(each.name, server) for each in reported for server in each.unknown_servers]
    if unknown:
        LOG.warning(
            "unknown_servers",
            agent_id=agent_id,
            count=len(unknown),
            first=[f"{host}/{server}" for host, server in unknown[:UNKNOWN_LOGGED_MAX]],
        )


async def heartbeat(call: Call) -> Answer:
    """Send a heartbeat, so that the agent and all its hosts count as up."""
    beat = AgentHeartbeat(call.context, _id(call), call.now)
    await call.site.engine.write_together(agents.heartbeats, beat, kind=commands.HEARTBEATS)
    return Answer(204)


async def take_work(call: Call) -> Answer:
    """Wait for an agent's work orders, up to a time limit, and return them."""
    after, limit = call.body.get("after", 0), call.body.get("limit", ORDERS_MAX)
    wait_s_max = call.site.settings.computing.work_poll_s
    wait_s = min(call.body.get("wait_s", wait_s_max), wait_s_max)
    engine, poll = call.site.engine, Poll(call.context, _id(call), after, limit)
    end_s = asyncio.get_running_loop().time() + wait_s
    with engine.wakeups.listen(work.TOPIC, poll.agent_id) as woken:
        orders = await engine.read_together(work.polled, poll)
        while not orders and not engine.wakeups.is_stopping:
            if not await _is_woken(woken, end_s):
                break
            # Clear the event before reading. An order committed after the read sets it again.
            woken.clear()
            orders = await engine.read_together(work.polled, poll)
    return Answer(200, {"orders": [_order(each) for each in orders]})


async def _is_woken(woken: asyncio.Event, end_s: float) -> bool:
    """Wait until the event is set or the next read is due.

    Returns False if ``end_s`` has passed without the event.
    """
    # Requests that read at the same moment share one read of the database.
    due_s = (asyncio.get_running_loop().time() + RECHECK_S) // TICK_S * TICK_S
    with suppress(TimeoutError):
        async with asyncio.timeout_at(min(due_s, end_s)):
            await woken.wait()
    return woken.is_set() or asyncio.get_running_loop().time() < end_s


async def report_results(call: Call) -> Answer:
    """Report the results of work orders. Repeating a result has no effect."""
    body = _results(call.body)
    results = [Result(each.order_id, each.ok, each.fault) for each in body.results]
    settings = ResultSettings.of(call.site.settings.scheduling, call.site.settings.computing)

    report = ResultsReport(call.context, _id(call), results, call.now, settings)
    recorded = await call.site.engine.write_together(
        work.record_together, report, work.line_count(results), commands.RESULTS
    )
    shown = [{"order_id": number, "is_news": is_new} for number, is_new in recorded]
    return Answer(200, {"results": shown})


def _id(call: Call) -> str:
    text = call.params["agent_id"]
    return canonical_uuid(text) or text


def _defaults(call: Call) -> HostDefaults:
    scheduling = call.site.settings.scheduling
    return HostDefaults(
        availability_zone=scheduling.default_availability_zone,
        allocation_ratios={
            "VCPU": scheduling.cpu_allocation_ratio,
            "MEMORY_MB": scheduling.ram_allocation_ratio,
            "DISK_GB": scheduling.disk_allocation_ratio,
        },
        service_down_time_s=call.site.settings.computing.service_down_time_s,
        capabilities_max_age_s=scheduling.capabilities_max_age_s,
    )


def _with_canonical_uuids(body: Any) -> Any:
    """Return a body with canonical UUIDs.

    A body that a decoder accepted already has canonical UUIDs.
    """
    if not isinstance(body, dict):
        return body
    for each in body["hosts"]:
        if "provider_uuid" in each:
            each["provider_uuid"] = _canonical(each["provider_uuid"])
        if "servers" in each:
            each["servers"] = [_canonical(server) for server in each["servers"]]
    return body


def _host(body: HostBody) -> HostReport:
    uuid, servers = given(body.provider_uuid), given(body.servers)
    return HostReport(
        name=body.name,
        inventories={name: each.report() for name, each in body.inventories.items()},
        traits=frozenset(body.traits),
        capabilities=body.capabilities,
        provider_uuid=None if uuid is None else ProviderUuid(uuid),
        availability_zone=given(body.availability_zone),
        host_type=body.host_type,
        host_version=body.host_version,
        host_ip=body.host_ip,
        cpu_facts=body.cpu_facts,
        servers=None if servers is None else tuple(ServerId(server) for server in servers),
        not_running=given(body.not_running),
        booted_at=_moment(given(body.booted_at)),
    )


def _canonical(text: str) -> str:
    found = canonical_uuid(text)
    assert found is not None, "the schema accepts only UUIDs"
    return found


def _moment(text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        return datetime.fromisoformat(text).replace(tzinfo=None)
    except ValueError as error:
        raise Invalid(f"Invalid booted_at '{text}': there is no such date and time.") from error


def _order(order: WorkOrder) -> dict[str, Any]:
    return {
        "id": order.id,
        "kind": order.kind,
        "host": order.host,
        "server_id": order.server_uuid,
        "body": order.body,
        "created_at": f"{order.created_at.isoformat()}Z",
    }


def _shown(call: Call, agent: Agent) -> dict[str, Any]:
    silent_s = (call.now - agent.last_seen_at).total_seconds()
    is_up = silent_s <= call.site.settings.computing.service_down_time_s
    return {
        "id": agent.id,
        "name": agent.name,
        "driver": agent.driver,
        "state": "up" if is_up else "down",
        "last_seen_at": f"{agent.last_seen_at.isoformat()}Z",
        "created_at": f"{agent.created_at.isoformat()}Z",
    }
