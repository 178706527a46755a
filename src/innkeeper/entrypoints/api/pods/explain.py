"""These handlers show which pod the policy would choose, and which bindings a change would move."""

from __future__ import annotations

from typing import Any

from innkeeper.domain.errors import Invalid
from innkeeper.domain.pods import Pod
from innkeeper.engine.transactions import Tx
from innkeeper.entrypoints.api.pods import pods as pod_bodies
from innkeeper.entrypoints.api.pods.bindings import request_of, shown
from innkeeper.entrypoints.api.pods.site_parts import clouds_of
from innkeeper.entrypoints.api.routing import Answer, Call
from innkeeper.scheduling.pod_choosing import PodVerdict
from innkeeper.systems.pods import bindings, planning
from innkeeper.systems.pods.bindings import ExplainedPods
from innkeeper.systems.pods.planning import PlannedPod, PodDryRun
from innkeeper.systems.pods.policy import policy_of

MOVES_MAX = 1000


async def explain(call: Call) -> Answer:
    """Show which pod the policy would choose for a request, and why it rejects the other pods."""
    policy, body = clouds_of(call).policy, call.body["explain"]
    found = await call.read(lambda tx: bindings.explain(tx, policy, request_of(call, tx, body)))
    return Answer(200, {"explain": _explained(found)})


async def dry_run(call: Call) -> Answer:
    """Show which active bindings would move to another pod if pods or the policy changed."""
    clouds, body = clouds_of(call), call.body["dry_run"]
    changes = {
        uuid: {pod_bodies.FIELDS[name]: value for name, value in values.items()}
        for uuid, values in body.get("pods", {}).items()
    }
    added = [
        PlannedPod(pod_bodies.wanted(call, each), each.get("capacity", {}))
        for each in body.get("added_pods", ())
    ]
    try:
        policy = policy_of(clouds.podding, body.get("filters"), body.get("weighers"))
    except ValueError as error:
        raise Invalid(str(error)) from error

    def look(tx: Tx) -> planning.PodDryRun:
        return planning.dry_run(tx, (clouds.policy, policy), changes, added)

    return Answer(200, {"dry_run": _planned(await call.read(look))})


def _planned(found: PodDryRun) -> dict[str, Any]:
    return {
        "moving": len(found.moves),
        "staying": found.staying,
        "moves": [
            {
                "binding": shown(each.binding),
                "from": each.source.pod_name,
                "to": _name(each.target),
                "reason": each.reason,
                "servers": 0 if each.left is None else each.left.servers,
                "volumes": 0 if each.left is None else each.left.volumes,
            }
            for each in found.moves[:MOVES_MAX]
        ],
        "pods": [
            {
                "pod_name": each.pod_name,
                "bindings_before": found.before.get(each.id, 0),
                "bindings_after": found.after.get(each.id, 0),
            }
            for each in found.pods
        ],
        "new_projects": [
            {
                "group": each.group,
                "az_name": each.az_name,
                "before": _name(each.before),
                "after": _name(each.after),
            }
            for each in found.new_projects
        ],
    }


def _name(pod: Pod | None) -> str | None:
    return None if pod is None else pod.pod_name


def _explained(found: ExplainedPods) -> dict[str, Any]:
    chosen = found.chosen
    return {
        "project_id": found.request.project_id,
        "group": found.request.group,
        "availability_zone": found.request.az_name,
        "bound": [each.uuid for each in found.bound],
        "chosen": None if chosen is None else chosen.uuid,
        "is_kept": chosen is not None and chosen in found.bound,
        "pods": [_verdict(each) for each in found.verdicts],
    }


def _verdict(verdict: PodVerdict) -> dict[str, Any]:
    return {
        "pod_id": verdict.pod.uuid,
        "pod_name": verdict.pod.pod_name,
        "passes": verdict.refused_by is None,
        "refused_by": verdict.refused_by,
        "reason": verdict.reason,
        "weight": verdict.weight,
        "weights": dict(verdict.weights),
    }
