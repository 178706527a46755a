"""What the commands of host flavors and pclouds have in common: calls, pages and refusals.

Always true: a refusal is told in the service's own words, and names that people type reach it
as one part of a path, whatever they are made of.
"""

from __future__ import annotations

import argparse
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from openstack import exceptions
from osc_lib import exceptions as osc_exceptions
from osc_lib.command import command

from innkeeper.domain.ids import canonical_uuid
from innkeeper.entrypoints.cli.servers import MICROVERSION

FLAVORS, PCLOUDS = "os-host-flavors", "os-pclouds"
NOT_FOUND = 404
DOTS = frozenset({".", ".."})


class Compute(Protocol):
    """The SDK's door to the Compute API, as far as it is used here."""

    def request(self, url: str, method: str, **more: Any) -> Any:
        """Send one request, with the caller's token; answers of all statuses are given."""


# -- one call ----------------------------------------------------------------------------------


def call(
    compute: Compute,
    method: str,
    path: Sequence[str],
    *,
    body: Mapping[str, Any] | None = None,
    query: Mapping[str, str] | None = None,
) -> Any:
    """Ask the service; give its answer, ``None`` where there is nothing in it.

    Raises :class:`CommandError` with what the service says if it refuses.
    """
    answer = _sent(compute, method, path, body, query)
    _raise_refusal(answer)
    return answer.json() if answer.content else None


def found(compute: Compute, path: Sequence[str]) -> Any:
    """What is there; ``None`` if nothing is. Raises :class:`CommandError` otherwise."""
    answer = _sent(compute, "GET", path, None, None)
    if answer.status_code == NOT_FOUND:
        return None
    _raise_refusal(answer)
    return answer.json()


def _sent(
    compute: Compute,
    method: str,
    path: Sequence[str],
    body: Mapping[str, Any] | None,
    query: Mapping[str, str] | None,
) -> Any:
    address = "".join(f"/{_part(each)}" for each in path)
    if query:
        address += f"?{urlencode(query)}"
    more = {} if body is None else {"json": body}
    return compute.request(address, method, microversion=MICROVERSION, **more)


def _part(text: str) -> str:
    # Whatever sends a request takes dots for directories, quoted or not: what was to remove a
    # host would remove what is above it.
    if text in DOTS or not text:
        raise osc_exceptions.CommandError(f"Nothing can be called '{text}'.")
    return quote(text, safe="")


def _raise_refusal(answer: Any) -> None:
    try:
        exceptions.raise_from_response(answer)
    except exceptions.HttpException as refusal:
        # The SDK's own wording begins with its class and the address; people want the reason.
        request = f" (Request-ID: {refusal.request_id})" if refusal.request_id else ""
        told = f"{refusal.details} (HTTP {refusal.status_code}){request}"
        raise osc_exceptions.CommandError(told) from refusal


# -- lists -------------------------------------------------------------------------------------


def rows(
    compute: Compute, path: Sequence[str], key: str, query: Mapping[str, str] | None = None
) -> Iterator[dict[str, Any]]:
    """All rows of a list, page by page, as they are asked for.

    Of the link to a next page the parameters are taken and nothing else: whatever address the
    service believes it has, the token goes where it went before.
    """
    asked = dict(query or {})
    seen: set[str | None] = set()
    while asked.get("marker") not in seen:
        seen.add(asked.get("marker"))
        answer = call(compute, "GET", path, query=asked)
        yield from answer[key]
        links = {each["rel"]: each["href"] for each in answer.get(f"{key}_links", ())}
        if "next" not in links:
            return
        asked = dict(parse_qsl(urlsplit(links["next"]).query, keep_blank_values=True))
    raise osc_exceptions.CommandError("The service's list does not end.")


# -- what people name --------------------------------------------------------------------------


def pcloud(connection: Any, text: str, *, is_for_guests: bool = False) -> dict[str, Any]:
    """The pcloud of this id, or else the only one of this name that can be meant.

    Whoever likes makes a pcloud of any name and lets any project in. So those of the caller's
    own project come first, then those that an administrator can see, and another project's
    only where a command ``is_for_guests``. Raises :class:`CommandError` if there is none, or if
    several of the same kind have the name.
    """
    compute = connection.compute
    if canonical_uuid(text) is not None:
        there = found(compute, (PCLOUDS, text))
        if there is not None:
            shown: dict[str, Any] = there["pcloud"]
            return shown
    named = _own(connection, text) or _of_others(compute, text, is_for_guests=is_for_guests)
    if not named:
        told = "No pcloud has" if is_for_guests else "No pcloud of the project's own has"
        raise osc_exceptions.CommandError(f"{told} the name or ID '{text}'.")
    if len(named) > 1:
        ids = ", ".join(each["id"] for each in named)
        raise osc_exceptions.CommandError(
            f"{len(named)} pclouds are called '{text}'; name one by its ID: {ids}."
        )
    return named[0]


def _own(connection: Any, name: str) -> list[dict[str, Any]]:
    mine = connection.session.get_project_id()
    if mine is None:
        return []
    query = {"name": name, "project_id": str(mine)}
    return list(rows(connection.compute, (PCLOUDS,), "pclouds", query))


def _of_others(compute: Compute, name: str, *, is_for_guests: bool) -> list[dict[str, Any]]:
    # Who is no administrator is told of what its project may see, and no more of it.
    query = {"name": name, "all_projects": "true"}
    seen = list(rows(compute, (PCLOUDS,), "pclouds", query))
    whole = [each for each in seen if is_whole(each)]
    return whole or (seen if is_for_guests else [])


def is_whole(shown: Mapping[str, Any]) -> bool:
    """Whether a pcloud is shown as to its owner and to administrators, not as to a guest."""
    return "owner" in shown


def pcloud_id(connection: Any, text: str, *, is_for_guests: bool = False) -> str:
    """The id of the pcloud that somebody named; see :func:`pcloud`."""
    return str(pcloud(connection, text, is_for_guests=is_for_guests)["id"])


def own_project_id(connection: Any) -> str:
    """The project that the caller acts for. Raises :class:`CommandError` if there is none."""
    mine = connection.session.get_project_id()
    if mine is None:
        raise osc_exceptions.CommandError("Name a project; the login is for none.")
    return str(mine)


# -- several at once ---------------------------------------------------------------------------


def each_of(
    names: Sequence[str], act: Callable[[str], Any], log: logging.Logger
) -> tuple[list[Any], int]:
    """Do the same to each, whatever becomes of the others, and tell of each that is refused.

    Gives what was answered, and how many were refused. If there is one alone, its
    :class:`CommandError` is the caller's.
    """
    if len(names) == 1:
        return [act(names[0])], 0
    answers = []
    for name in names:
        try:
            answers.append(act(name))
        except osc_exceptions.CommandError as refusal:
            log.error("%s: %s", name, refusal)
    return answers, len(names) - len(answers)


def all_of(names: Sequence[str], act: Callable[[str], Any], log: logging.Logger) -> None:
    """As :func:`each_of`; raises :class:`CommandError` at the end if some were refused."""
    _, refused = each_of(names, act, log)
    if refused:
        raise osc_exceptions.CommandError(f"{refused} of {len(names)} failed.")


class PartialLister(command.Lister):
    """A command that lists what it did, and ends badly if ``refused`` says it was not all."""

    refused = 0

    def run(self, parsed_args: argparse.Namespace) -> int:
        """Show what was done in any case: it was."""
        status: int = super().run(parsed_args)
        return status or int(self.refused > 0)
