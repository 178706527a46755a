"""Lists of the hypervisors, services and pools of all pods, for administrators of a door.

A door is a service that forwards requests to pods, which are clouds behind it.

Always true: each row names its pod. Requests that change hypervisors, services or pools are
refused, because they must be sent to the pod.
"""

from __future__ import annotations

from collections import Counter
from http import HTTPStatus
from typing import Any
from urllib.parse import urlencode

from innkeeper.domain.door import DoorRequest
from innkeeper.domain.errors import Invalid, Unavailable
from innkeeper.engine.pods.creating import AWAY, RETRY_AFTER_S
from innkeeper.engine.pods.doors import Door
from innkeeper.engine.pods.tenants import BLOCK_STORAGE, COMPUTE
from innkeeper.entrypoints.api.routing import Answer, Call

_HYPERVISORS, _SERVICES = "/v2.1/os-hypervisors", "/v2.1/os-services"
_VOLUME_SERVICES, _POOLS = "/v3/os-services", "/v3/scheduler-stats/get_pools"
PREFIXES = (_HYPERVISORS, _SERVICES, _VOLUME_SERVICES, _POOLS)
LISTS = {
    _HYPERVISORS: (COMPUTE, "hypervisors"),
    f"{_HYPERVISORS}/detail": (COMPUTE, "hypervisors"),
    _SERVICES: (COMPUTE, "services"),
    _VOLUME_SERVICES: (BLOCK_STORAGE, "services"),
    _POOLS: (BLOCK_STORAGE, "pools"),
}
"""The service type that serves each list in a pod, and the list's key in answers."""
STATISTICS = f"{_HYPERVISORS}/statistics"
OF_PAGES = ("limit", "marker")
NOT_HERE = "A door only lists hypervisors, services and pools. Send this request to the pod."


def is_place(path: str) -> bool:
    """Return whether a path is about the hypervisors, services or pools of pods."""
    return path.startswith(PREFIXES)


async def answered(call: Call, door: Door, request: DoorRequest) -> Answer:
    """Return a list or the statistics of all pods. Raises :class:`Invalid` for other requests."""
    path = call.route.path
    if call.route.method != "GET" or path not in (*LISTS, STATISTICS):
        raise Invalid(NOT_HERE)
    service, key = LISTS.get(path, (COMPUTE, "hypervisor_statistics"))
    query = [
        (name, each)
        for name, values in call.query.items()
        if name not in OF_PAGES
        for each in values
    ]
    target = request.target.partition("?")[0] + (f"?{urlencode(query)}" if query else "")
    asked = await door.lookups.every_pod()
    told, missing = await door.lookups.ask(asked, None, service, target, request.headers)
    if asked and not told:
        raise Unavailable(AWAY, retry_after_s=RETRY_AFTER_S)
    if path == STATISTICS:
        body: dict[str, Any] = {key: _sums([each.get(key) for _, each in told])}
    else:
        body = {
            key: [
                {**row, "pod_id": pod.uuid, "pod_name": pod.pod_name}
                for pod, each in told
                for row in _rows(each.get(key))
            ]
        }
    # Only the first page of each pod is read. A pod with further pages counts as missing.
    missing += [pod for pod, each in told if f"{key}_links" in each]
    if missing:
        body |= {"is_partial": True, "missing_pods": [each.pod_name for each in missing]}
    return Answer(HTTPStatus.OK, body)


def _rows(told: object) -> list[dict[str, Any]]:
    return [each for each in told if isinstance(each, dict)] if isinstance(told, list) else []


def _sums(told: list[object]) -> dict[str, int]:
    found: Counter[str] = Counter()
    for each in told:
        if isinstance(each, dict):
            found.update({name: value for name, value in each.items() if isinstance(value, int)})
    return dict(found)
