"""Administrators use these handlers to manage routings, which record the pods of resources."""

from __future__ import annotations

from typing import Any

from innkeeper.domain.errors import Invalid, NotFound
from innkeeper.domain.pods import PodRouting
from innkeeper.engine.transactions import Tx
from innkeeper.entrypoints.api.compute.timestamps import micros
from innkeeper.entrypoints.api.paging import DIGITS_MAX, limit_of, next_link
from innkeeper.entrypoints.api.pods.site_parts import clouds_of
from innkeeper.entrypoints.api.routing import Answer, Call
from innkeeper.systems.pods import pods, routings

PATH = "/v1.0/routings"
FILTERS = ("top_id", "bottom_id", "project_id", "resource_type")


async def index(call: Call) -> Answer:
    """List routings, newest first. A routing records in which pod a resource lives."""
    clouds_of(call)
    limit, marker = limit_of(call), call.last("marker")
    if marker is not None and not _is_number(marker):
        raise Invalid(f"The marker {marker[:36]} is not a routing.")
    wanted: dict[str, object] = {
        name: value for name in FILTERS if (value := call.last(name)) is not None
    }
    pod_uuid = call.last("pod_id")

    def look(tx: Tx) -> list[dict[str, Any]]:
        names = {each.id: each.uuid for each in pods.every(tx)}
        if pod_uuid is not None:
            wanted["pod_id"] = next((row for row, uuid in names.items() if uuid == pod_uuid), 0)
        before = None if marker is None else int(marker)
        found = routings.page(tx, wanted, before=before, limit=limit + 1)
        return [_shown(each, names[each.pod_id]) for each in found]

    found = await call.read(look)
    links = next_link(call, "routings", found, limit, lambda each: each["id"])
    return Answer(200, {"routings": found[:limit], **links})


async def show(call: Call) -> Answer:
    """Show a routing."""
    clouds_of(call)
    text = call.params["routing_id"]
    if not _is_number(text):
        raise NotFound(f"Routing {text[:36]} could not be found.")

    def look(tx: Tx) -> dict[str, Any]:
        found = routings.get(tx, int(text))
        names = {each.id: each.uuid for each in pods.every(tx)}
        return _shown(found, names[found.pod_id])

    return Answer(200, {"routing": await call.read(look)})


async def create(call: Call) -> Answer:
    """Record in which pod an existing resource is."""
    clouds_of(call)
    body = call.body["routing"]

    def work(tx: Tx) -> dict[str, Any]:
        pod = pods.found(tx, body["pod_id"])
        if pod is None:
            raise Invalid(f"Pod {body['pod_id']} could not be found.")
        wanted = PodRouting(
            0,
            body["top_id"],
            body["bottom_id"],
            pod.id,
            body["project_id"],
            body["resource_type"],
            call.now,
            call.now,
        )
        return _shown(routings.create(tx, wanted), pod.uuid)

    return Answer(201, {"routing": await call.write(work)})


async def delete(call: Call) -> Answer:
    """Delete a routing, which is the record of a resource's pod. The resource itself stays."""
    clouds_of(call)
    text = call.params["routing_id"]
    if not _is_number(text):
        raise NotFound(f"Routing {text[:36]} could not be found.")
    await call.write(lambda tx: routings.delete(tx, int(text)))
    return Answer(204)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= DIGITS_MAX


def _shown(routing: PodRouting, pod_uuid: str) -> dict[str, Any]:
    return {
        "id": routing.id,
        "top_id": routing.top_id,
        "bottom_id": routing.bottom_id,
        "pod_id": pod_uuid,
        "project_id": routing.project_id,
        "resource_type": routing.resource_type,
        "created_at": micros(routing.created_at),
        "updated_at": micros(routing.updated_at),
    }
