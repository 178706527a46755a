"""Administrators use these handlers to show, make and end bindings of projects to pods."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from innkeeper.domain.errors import Conflict
from innkeeper.domain.pods import PodBinding, PodRequest
from innkeeper.engine.retry import BINDINGS
from innkeeper.engine.transactions import Tx
from innkeeper.entrypoints.api.compute.timestamps import micros
from innkeeper.entrypoints.api.faults import HttpRefusal
from innkeeper.entrypoints.api.paging import limit_of, next_link
from innkeeper.entrypoints.api.pods.site_parts import clouds_of
from innkeeper.entrypoints.api.routing import Answer, Call
from innkeeper.systems.pods import bindings, pods
from innkeeper.systems.pods.bindings import BindingSearch, NoPod

PATH = "/v1.0/bindings"


async def index(call: Call) -> Answer:
    """List active and ended bindings of projects to pods, oldest first."""
    clouds_of(call)
    limit = limit_of(call)
    is_active = call.last("is_binding")
    search = BindingSearch(
        project_id=call.last("project_id", call.last("tenant_id")),
        pod_uuid=call.last("pod_id"),
        group_name=call.last("group"),
        az_name=call.last("az_name"),
        is_active=None if is_active is None else is_active.lower() == "true",
    )
    marker = call.last("marker")

    def look(tx: Tx) -> list[PodBinding]:
        after = 0 if marker is None else _marker(tx, marker)
        return list(bindings.page(tx, search, after=after, limit=limit + 1))

    found = await call.read(look)
    links = next_link(call, "pod_bindings", found, limit, lambda each: each.uuid)
    return Answer(200, {"pod_bindings": [shown(each) for each in found[:limit]], **links})


async def show(call: Call) -> Answer:
    """Show a binding."""
    clouds_of(call)
    uuid = call.params["binding_id"]
    return Answer(200, {"pod_binding": shown(await call.read(lambda tx: bindings.get(tx, uuid)))})


async def create(call: Call) -> Answer:
    """Bind a project to a given pod, or to the pod that the policy chooses.

    If the project is already bound to the pod, the answer is its existing binding with a 200.
    """
    clouds, body = clouds_of(call), call.body["pod_binding"]
    project_id = (body.get("project_id") or body.get("tenant_id") or "").strip()
    if not project_id:
        raise HttpRefusal(HTTPStatus.UNPROCESSABLE_ENTITY, "tenant_id is missing or blank.")

    def by_hand(tx: Tx) -> tuple[PodBinding, bool]:
        pod = pods.found(tx, body["pod_id"])
        if pod is None:
            raise HttpRefusal(
                HTTPStatus.UNPROCESSABLE_ENTITY, f"Pod {body['pod_id']} could not be found."
            )
        return bindings.bind_to(tx, project_id, pod, ids=call.site.ids, now=call.now)

    if "pod_id" in body:
        made, is_new = await call.write(by_hand, retry=BINDINGS)
    else:
        wanted = {**body, "project_id": project_id}
        try:
            made, is_new = await clouds.bind(lambda tx: request_of(call, tx, wanted))
        except NoPod as error:
            raise Conflict(error.message_for_administrators, code=error.code) from error
    return Answer(201 if is_new else 200, {"pod_binding": shown(made)})


async def end(call: Call) -> Answer:
    """End an active binding. The binding stays in the history."""
    clouds_of(call)
    uuid = call.params["binding_id"]
    await call.write(lambda tx: bindings.end(tx, uuid, now=call.now))
    return Answer(204)


def request_of(call: Call, tx: Tx, body: Mapping[str, Any]) -> PodRequest:
    """Convert a body to a request for a pod. The extra specs in the body select a group of pods.

    Raises :class:`NotFound` if ``refused_pods`` names an unknown pod.
    """
    keys = call.site.settings.podding.pod_affinity_keys
    refused = body.get("refused_pods", ())
    return PodRequest(
        body["project_id"],
        bindings.group_of_specs(tx, body.get("extra_specs", {}), keys),
        body.get("availability_zone"),
        body.get("amounts", {}),
        refused=frozenset(pods.get(tx, each).id for each in refused),
    )


def _marker(tx: Tx, text: str) -> int:
    found = bindings.found(tx, text)
    if found is None:
        raise HttpRefusal(400, f"The marker {text[:36]} is not a binding.")
    return found.id


def shown(binding: PodBinding) -> dict[str, Any]:
    """Return the JSON value of a binding."""
    return {
        "id": binding.uuid,
        "tenant_id": binding.project_id,
        "project_id": binding.project_id,
        "pod_id": binding.pod_uuid,
        "group": binding.group_name,
        "az_name": binding.az_name,
        "is_binding": binding.is_active,
        "started_at": micros(binding.started_at),
        "start_reason": binding.start_reason,
        "ended_at": micros(binding.ended_at),
        "end_reason": binding.end_reason,
        "created_at": micros(binding.started_at),
        "updated_at": micros(binding.ended_at or binding.started_at),
    }
