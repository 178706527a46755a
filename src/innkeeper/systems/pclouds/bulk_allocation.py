"""Several hosts that are wanted at once, taken some at a time, each time in a transaction.

Always true: a step takes each of its hosts whole or not at all. What was had under a client's
token is written with each step, from the first host on: who asks the same again goes on with
what is left, and two who ask it at once take turns. What could not be had is not kept: there
may be room by then, and nothing would be done twice.

May be false: that a request without a token which was given up half way took nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from innkeeper.domain.errors import Refusal
from innkeeper.domain.pclouds import Pcloud, PcloudHost
from innkeeper.store.transactions import Tx
from innkeeper.systems.pclouds import hosts, requests
from innkeeper.systems.pclouds.context import PcloudContext
from innkeeper.systems.pclouds.hosts import HostRequest

TAKEN_AT_ONCE = 10
"""Hosts that are taken in one transaction, for which all other writers wait."""


@dataclass(frozen=True, slots=True)
class Request:
    """What is wanted, each under a name of its own, and how what becomes of it is told.

    ``asked`` is the same for the same request, and ``token`` is what its client calls it.
    """

    host_requests: Sequence[HostRequest]
    token: str | None
    asked: str
    tell_hosts: Callable[[Tx, Sequence[PcloudHost]], list[Any]]
    tell_failure: Callable[[HostRequest, Refusal], Any]


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a request has come: what is told of its hosts, and of those that were not had.

    Both by the names that were wished for. ``refusal`` is why the first could not be had.
    """

    had: Mapping[str, Any] = field(default_factory=dict)
    refused: Mapping[str, Any] = field(default_factory=dict)
    refusal: Refusal | None = None

    def left(self, request: Request) -> list[HostRequest]:
        """The wishes that nobody has tried, in their order."""
        tried = self.had.keys() | self.refused.keys()
        return [each for each in request.host_requests if each.name not in tried]

    def as_answer(self, request: Request) -> dict[str, Any]:
        """What is answered, in the order of the wishes."""
        names = [each.name for each in request.host_requests]
        return {
            "hosts": [self.had[name] for name in names if name in self.had],
            "failures": [self.refused[name] for name in names if name in self.refused],
        }


BEGINNING = Progress()


def go_on(
    tx: Tx, pcloud: Pcloud, request: Request, so_far: Progress, context: PcloudContext
) -> Progress:
    """Try some more of what is wanted; tells how far it has come then.

    ``so_far`` is what the last step gave. Raises :class:`Conflict` where the token stands for
    another request.
    """
    kept = _kept(tx, pcloud, request)
    before = so_far if kept is None else _with(so_far, kept)
    turn = len(before.had) + len(before.refused)
    some = before.left(request)[:TAKEN_AT_ONCE]
    if not some:
        return before
    made, failures = hosts.allocate_many(tx, pcloud, some, context, turn)
    told = dict(zip([each.name for each in made], request.tell_hosts(tx, made), strict=True))
    refused = {
        host_request.name: request.tell_failure(host_request, why) for host_request, why in failures
    }
    after = Progress(
        {**before.had, **told},
        {**before.refused, **refused},
        before.refusal or (failures[0][1] if failures else None),
    )
    if request.token is not None and told:
        # Older programs beside this one look for failures, of which none is kept.
        had = after.had
        answer = {"names": list(had), "hosts": list(had.values()), "failures": []}
        if kept is None:
            requests.begin(tx, pcloud, request.token, request.asked, answer, context.now)
        else:
            requests.go_on(tx, pcloud, request.token, answer)
    return after


def give_up(request: Request, so_far: Progress, refusal: Refusal) -> Progress:
    """Tell of all that is left that it could not be had, since no more steps can be taken.

    ``refusal`` is why: the pcloud is another project's by now, or is gone, or the database does
    not answer.
    """
    told = {each.name: request.tell_failure(each, refusal) for each in so_far.left(request)}
    return replace(so_far, refused={**so_far.refused, **told})


def _with(so_far: Progress, had: Mapping[str, Any]) -> Progress:
    """As far as it has come, with what another one had under the same token meanwhile."""
    refused = {name: told for name, told in so_far.refused.items() if name not in had}
    return replace(so_far, had={**so_far.had, **had}, refused=refused)


def _kept(tx: Tx, pcloud: Pcloud, request: Request) -> Mapping[str, Any] | None:
    if request.token is None:
        return None
    answer = requests.answered(tx, pcloud, request.token, request.asked)
    if answer is None:
        return None
    # Older programs kept no names beside what they told, which has them.
    names = answer.get("names") or [each["name"] for each in answer["hosts"]]
    return dict(zip(names, answer["hosts"], strict=True))
