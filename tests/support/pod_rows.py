"""Rows of pods without HTTP: pods that nobody contacted, with the usage that a test gives them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from innkeeper.domain.pod_settings import Podding
from innkeeper.domain.pods import Pod, PodMeasurement
from innkeeper.scheduling.pod_choosing import PodPolicy
from innkeeper.store.queries.pods import measurements, pods
from innkeeper.store.transactions import Tx
from innkeeper.systems.pods.policy import policy_of
from tests.support.stores import NOW

CAD: Mapping[str, str] = {"resource": "CAD"}
POLICY: PodPolicy = policy_of(Podding())
TOTAL = 100.0
"""The capacity of a measured pod, of each kind."""


def pod_of(number: int, **more: Any) -> Pod:
    """Return a pod for general work in the availability zone az1, with these fields."""
    usual: dict[str, Any] = {
        "id": number,
        "uuid": f"b0000000-0000-4000-8000-{number:012d}",
        "pod_name": f"p{number}",
        "az_name": "az1",
        "pod_az_name": "",
        "dc_name": "",
        "tags": {},
        "weight": 0.0,
        "price": 0.0,
        "threshold_percent": 80.0,
        "headroom": {},
        "allocation_ratios": {},
        "is_in_maintenance": False,
        "auth_url": "http://pod.example/v3",
        "username": "door",
        "user_domain": "Default",
        "project_name": "door",
        "project_domain": "Default",
        "region_name": "",
        "endpoints": {},
        "created_at": NOW,
        "updated_at": NOW,
    }
    return Pod(**{**usual, **more})


def add_pod(tx: Tx, number: int, **more: Any) -> Pod:
    """Add a pod; see :func:`pod_of`. Its row id is the database's."""
    wanted = pod_of(number, **more)
    pods.add(tx, wanted)
    found = pods.by_uuid(tx, wanted.uuid)
    assert found is not None
    return found


def told(**used: float) -> dict[str, Any]:
    """Return a measurement's JSON with these used amounts, of a total of :data:`TOTAL` each."""
    return {"kinds": {kind: {"total": TOTAL, "used": each} for kind, each in used.items()}}


def measure(tx: Tx, pod: Pod, at: datetime = NOW, **used: float) -> None:
    """Add a measurement; see :func:`told`."""
    measurements.add(tx, PodMeasurement(0, pod.id, at, told(**used)))
