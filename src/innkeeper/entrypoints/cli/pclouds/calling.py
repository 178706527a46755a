"""Calls the Compute API: single requests, paged lists, look-ups by name, and several items.

Always true: errors show the service's own message. A name that a user types is sent as one
segment of a path, whatever characters it has.
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

MICROVERSION = "2.100"
FLAVORS, PCLOUDS = "os-host-flavors", "os-pclouds"
NOT_FOUND = 404
DOTS = frozenset({".", ".."})


class Compute(Protocol):
    """The part of the SDK's Compute client that is used here."""

    def request(self, url: str, method: str, **more: Any) -> Any:
        """Send a request with the caller's token; returns responses of any status."""


def call(
    compute: Compute,
    method: str,
    path: Sequence[str],
    *,
    body: Mapping[str, Any] | None = None,
    query: Mapping[str, str] | None = None,
) -> Any:
    """Call the service; returns the decoded body, or ``None`` if it is empty.

    Raises :class:`CommandError` with the service's message if it refuses.
    """
    answer = _send(compute, method, path, body, query)
    _raise_refusal(answer)
    return answer.json() if answer.content else None


def found(compute: Compute, path: Sequence[str]) -> Any:
    """Return the decoded body, or ``None`` for a 404. Raises other errors as in :func:`call`."""
    answer = _send(compute, "GET", path)
    if answer.status_code == NOT_FOUND:
        return None
    _raise_refusal(answer)
    return answer.json()


def _send(
    compute: Compute,
    method: str,
    path: Sequence[str],
    body: Mapping[str, Any] | None = None,
    query: Mapping[str, str] | None = None,
) -> Any:
    address = "".join(f"/{_part(each)}" for each in path)
    if query:
        address += f"?{urlencode(query)}"
    more = {} if body is None else {"json": body}
    return compute.request(address, method, microversion=MICROVERSION, **more)


def _part(text: str) -> str:
    # HTTP clients resolve dots as directories, even quoted ones: a request to remove a host
    # would remove its pcloud.
    if text in DOTS or not text:
        raise osc_exceptions.CommandError(f"'{text}' is not a valid name or ID.")
    return quote(text, safe="")


def _raise_refusal(answer: Any) -> None:
    try:
        exceptions.raise_from_response(answer)
    except exceptions.HttpException as refusal:
        # The SDK's message starts with a class and an address; users need the reason.
        request = f" (Request-ID: {refusal.request_id})" if refusal.request_id else ""
        message = f"{refusal.details} (HTTP {refusal.status_code}){request}"
        raise osc_exceptions.CommandError(message) from refusal


def rows(
    compute: Compute, path: Sequence[str], key: str, query: Mapping[str, str] | None = None
) -> Iterator[dict[str, Any]]:
    """Yield the rows of a list, and read pages only when they are needed.

    Only the query parameters of the link to the next page are used, because the token must not
    be sent to another address.
    """
    parameters = dict(query or {})
    seen: set[str | None] = set()
    while parameters.get("marker") not in seen:
        seen.add(parameters.get("marker"))
        answer = call(compute, "GET", path, query=parameters)
        yield from answer[key]
        links = {each["rel"]: each["href"] for each in answer.get(f"{key}_links", ())}
        if "next" not in links:
            return
        parameters = dict(parse_qsl(urlsplit(links["next"]).query, keep_blank_values=True))
    raise osc_exceptions.CommandError("The service repeats a page of the list without end.")


def pcloud(connection: Any, text: str, *, is_for_guests: bool = False) -> dict[str, Any]:
    """Return the pcloud with this id, or else the only pcloud with this name.

    Any project can create a pcloud with any name and add other projects to it. So a name is looked
    up in several sets of pclouds, until one set has the name:

    - the pclouds that the caller's own project owns;
    - for an administrator, all pclouds;
    - if the command ``is_for_guests``, the pclouds that the caller's project may only use.

    Raises :class:`CommandError` if no set has the name, or if several pclouds of the set have it.
    """
    compute = connection.compute
    if canonical_uuid(text) is not None:
        there = found(compute, (PCLOUDS, text))
        if there is not None:
            shown: dict[str, Any] = there["pcloud"]
            return shown
    named = _own(connection, text) or _of_others(compute, text, is_for_guests=is_for_guests)
    if not named:
        none = "No pcloud has" if is_for_guests else "The project owns no pcloud with"
        raise osc_exceptions.CommandError(f"{none} the name or ID '{text}'.")
    if len(named) > 1:
        ids = ", ".join(each["id"] for each in named)
        raise osc_exceptions.CommandError(
            f"{len(named)} pclouds are called '{text}'. Name one by its ID: {ids}."
        )
    return named[0]


def _own(connection: Any, name: str) -> list[dict[str, Any]]:
    mine = connection.session.get_project_id()
    if mine is None:
        return []
    query = {"name": name, "project_id": str(mine)}
    return list(rows(connection.compute, (PCLOUDS,), "pclouds", query))


def _of_others(compute: Compute, name: str, *, is_for_guests: bool) -> list[dict[str, Any]]:
    # Without administrator rights, the service lists the pclouds that the project may use, with
    # few fields.
    query = {"name": name, "all_projects": "true"}
    seen = list(rows(compute, (PCLOUDS,), "pclouds", query))
    whole = [each for each in seen if is_whole(each)]
    return whole or (seen if is_for_guests else [])


def is_whole(shown: Mapping[str, Any]) -> bool:
    """Return whether a pcloud has all fields, which only its owner and administrators see."""
    return "owner" in shown


def pcloud_id(connection: Any, text: str, *, is_for_guests: bool = False) -> str:
    """Return the id of the pcloud with this name or id; see :func:`pcloud`."""
    return str(pcloud(connection, text, is_for_guests=is_for_guests)["id"])


def own_project_id(connection: Any) -> str:
    """Return the login's project. Raises :class:`CommandError` if the login has none."""
    own = connection.session.get_project_id()
    if own is None:
        raise osc_exceptions.CommandError("The login has no project. Name a project.")
    return str(own)


def each_of(
    names: Sequence[str], act: Callable[[str], Any], log: logging.Logger
) -> tuple[list[Any], int]:
    """Apply ``act`` to each name, and log each refusal.

    Returns the answers and the number of refusals. With a single name, its
    :class:`CommandError` is raised instead.
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
    """Call :func:`each_of`, and then raise :class:`CommandError` if a name was refused."""
    _, refused = each_of(names, act, log)
    if refused:
        raise osc_exceptions.CommandError(f"{refused} of {len(names)} failed.")


class PartialLister(command.Lister):
    """A command that lists its results, and fails if some items were ``refused``."""

    refused = 0

    def run(self, parsed_args: argparse.Namespace) -> int:
        """Show the results, even if some items were refused."""
        status: int = super().run(parsed_args)
        return status or int(self.refused > 0)
