"""Allocate several hosts in one request, with several transactions.

Always true: each step is one transaction, and a host is allocated entirely or not at all. With a
client token, every step stores the hosts that have been allocated so far. If a client repeats the
request, the request continues with the remaining hosts. Two clients with the same token take turns.
Failures are not stored, because a repeated request may find free hosts.

If a request has no token, it may have allocated some hosts when it is aborted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from innkeeper.domain.errors import Refusal
from innkeeper.domain.pclouds import Pcloud, PcloudHost
from innkeeper.store.queries.pclouds import pclouds
from innkeeper.store.transactions import Tx
from innkeeper.systems.pclouds import hosts, requests
from innkeeper.systems.pclouds.context import PcloudContext
from innkeeper.systems.pclouds.hosts import HostRequest

TAKEN_AT_ONCE = 10
"""The number of hosts that are allocated in one transaction, which blocks all other writers."""


@dataclass(frozen=True, slots=True)
class Request:
    """A request for hosts with distinct names.

    ``digest`` is a hash, which is equal for equal requests. ``token`` is the client token, which
    makes the request idempotent. ``show_hosts`` and ``show_failure`` format the results.
    """

    host_requests: Sequence[HostRequest]
    token: str | None
    digest: str
    show_hosts: Callable[[Tx, Sequence[PcloudHost]], list[Any]]
    show_failure: Callable[[HostRequest, Refusal], Any]


@dataclass(frozen=True, slots=True)
class AllocationProgress:
    """The allocated hosts and the failures so far, by the requested name of the host.

    The values have the format of the response. ``refusal`` is the first failure.
    """

    allocated: Mapping[str, Any] = field(default_factory=dict)
    failed: Mapping[str, Any] = field(default_factory=dict)
    refusal: Refusal | None = None

    def remaining(self, request: Request) -> list[HostRequest]:
        """Return the hosts that have not been tried, in the order of the request."""
        tried = self.allocated.keys() | self.failed.keys()
        return [each for each in request.host_requests if each.name not in tried]

    def as_answer(self, request: Request) -> dict[str, Any]:
        """Return the body of the response, with the hosts in the order of the request."""
        names = [each.name for each in request.host_requests]
        return {
            "hosts": [self.allocated[name] for name in names if name in self.allocated],
            "failures": [self.failed[name] for name in names if name in self.failed],
        }


BEGINNING = AllocationProgress()


def go_on(
    tx: Tx, pcloud: Pcloud, request: Request, so_far: AllocationProgress, context: PcloudContext
) -> AllocationProgress:
    """Try to allocate some of the remaining hosts, and return the progress.

    ``so_far`` is the result of the previous step. Raises :class:`Conflict` if the token was used
    for another request.
    """
    kept = _kept(tx, pcloud, request)
    before = so_far if kept is None else _with(so_far, kept)
    turn = len(before.allocated) + len(before.failed)
    some = before.remaining(request)[:TAKEN_AT_ONCE]
    if not some:
        return before
    made, failures = hosts.allocate_many(tx, pcloud, some, context, turn)
    shown = dict(zip([each.name for each in made], request.show_hosts(tx, made), strict=True))
    failed = {each.name: request.show_failure(each, refusal) for each, refusal in failures}
    after = AllocationProgress(
        {**before.allocated, **shown},
        {**before.failed, **failed},
        before.refusal or (failures[0][1] if failures else None),
    )
    if request.token is not None and shown:
        # Failures are not stored, but processes of an older release expect the key "failures".
        done = after.allocated
        answer = {"names": [*done], "hosts": [*done.values()], "failures": []}
        if kept is None:
            requests.begin(tx, pcloud, request.token, request.digest, answer, context.now)
        else:
            pclouds.change_answer(tx, pcloud.id, request.token, answer)
    return after


def give_up(request: Request, so_far: AllocationProgress, refusal: Refusal) -> AllocationProgress:
    """Return the progress, with all remaining hosts as failed.

    ``refusal`` is the reason: the pcloud has a new owner, the pcloud was deleted, or the database
    does not respond. No step may follow.
    """
    failed = {each.name: request.show_failure(each, refusal) for each in so_far.remaining(request)}
    return replace(so_far, failed={**so_far.failed, **failed})


def _with(so_far: AllocationProgress, kept: Mapping[str, Any]) -> AllocationProgress:
    """Add the hosts that another request with the same token has allocated meanwhile."""
    failed = {name: shown for name, shown in so_far.failed.items() if name not in kept}
    return replace(so_far, allocated={**so_far.allocated, **kept}, failed=failed)


def _kept(tx: Tx, pcloud: Pcloud, request: Request) -> Mapping[str, Any] | None:
    if request.token is None:
        return None
    answer = requests.answered(tx, pcloud, request.token, request.digest)
    if answer is None:
        return None
    # An older release stored no "names", but there each stored host contains its name.
    names = answer.get("names") or [each["name"] for each in answer["hosts"]]
    return dict(zip(names, answer["hosts"], strict=True))
