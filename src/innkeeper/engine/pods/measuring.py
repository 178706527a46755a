"""Read the usage of a pod from its own statistics.

Always true: a usage is JSON of a bounded size, with finite numbers. A pod without a Block Storage
service has a total of 0 for volumes. An amount that a pod does not report is missing in the usage,
and does not count as used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from http import HTTPStatus

from innkeeper.clients.pod_logins import PodLogin
from innkeeper.clients.pods import NoService, PodAnswer, PodCall, PodClient, PodSilent, body_of
from innkeeper.domain.pod_usage import number
from innkeeper.domain.pods import DISK_GB, MEMORY_MB, VCPUS, VOLUME_GB

COMPUTE, BLOCK_STORAGE = "compute", "block-storage"
STATISTICS, HYPERVISORS = "/os-hypervisors/statistics", "/os-hypervisors/detail"
POOLS = "/scheduler-stats/get_pools?detail=true"
SERVICES = "/os-services?binary=cinder-volume"
GONE = (HTTPStatus.NOT_FOUND, HTTPStatus.GONE)
OF_SERVERS = {
    VCPUS: ("vcpus", "vcpus_used"),
    MEMORY_MB: ("memory_mb", "memory_mb_used"),
    DISK_GB: ("local_gb", "local_gb_used"),
}
"""For each kind of amount, the names of the statistics with the total and the used amount."""
COUNTED = ("count", "running_vms", "current_workload")


async def measure(client: PodClient, login: PodLogin, timeout_s: float) -> dict[str, object]:
    """Return the usage of a pod. Raises :class:`PodSilent` if its servers cannot be measured."""
    statistics = await _statistics(client, login, timeout_s)
    kinds: dict[str, object] = {}
    for kind, (total, used) in OF_SERVERS.items():
        amount = number(statistics.get(used))
        if amount is not None:
            kinds[kind] = {"total": number(statistics.get(total)), "used": amount}
    servers = {name: number(statistics.get(name)) for name in COUNTED}
    volumes, error = await _volumes(client, login, timeout_s)
    if volumes is not None:
        kinds[VOLUME_GB] = {"total": volumes["total"], "used": volumes["used"]}
    return {
        "kinds": kinds,
        "servers": {name: each for name, each in servers.items() if each is not None},
        "volumes": volumes,
        "volumes_error": error,
    }


async def poll(client: PodClient, login: PodLogin, timeout_s: float) -> None:
    """Check that a pod accepts its login and answers. Raises :class:`PodSilent`."""
    decoded(await client.send(login, PodCall(COMPUTE, "GET", "/flavors?limit=1", timeout_s)))


def decoded(answer: PodAnswer) -> dict[str, object]:
    """Return the body of a successful answer. Raises :class:`PodSilent`."""
    if answer.status != HTTPStatus.OK:
        raise PodSilent.of_status(answer.status, may_have_arrived=True)
    return body_of(answer)


async def _statistics(client: PodClient, login: PodLogin, timeout_s: float) -> Mapping[str, object]:
    """Return the sums over all hypervisors, under their names in the Compute API v2.1."""
    answer = await client.send(login, PodCall(COMPUTE, "GET", STATISTICS, timeout_s))
    if answer.status not in GONE:
        told = decoded(answer).get("hypervisor_statistics")
        if not isinstance(told, dict):
            raise PodSilent("its answer has no statistics", may_have_arrived=True)
        return told
    # Clouds whose oldest microversion is above 2.87 do not serve these sums.
    answer = await client.send(login, PodCall(COMPUTE, "GET", HYPERVISORS, timeout_s))
    listed = decoded(answer).get("hypervisors")
    rows = [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
    return {**_sums(rows), "count": len(rows)}


def _sums(rows: Sequence[Mapping[str, object]]) -> dict[str, float]:
    """Return the sum of each amount over the rows. An amount that any row lacks is left out."""
    names = [*(name for pair in OF_SERVERS.values() for name in pair), "running_vms"]
    found = {name: [number(each.get(name)) for each in rows] for name in names}
    return {
        name: sum(each for each in amounts if each is not None)
        for name, amounts in found.items()
        if amounts and None not in amounts
    }


async def _volumes(
    client: PodClient, login: PodLogin, timeout_s: float
) -> tuple[dict[str, object] | None, str | None]:
    """Return the sums over all volume pools, or ``None`` and the reason why there are no sums.

    An error is returned, not raised, so that servers are measured even if volumes cannot be.
    """
    try:
        answer = await client.send(login, PodCall(BLOCK_STORAGE, "GET", POOLS, timeout_s))
        listed = decoded(answer).get("pools")
    except NoService:
        return {"pools": 0, "total": 0.0, "used": 0.0}, None
    except PodSilent as error:
        return None, str(error)
    if not isinstance(listed, list):
        return None, "its answer has no pools"
    pools = [each.get("capabilities") for each in listed if isinstance(each, dict)]
    if not pools and await _has_volume_services(client, login, timeout_s):
        # Cinder lists the pools of services that are up and have reported since its last start.
        return None, "its volume services have reported no pools"
    amounts = [_pool(each) for each in pools if isinstance(each, dict)]
    totals = [total for total, _ in amounts]
    # If one pool is unbounded, the volumes of the pod are unbounded.
    total = None if None in totals else sum(each for each in totals if each is not None)
    used = sum(each for _, each in amounts)
    return {"pools": len(pools), "total": total, "used": used}, None


async def _has_volume_services(client: PodClient, login: PodLogin, timeout_s: float) -> bool:
    try:
        answer = await client.send(login, PodCall(BLOCK_STORAGE, "GET", SERVICES, timeout_s))
        return bool(decoded(answer).get("services"))
    except PodSilent:
        return False


def _pool(told: Mapping[str, object]) -> tuple[float | None, float]:
    """Return the total and the used amount of a pool. A total that is not a number is ``None``."""
    total, free = number(told.get("total_capacity_gb")), number(told.get("free_capacity_gb"))
    allocated = number(told.get("allocated_capacity_gb")) or 0.0
    if total is None:
        return None, allocated
    return total, allocated if free is None else max(0.0, total - free)
