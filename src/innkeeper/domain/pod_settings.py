"""Settings for pods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

import msgspec

from innkeeper.domain.setting_types import Days, Few, Multiplier, Seconds


class Podding(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Pods: clouds behind this service.

    With the ``role`` ``gateway``, requests for servers and volumes are forwarded to pods. The
    recorded locations of resources are compared with each pod every ``pod_recheck_interval_s``.

    A login to a pod and each request to a pod time out after ``pod_request_timeout_s``. Each
    process runs at most ``pod_requests_max`` requests to one pod at once. Each pod is polled every
    ``pod_poll_interval_s``, and is down after ``pod_failures_to_offline`` failures in a row. The
    usage of a pod is measured every ``pod_measure_interval_s``. Measurements older than
    ``pod_measurement_max_age_s`` are reported as old. All measurements are kept for
    ``pod_measurements_kept_days``. Forecasts use the measurements of the last ``pod_trend_days``.

    A pod without a threshold of its own is full at ``pod_threshold_percent``. An extra spec with a
    key in ``pod_affinity_keys`` is an affinity tag, even if no pod has this tag. Filters and
    weighers are given by their names, or as ``package.module:name``. The highest weight wins.
    """

    role: Literal["zone", "gateway"] = "zone"
    pod_request_timeout_s: Annotated[float, msgspec.Meta(gt=0, le=600)] = 30.0
    pod_requests_max: Few = 16
    pod_recheck_interval_s: Seconds = 3600.0
    pod_poll_interval_s: Annotated[float, msgspec.Meta(gt=0, le=3600)] = 30.0
    pod_failures_to_offline: Few = 3
    pod_measure_interval_s: Seconds = 86_400.0
    pod_measurement_max_age_s: Seconds = 172_800.0
    pod_measurements_kept_days: Days = 90
    pod_trend_days: Annotated[int, msgspec.Meta(ge=1, le=366)] = 30
    pod_threshold_percent: Annotated[float, msgspec.Meta(gt=0, le=100)] = 90.0
    pod_affinity_keys: tuple[str, ...] = ("resource",)
    default_pod_filters: tuple[str, ...] = (
        "AllPodsFilter",
        "AvailabilityZoneFilter",
        "ResourceAffinityFilter",
        "MaintenanceFilter",
        "PodStateFilter",
        "CapacityFilter",
    )
    default_pod_weighers: tuple[str, ...] = ("weight", "creation_time")
    pod_weigher_multipliers: Mapping[str, Multiplier] = {}
