"""Creates that pods refuse: how many pods are asked, and what the client gets.

Always true: users are not told which pods there are. Administrators get the reason of each pod.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from innkeeper.domain.door import DoorAnswer, message_of
from innkeeper.domain.errors import Conflict
from innkeeper.domain.pods import Pod
from innkeeper.systems.pods.bindings import NoPod

PODS_MAX = 10
"""The maximum number of pods that are asked for a create, one after the other.

Each may take seconds, and clients wait for about a minute. Pods that are known to be full are not
asked at all, so even two refusals are rare.
"""


class PodRefused(Exception):
    """A pod refused a create, and surely made nothing.

    ``answer`` or ``error`` is what the client gets if no other pod takes it.
    """

    def __init__(self, why: str, answer: DoorAnswer | None, error: Conflict | None = None) -> None:
        super().__init__(why)
        self.answer, self.error = answer, error

    @property
    def message(self) -> str:
        """What the pod says, for users; empty if it says nothing."""
        if self.answer is None:
            return "" if self.error is None else self.error.message
        return message_of(msgspec.json.decode(self.answer.body)) if self.answer.body else ""


Refusals = Sequence[tuple[Pod, PodRefused]]
"""The pods that refused a create, in the order in which they were asked."""


def without_pod(refusals: Refusals, error: NoPod, *, is_admin: bool) -> DoorAnswer | Conflict:
    """Return what the client gets if no pod is left: the first refusal, or the reasons."""
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
    """Return what the client gets after :data:`PODS_MAX` refusals."""
    told = f"{len(refusals)} places refused this request, and no more are asked."
    first = refusals[0][1].message
    if is_admin:
        told = f"{told} {_reasons(refusals)}."
    elif first:
        told = f"{told} The first one said: {first}"
    return Conflict(told, code=NoPod.code)


def _reasons(refusals: Refusals) -> str:
    return "; ".join(f"{pod.pod_name}: {each}" for pod, each in refusals)
