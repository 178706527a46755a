"""Store and prune measurements of pods, and return the usage of pods with a forecast.

Always true: the newest measurement of a pod is kept, however old it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from innkeeper.domain.pod_settings import Podding
from innkeeper.domain.pod_usage import KindForecast, forecasts, usage_of
from innkeeper.domain.pods import Pod, PodMeasurement
from innkeeper.store.queries.pods import measurements, pods, routings
from innkeeper.store.transactions import Tx

POINTS_MAX = 1000
"""The largest number of measurements in one forecast. A forecast is a straight line, which needs no
more points."""

NOT_COUNTED = timedelta(minutes=5)
"""The stored sums leave out resources younger than this. Each request adds these resources itself.
"""


@dataclass(frozen=True, slots=True)
class PodUsage:
    """The newest measurement of a pod, its age, and a forecast by kind.

    ``measurement`` is ``None`` if the pod was never measured. ``is_old`` means that the measurement
    is older than the settings allow.
    """

    pod: Pod
    measurement: PodMeasurement | None
    age_s: float | None
    is_old: bool
    forecasts: Mapping[str, KindForecast]


def record(tx: Tx, uuid: str, usage: Mapping[str, Any], now: datetime) -> bool:
    """Store a measurement. Return False if the pod no longer exists."""
    pod = pods.by_uuid(tx, uuid)
    if pod is None:
        return False
    measurements.add(tx, PodMeasurement(0, pod.id, now, usage))
    return True


def due(tx: Tx, podding: Podding, now: datetime) -> list[Pod]:
    """Return the pods whose last measurement is older than the period in the settings.

    Pods that are down are left out. Polls find out when such a pod is up again.
    """
    newest = measurements.newest(tx)
    period = timedelta(seconds=podding.pod_measure_interval_s)
    return [
        each
        for each in pods.every(tx)
        if each.health.is_up is not False
        and (each.id not in newest or abs(now - newest[each.id].measured_at) >= period)
    ]


def placed(
    tx: Tx, newest: Mapping[int, PodMeasurement], until: datetime | None = None
) -> dict[int, dict[str, float]]:
    """Return the amounts that this service placed in each pod after the pod's last measurement.

    ``newest`` has the last measurements, by the pod's row id. The result maps these row ids to
    amounts by kind.
    """
    found = {pod_id: dict(each.placed or {}) for pod_id, each in newest.items()}
    for pod_id, more in routings.placed(tx, until).items():
        counted = found.setdefault(pod_id, {})
        for kind, amount in more.items():
            counted[kind] = counted.get(kind, 0.0) + amount
    return found


def count_placed(tx: Tx, now: datetime) -> None:
    """For each pod, store the sum of the amounts that were placed since the newest measurement.

    The sum leaves out the last minutes, because requests of the last minutes may still be refused.
    With this sum, a new request only has to add up the last minutes.
    """
    until, newest = now - NOT_COUNTED, measurements.newest(tx)
    sums = placed(tx, newest, until)
    for pod_id, last in newest.items():
        if last.counted_until < until and sums[pod_id] != (last.placed or {}):
            measurements.count_placed(tx, last.id, sums[pod_id], last.placed_until, until)


def prune(tx: Tx, podding: Podding, now: datetime) -> int:
    """Delete measurements that are older than the settings allow.

    Return the number of deleted measurements.
    """
    days = podding.pod_measurements_kept_days
    return measurements.prune(tx, now - timedelta(days=days)) if days else 0


def every(tx: Tx, podding: Podding, now: datetime) -> list[PodUsage]:
    """Return the usage of all pods."""
    newest = measurements.newest(tx)
    return [_usage(tx, each, newest.get(each.id), podding, now) for each in pods.every(tx)]


def of_pod(tx: Tx, pod: Pod, podding: Podding, now: datetime) -> PodUsage:
    """Return the usage of a pod."""
    return _usage(tx, pod, measurements.newest(tx).get(pod.id), podding, now)


def history(tx: Tx, pod: Pod, *, limit: int) -> list[PodMeasurement]:
    """Return the newest measurements of a pod, oldest first."""
    return measurements.of_pod(tx, pod.id, limit=limit)


def ages(tx: Tx, now: datetime) -> dict[str, tuple[bool, float | None]]:
    """Return, by pod name, whether each pod is up and the age of its measurement in seconds."""
    newest = measurements.newest(tx)
    found: dict[str, tuple[bool, float | None]] = {}
    for pod in pods.every(tx):
        last = newest.get(pod.id)
        age_s = None if last is None else (now - last.measured_at).total_seconds()
        found[pod.pod_name] = (bool(pod.health.is_up), age_s)
    return found


def _usage(
    tx: Tx, pod: Pod, last: PodMeasurement | None, podding: Podding, now: datetime
) -> PodUsage:
    if last is None:
        return PodUsage(pod, None, None, is_old=False, forecasts={})
    age_s = max(0.0, (now - last.measured_at).total_seconds())
    since = last.measured_at - timedelta(days=podding.pod_trend_days)
    rows = measurements.of_pod(tx, pod.id, since, limit=POINTS_MAX)
    points = [(each.measured_at, usage_of(each.usage)) for each in rows]
    is_old = age_s > podding.pod_measurement_max_age_s
    return PodUsage(pod, last, age_s, is_old, forecasts(pod, points))
