"""These handlers show administrators how full pods are, with forecasts."""

from __future__ import annotations

from typing import Any

from innkeeper.domain.errors import Unavailable
from innkeeper.domain.pod_usage import limit as limit_of_kind
from innkeeper.domain.pod_usage import usage_of
from innkeeper.engine.transactions import Tx
from innkeeper.entrypoints.api.compute.timestamps import micros
from innkeeper.entrypoints.api.paging import limit_of
from innkeeper.entrypoints.api.pods.site_parts import clouds_of
from innkeeper.entrypoints.api.routing import Answer, Call
from innkeeper.systems.pods import pods, usage
from innkeeper.systems.pods.usage import PodUsage

PATH = "/v1.0/usage"
HISTORY_MAX = 1000


async def index(call: Call) -> Answer:
    """List the newest measurement of each pod, with its age and a forecast."""
    podding = clouds_of(call).podding
    found = await call.read(lambda tx: usage.every(tx, podding, call.now))
    return Answer(200, {"usage": [_shown(each) for each in found]})


async def show(call: Call) -> Answer:
    """Show the usage of a pod, with its measurements, oldest first."""
    podding, uuid = clouds_of(call).podding, call.params["pod_id"]
    limit = min(limit_of(call), HISTORY_MAX)

    def look(tx: Tx) -> dict[str, Any]:
        pod = pods.get(tx, uuid)
        rows = usage.history(tx, pod, limit=limit)
        told = _shown(usage.of_pod(tx, pod, podding, call.now))
        history = [{"measured_at": micros(each.measured_at), "usage": each.usage} for each in rows]
        return {**told, "measurements": history}

    return Answer(200, {"usage": await call.read(look)})


async def measure(call: Call) -> Answer:
    """Measure a pod now."""
    clouds, uuid = clouds_of(call), call.params["pod_id"]
    pod = await call.read(lambda tx: pods.get(tx, uuid))
    if not await clouds.measure_now(pod):
        raise Unavailable(f"Pod {pod.pod_name} could not be measured; see its last_error.")
    return await show(call)


def _shown(found: PodUsage) -> dict[str, Any]:
    pod, last = found.pod, found.measurement
    amounts = {} if last is None else usage_of(last.usage)
    kinds = {}
    for kind, each in amounts.items():
        forecast = found.forecasts.get(kind)
        kinds[kind] = {
            "total": each.total,
            "used": each.used,
            "limit": None if each.total is None else limit_of_kind(pod, kind, each.total),
            "used_per_day": None if forecast is None else forecast.used_per_day,
            "full_at": None if forecast is None else micros(forecast.full_at),
            "forecast_error_percent": None if forecast is None else forecast.error_percent,
            "forecast_errors": 0 if forecast is None else forecast.error_count,
        }
    full = [each.full_at for each in found.forecasts.values() if each.full_at is not None]
    return {
        "pod_id": pod.uuid,
        "pod_name": pod.pod_name,
        "measured_at": None if last is None else micros(last.measured_at),
        "age_s": found.age_s,
        "is_old": found.is_old,
        # Null means that the pod was never measured. The policy then assumes that the pod has room.
        "kinds": None if last is None else kinds,
        "full_at": micros(min(full)) if full else None,
        "details": None if last is None else last.usage,
    }
