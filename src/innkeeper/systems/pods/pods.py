"""Pods: the clouds behind this service, and the results of polls.

Always true: a pod's password is stored sealed, and never returned. A pod with active bindings or
routings is not deleted.

Source: the design *Dynamic Pod Binding*; ADR 0039.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from innkeeper.domain.errors import AlreadyExists, Conflict, InUse, NotFound
from innkeeper.domain.pods import Pod, PodHealth, check_numbers
from innkeeper.store.queries.pods import pods, routings
from innkeeper.store.transactions import Tx
from innkeeper.systems.identity import secret_boxes
from innkeeper.systems.identity.secret_boxes import SecretBox

ERROR_CHARS_MAX = 1000

# Queries that are re-exported unchanged.
every = pods.every
by_id = pods.by_id
found = pods.by_uuid


def check_name(tx: Tx, pod_name: str, own_region: str) -> None:
    """Raise :class:`Conflict` if the name is this service's region, or another pod's name."""
    if pod_name == own_region:
        raise Conflict(f"{pod_name} is the region of this service. Give the pod another name.")
    if pods.named(tx, pod_name):
        raise AlreadyExists(f"A pod with the name {pod_name} exists already.")


def create(
    tx: Tx, wanted: Pod, password: str, *, own_region: str, box: SecretBox, now: datetime
) -> Pod:
    """Add a pod. The caller has just reached the pod."""
    check_numbers(wanted)
    check_name(tx, wanted.pod_name, own_region)
    pods.add(tx, wanted)
    secret_boxes.keep(tx, box, _secret_name(wanted.uuid), password.encode(), now)
    return get(tx, wanted.uuid)


def get(tx: Tx, uuid: str) -> Pod:
    """Return a pod. Raises :class:`NotFound`."""
    found_pod = pods.by_uuid(tx, uuid)
    if found_pod is None:
        raise NotFound(f"Pod {uuid} could not be found.")
    return found_pod


def changed(pod: Pod, values: Mapping[str, Any]) -> Pod:
    """Return a copy of a pod with these new values. Raises the errors of :func:`check_numbers`."""
    after = replace(pod, **values)
    check_numbers(after)
    return after


def change(
    tx: Tx,
    uuid: str,
    values: Mapping[str, Any],
    *,
    password: str | None,
    latency_ms: float | None,
    own_region: str,
    box: SecretBox,
    now: datetime,
) -> Pod:
    """Set fields of a pod.

    ``latency_ms`` is given if the caller has just reached the pod with a new login.
    """
    pod = get(tx, uuid)
    changed(pod, values)
    name = values.get("pod_name", pod.pod_name)
    if name != pod.pod_name:
        check_name(tx, name, own_region)
    if {"az_name", "tags"} & values.keys():
        _check_group(tx, pod, values)
    pods.change(tx, uuid, **values, updated_at=now)
    if latency_ms is not None:
        pods.record(tx, uuid, after_success(pod.health, latency_ms, now))
    if password is not None:
        secret_boxes.keep(tx, box, _secret_name(uuid), password.encode(), now)
    return get(tx, uuid)


def _check_group(tx: Tx, pod: Pod, values: Mapping[str, Any]) -> None:
    """Raise :class:`InUse` for a change of zone or tags while projects are bound to the pod."""
    bindings, _ = pods.counts(tx, pod.id)
    is_same = values.get("az_name", pod.az_name) == pod.az_name
    is_same = is_same and values.get("tags", pod.tags) == pod.tags
    if bindings and not is_same:
        raise InUse(
            f"Pod {pod.pod_name} has {bindings} active bindings. End them before you change the "
            "availability zone or the tags."
        )


def delete(tx: Tx, uuid: str) -> None:
    """Remove a pod. Raises :class:`InUse` while the pod has active bindings or routings."""
    pod = get(tx, uuid)
    bindings, routed = pods.counts(tx, pod.id)
    if bindings or routed:
        raise InUse(
            f"Pod {pod.pod_name} is in use: it has {bindings} active bindings and {routed} "
            "routings."
        )
    routings.drop_notes(tx, pod.id)
    pods.remove(tx, pod)
    secret_boxes.forget(tx, _secret_name(uuid))


def zones(tx: Tx) -> dict[str, bool]:
    """Return the availability zones of pods. The value is False if all pods in a zone are down."""
    found: dict[str, bool] = {}
    for each in pods.every(tx):
        found[each.az_name] = found.get(each.az_name, False) or each.health.is_up is not False
    return found


def password_of(tx: Tx, pod: Pod, box: SecretBox) -> str:
    """Return the password for this service's login at a pod.

    Raises :class:`Conflict` if the password is not stored.
    """
    secret = secret_boxes.read(tx, box, _secret_name(pod.uuid))
    if secret is None:
        raise Conflict(f"The password of pod {pod.pod_name} is lost. Set the password again.")
    return secret.decode()


def record_success(tx: Tx, uuid: str, latency_ms: float, now: datetime) -> Pod | None:
    """Record that a pod answered. Return the pod, or ``None`` if the pod was deleted."""
    pod = pods.by_uuid(tx, uuid)
    if pod is not None:
        pods.record(tx, uuid, after_success(pod.health, latency_ms, now))
    return pods.by_uuid(tx, uuid)


def record_failure(tx: Tx, uuid: str, error: str, failures_max: int, now: datetime) -> Pod | None:
    """Record that a pod did not answer.

    After ``failures_max`` failures in a row, the pod is down.
    """
    pod = pods.by_uuid(tx, uuid)
    if pod is not None:
        pods.record(tx, uuid, after_failure(pod.health, error, failures_max, now))
    return pods.by_uuid(tx, uuid)


def after_success(health: PodHealth, latency_ms: float, now: datetime) -> PodHealth:
    """Return the health of a pod after a poll that succeeded."""
    return replace(health, is_up=True, last_seen_at=now, latency_ms=latency_ms, failures=0)


def after_failure(health: PodHealth, error: str, failures_max: int, now: datetime) -> PodHealth:
    """Return the health of a pod after a poll that failed."""
    failures = health.failures + 1
    return replace(
        health,
        last_error=error[:ERROR_CHARS_MAX],
        failed_at=now,
        failures=failures,
        is_up=False if failures >= failures_max else health.is_up,
    )


def _secret_name(uuid: str) -> str:
    return f"pod.{uuid}"
