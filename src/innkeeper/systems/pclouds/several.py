"""Several hosts that are wanted at once, taken some at a time, each time in a transaction.

Always true: a step takes each of its hosts whole or not at all. What was done under a client's
token is written with each step, from the first host on: who asks the same again goes on with
what is left, and two who ask it at once take turns. Before the first host there is nothing that
could be done twice; so a request of which nothing could be had is not kept, and can be made
again.

May be false: that a request without a token which was given up half way took nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from innkeeper.domain.errors import Refusal
from innkeeper.domain.pclouds import Pcloud, PcloudHost
from innkeeper.store.transactions import Tx
from innkeeper.systems.pclouds import hosts, requests
from innkeeper.systems.pclouds.hosts import Wish
from innkeeper.systems.pclouds.terms import Terms

TAKEN_AT_ONCE = 10
"""Hosts that are taken in one transaction, for which all other writers wait."""


@dataclass(frozen=True, slots=True)
class Request:
    """What is wanted, and how what becomes of it is told.

    ``asked`` is the same for the same request, and ``token`` is what its client calls it.
    """

    wishes: Sequence[Wish]
    token: str | None
    asked: str
    tell_hosts: Callable[[Tx, Sequence[PcloudHost]], list[Any]]
    tell_failure: Callable[[Wish, Refusal], Any]


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a request has come: what is told of its hosts, and of those that were not had.

    ``refusal`` is why the first could not be had, as far as that was not told by others.
    """

    hosts: tuple[Any, ...] = ()
    failures: tuple[Any, ...] = ()
    refusal: Refusal | None = None

    @property
    def tried(self) -> int:
        """How many wishes were tried; they are tried in their order."""
        return len(self.hosts) + len(self.failures)

    def as_answer(self) -> dict[str, Any]:
        """What is answered, and kept under a token."""
        return {"hosts": list(self.hosts), "failures": list(self.failures)}


BEGINNING = Progress()


def go_on(tx: Tx, pcloud: Pcloud, request: Request, so_far: Progress, terms: Terms) -> Progress:
    """Try some more of what is wanted; tells how far it has come then.

    ``so_far`` is what the last step gave. Raises :class:`Conflict` where the token stands for
    another request.
    """
    kept = _kept(tx, pcloud, request)
    before = so_far if kept is None else kept
    some = request.wishes[before.tried : before.tried + TAKEN_AT_ONCE]
    if not some:
        return before
    made, failures = hosts.allocate_many(tx, pcloud, some, terms, before.tried)
    after = Progress(
        (*before.hosts, *request.tell_hosts(tx, made)),
        (*before.failures, *(request.tell_failure(wish, why) for wish, why in failures)),
        before.refusal or (failures[0][1] if failures else None),
    )
    if request.token is not None and after.hosts:
        answer = after.as_answer()
        if kept is None:
            requests.begin(tx, pcloud, request.token, request.asked, answer, terms.now)
        else:
            requests.go_on(tx, pcloud, request.token, answer)
    return after


def give_up(request: Request, so_far: Progress, refusal: Refusal) -> Progress:
    """Tell of all that is left that it could not be had, since no more steps can be taken.

    ``refusal`` is why: the pcloud is another project's by now, or is gone, or the database does
    not answer. None of it is kept under the token: who asks the same again, and may, goes on
    behind ``so_far``.
    """
    left = request.wishes[so_far.tried :]
    told = (request.tell_failure(wish, refusal) for wish in left)
    return replace(so_far, failures=(*so_far.failures, *told))


def _kept(tx: Tx, pcloud: Pcloud, request: Request) -> Progress | None:
    if request.token is None:
        return None
    answer = requests.answered(tx, pcloud, request.token, request.asked)
    if answer is None:
        return None
    return Progress(tuple(answer["hosts"]), tuple(answer["failures"]))
