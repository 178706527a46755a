"""The answers to clients if pods (clouds behind this service) refuse their creates.

Always true: users are not told the names of pods. Administrators get the reason of each pod.
"""

from __future__ import annotations

from collections.abc import Sequence

from innkeeper.domain.door import DoorAnswer, PodRefused
from innkeeper.domain.errors import Conflict
from innkeeper.domain.pods import Pod
from innkeeper.systems.pods.bindings import NoPod

Refusals = Sequence[tuple[Pod, PodRefused]]
"""The pods that refused a create, and their refusals, in the order in which they were asked."""


def without_pod(refusals: Refusals, error: NoPod, *, is_admin: bool) -> DoorAnswer | Conflict:
    """Return the client's answer if no pod is left to ask.

    The answer is the first pod's refusal. For administrators, it has the reasons of all pods.
    """
    if not refusals:
        message = error.message_for_administrators if is_admin else error.message
        return Conflict(message, code=error.code)
    first = refusals[0][1]
    if is_admin and len(refusals) > 1:
        return Conflict(f"{error.message} {_reasons(refusals)}.", code=error.code)
    if first.answer is not None:
        return first.answer
    return first.error or Conflict(error.message, code=error.code)


def of_too_many(refusals: Refusals, *, is_admin: bool) -> Conflict:
    """Return the client's answer after :data:`PODS_MAX` refusals."""
    told = f"{len(refusals)} clouds refused this request. No other cloud is asked."
    first = refusals[0][1].message
    if is_admin:
        told = f"{told} {_reasons(refusals)}."
    elif first:
        told = f"{told} The first one said: {first}"
    return Conflict(told, code=NoPod.code)


def _reasons(refusals: Refusals) -> str:
    return "; ".join(f"{pod.pod_name}: {each}" for pod, each in refusals)
