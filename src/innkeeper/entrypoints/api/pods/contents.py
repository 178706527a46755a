"""This handler shows administrators which resources a pod still has, for example during a drain."""

from __future__ import annotations

from typing import Any

from innkeeper.domain.pods import PodContents
from innkeeper.engine.transactions import Tx
from innkeeper.entrypoints.api.paging import limit_of, next_link
from innkeeper.entrypoints.api.pods.site_parts import clouds_of
from innkeeper.entrypoints.api.routing import Answer, Call
from innkeeper.systems.pods import contents

PATH = "/v1.0/pods/{pod_id}/projects"


async def index(call: Call) -> Answer:
    """List the resources of each project in a pod, with the sums over all projects."""
    clouds_of(call)
    uuid, limit, marker = call.params["pod_id"], limit_of(call), call.last("marker") or ""

    def look(tx: Tx) -> contents.DrainedPod:
        return contents.of_pod(tx, uuid, after=marker, limit=limit + 1)

    found = await call.read(look)
    links = next_link(call, "projects", found.projects, limit, lambda each: each.project_id)
    rows = [
        {
            "project_id": each.project_id,
            "is_bound": each.project_id in found.bound,
            **_amounts(each),
        }
        for each in found.projects[:limit]
    ]
    total = {
        **_amounts(found.total),
        "projects": found.project_count,
        "bindings": found.binding_count,
        "is_empty": found.total.is_empty,
    }
    return Answer(200, {"projects": rows, "total": total, **links})


def _amounts(each: PodContents) -> dict[str, Any]:
    return {
        "servers": each.servers,
        "volumes": each.volumes,
        "deleting": each.deleting,
        "begun": each.begun,
        "vcpus": each.vcpus,
        "memory_mb": each.memory_mb,
        "volume_gb": each.volume_gb,
    }
