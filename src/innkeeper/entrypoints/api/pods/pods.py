"""Administrators use these handlers to add, list, change and remove pods.

Always true: no answer has the password of a pod.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from http import HTTPStatus
from typing import Any

from innkeeper.clients.pod_logins import checked_auth_url, checked_url
from innkeeper.clients.pods import PodSilent
from innkeeper.domain.errors import Conflict
from innkeeper.domain.pods import DISK_GB, MEMORY_MB, VCPUS, Pod, check_numbers
from innkeeper.engine.transactions import Tx
from innkeeper.entrypoints.api.compute.timestamps import micros
from innkeeper.entrypoints.api.faults import HttpRefusal
from innkeeper.entrypoints.api.paging import limit_of, next_link
from innkeeper.entrypoints.api.pods.site_parts import clouds_of, region_of
from innkeeper.entrypoints.api.routing import Answer, Call
from innkeeper.systems.pods import pods

PATH = "/v1.0/pods"
DEFAULT_DOMAIN = "Default"
FIELDS = {
    "pod_name": "pod_name",
    "az_name": "az_name",
    "pod_az_name": "pod_az_name",
    "dc_name": "dc_name",
    "resource_affinity_tag": "tags",
    "weight": "weight",
    "cost": "price",
    "threshold_percent": "threshold_percent",
    "headroom": "headroom",
    "allocation_ratios": "allocation_ratios",
    "maintenance": "is_in_maintenance",
    "auth_url": "auth_url",
    "username": "username",
    "user_domain_name": "user_domain",
    "project_name": "project_name",
    "project_domain_name": "project_domain",
    "region_name": "region_name",
    "endpoints": "endpoints",
}
"""The internal names of the fields of a pod, by the name in the API."""
OF_LOGIN = frozenset(
    {
        "auth_url",
        "username",
        "user_domain",
        "project_name",
        "project_domain",
        "region_name",
        "endpoints",
    }
)
"""The address and login of a pod. The service contacts the pod with new values before it stores
them."""
TOP = "This service is the top pod. All other pods need an availability zone (az_name)."


async def index(call: Call) -> Answer:
    """List pods, in the order in which they were added."""
    clouds_of(call)
    limit = limit_of(call)
    found = [each for each in await call.read(pods.every) if _iswanted(call, each)]
    marker = call.last("marker")
    if marker is not None:
        ids = [each.uuid for each in found]
        if marker not in ids:
            raise HttpRefusal(400, f"The marker {marker[:36]} is not a pod of the list.")
        found = found[ids.index(marker) + 1 :]
    links = next_link(call, "pods", found, limit, lambda each: each.uuid)
    return Answer(200, {"pods": [shown(each) for each in found[:limit]], **links})


async def show(call: Call) -> Answer:
    """Show a pod."""
    clouds_of(call)
    uuid = call.params["pod_id"]
    return Answer(200, {"pod": shown(await call.read(lambda tx: pods.get(tx, uuid)))})


async def create(call: Call) -> Answer:
    """Contact a pod, and add it if it answers."""
    clouds, body = clouds_of(call), call.body["pod"]
    new, region = wanted(call, body), region_of(call)
    check_numbers(new)
    # Check the names before contacting the pod, which may be slow. They are checked again when the
    # pod is stored.
    await call.read(lambda tx: pods.check_name(tx, new.pod_name, region))
    latency_ms = await _contact(call, new, body["password"])
    reached = replace(new, health=pods.after_success(new.health, latency_ms, call.now))
    made = await call.write(
        lambda tx: pods.create(
            tx, reached, body["password"], own_region=region, box=clouds.box, now=call.now
        )
    )
    return Answer(201, {"pod": shown(made)})


async def update(call: Call) -> Answer:
    """Change a pod. If the address or login changes, the service first contacts the pod."""
    clouds, body, uuid = clouds_of(call), call.body["pod"], call.params["pod_id"]
    values, password = _values(body), body.get("password")
    if values.get("az_name") == "":
        raise Conflict(TOP)

    def look(tx: Tx) -> tuple[Pod, str | None]:
        pod = pods.get(tx, uuid)
        is_needed = password is None and not OF_LOGIN.isdisjoint(values)
        return pod, pods.password_of(tx, pod, clouds.box) if is_needed else password

    pod, secret = await call.read(look)
    latency_ms = None
    if secret is not None:
        latency_ms = await _contact(call, pods.changed(pod, values), secret)
    changed = await call.write(
        lambda tx: pods.change(
            tx,
            uuid,
            values,
            password=password,
            latency_ms=latency_ms,
            own_region=region_of(call),
            box=clouds.box,
            now=call.now,
        )
    )
    return Answer(200, {"pod": shown(changed)})


async def delete(call: Call) -> Answer:
    """Remove a pod that has no active bindings and no routings."""
    clouds, uuid = clouds_of(call), call.params["pod_id"]
    await call.write(lambda tx: pods.delete(tx, uuid))
    await clouds.client.forget(uuid)
    return Answer(204)


def _iswanted(call: Call, pod: Pod) -> bool:
    told = {
        "pod_name": pod.pod_name,
        "az_name": pod.az_name,
        "dc_name": pod.dc_name,
        "group": pod.group,
        "state": state_of(pod),
        "maintenance": str(pod.is_in_maintenance).lower(),
    }
    wanted = {name: call.last(name) for name in told}
    if wanted["maintenance"] is not None:
        wanted["maintenance"] = wanted["maintenance"].lower()
    return all(each in (None, told[name]) for name, each in wanted.items())


def wanted(call: Call, body: Mapping[str, Any]) -> Pod:
    """Return the pod that a body describes. The body of a dry run has no login.

    Raises the errors of the original API if the name or the availability zone is missing.
    """
    name = body.get("pod_name", "").strip()
    if not name:
        raise HttpRefusal(HTTPStatus.UNPROCESSABLE_ENTITY, "pod_name is missing or blank.")
    if not body.get("az_name"):
        raise Conflict(TOP)
    settings = call.site.settings
    ratios = settings.scheduling
    values = {
        "pod_az_name": "",
        "dc_name": "",
        "tags": {},
        "weight": 0.0,
        "price": 0.0,
        "threshold_percent": settings.podding.pod_threshold_percent,
        "headroom": {},
        "allocation_ratios": {
            VCPUS: ratios.cpu_allocation_ratio,
            MEMORY_MB: ratios.ram_allocation_ratio,
            DISK_GB: ratios.disk_allocation_ratio,
        },
        "is_in_maintenance": False,
        **dict.fromkeys(("auth_url", "username", "project_name"), ""),
        "user_domain": DEFAULT_DOMAIN,
        "project_domain": DEFAULT_DOMAIN,
        "region_name": "",
        "endpoints": {},
        **_values(body),
        "pod_name": name,
    }
    return Pod(id=0, uuid=call.site.ids.uuid(), created_at=call.now, updated_at=call.now, **values)


def _values(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values in a body by internal names. Raises :class:`Invalid` for a bad address."""
    values = {inner: body[outer] for outer, inner in FIELDS.items() if outer in body}
    if "auth_url" in values:
        values["auth_url"] = checked_auth_url(values["auth_url"])
    if "endpoints" in values:
        values["endpoints"] = {
            name: checked_url(f"endpoints/{name}", url) for name, url in values["endpoints"].items()
        }
    for name in ("weight", "price", "threshold_percent"):
        if name in values:
            values[name] = float(values[name])
    return values


async def _contact(call: Call, pod: Pod, password: str) -> float:
    try:
        return await clouds_of(call).contact(pod, password)
    except PodSilent as error:
        raise Conflict(f"The pod at {pod.auth_url} cannot be used: {error}.") from error


def state_of(pod: Pod) -> str:
    """Return the state of a pod at its last poll, which is ``up``, ``down`` or ``unknown``."""
    if pod.health.is_up is None:
        return "unknown"
    return "up" if pod.health.is_up else "down"


def shown(pod: Pod) -> dict[str, Any]:
    """Return the JSON value of a pod, without its password."""
    health = pod.health
    return {
        "pod_id": pod.uuid,
        **{outer: getattr(pod, inner) for outer, inner in FIELDS.items()},
        "group": pod.group,
        "state": state_of(pod),
        "last_seen_at": micros(health.last_seen_at),
        "last_error": health.last_error,
        "failed_at": micros(health.failed_at),
        "failures": health.failures,
        "latency_ms": None if health.latency_ms is None else round(health.latency_ms, 2),
        "created_at": micros(pod.created_at),
        "updated_at": micros(pod.updated_at),
    }
