"""Sends requests of commands to an API of the service.

Always true: errors show the service's own message. A name that a user types is sent as one segment
of a path, even if it contains special characters. The token is sent only to the address in the
catalog.
"""

from __future__ import annotations

import argparse
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from openstack import exceptions
from osc_lib import exceptions as osc_exceptions
from osc_lib.command import command

COMPUTE_MICROVERSION = "2.100"
NOT_FOUND = 404
DOTS = frozenset({".", ".."})


class ApiClient(Protocol):
    """An API of the service, to which a command sends requests."""

    def request(self, url: str, method: str, **more: Any) -> Any:
        """Send a request with the caller's token. Return the response, even if it is an error."""


@dataclass(frozen=True, slots=True)
class CatalogClient:
    """An API at its address in the service catalog. ``clients`` is the command's client manager."""

    clients: Any
    service_type: str

    def request(self, url: str, method: str, **more: Any) -> Any:
        """Send a request with the caller's token. Return the response, even if it is an error."""
        where = {
            "service_type": self.service_type,
            "interface": self.clients.interface,
            "region_name": self.clients.region_name,
        }
        session = self.clients.session
        return session.request(url, method, endpoint_filter=where, raise_exc=False, **more)


@dataclass(frozen=True, slots=True)
class ComputeClient:
    """The Compute API at the microversion of this program.

    ``client`` is the SDK's client of this API.
    """

    client: Any

    def request(self, url: str, method: str, **more: Any) -> Any:
        """Send a request with the caller's token. Return the response, even if it is an error."""
        return self.client.request(url, method, microversion=COMPUTE_MICROVERSION, **more)


def call(
    service: ApiClient,
    method: str,
    path: Sequence[str],
    *,
    body: Mapping[str, Any] | None = None,
    query: Mapping[str, Any] | None = None,
) -> Any:
    """Send a request, and return the decoded body of the answer, or ``None`` if the body is empty.

    Values of ``query`` that are ``None`` are omitted. If the service rejects the request, raises
    :class:`CommandError` with the service's message.
    """
    answer = _send(service, method, path, body, query)
    _raise_refusal(answer)
    return answer.json() if answer.content else None


def found(service: ApiClient, path: Sequence[str]) -> Any:
    """Send a GET request, and return the decoded body, or ``None`` for a 404.

    Other errors are raised as in :func:`call`.
    """
    answer = _send(service, "GET", path)
    if answer.status_code == NOT_FOUND:
        return None
    _raise_refusal(answer)
    return answer.json()


def _send(
    service: ApiClient,
    method: str,
    path: Sequence[str],
    body: Mapping[str, Any] | None = None,
    query: Mapping[str, Any] | None = None,
) -> Any:
    address = "".join(f"/{_part(each)}" for each in path)
    given = {name: value for name, value in (query or {}).items() if value is not None}
    if given:
        address += f"?{urlencode(given)}"
    more = {} if body is None else {"json": body}
    return service.request(address, method, **more)


def _part(text: str) -> str:
    # HTTP clients resolve ``.`` and ``..`` in paths, even if they are quoted. A request to remove a
    # host would then remove its pcloud.
    if text in DOTS or not text:
        raise osc_exceptions.CommandError(f"'{text}' is not a valid name or ID.")
    return quote(text, safe="")


def _raise_refusal(answer: Any) -> None:
    try:
        exceptions.raise_from_response(answer)
    except exceptions.HttpException as refusal:
        # The SDK's message begins with a class name and an address, but users need the reason.
        request = f" (Request-ID: {refusal.request_id})" if refusal.request_id else ""
        reason = _reservation_message(answer) or refusal.details
        message = f"{reason} (HTTP {refusal.status_code}){request}"
        raise osc_exceptions.CommandError(message) from refusal


def _reservation_message(answer: Any) -> str | None:
    """Return the message of an error of the Reservation API. The SDK does not know its form.

    Returns ``None`` if the error has another form.
    """
    try:
        told = answer.json()["error_message"]
    except (ValueError, KeyError, TypeError):
        return None
    return str(told)


def rows(
    service: ApiClient, path: Sequence[str], key: str, query: Mapping[str, Any] | None = None
) -> Iterator[dict[str, Any]]:
    """Yield the rows of a list. A page is read only when its rows are needed.

    Only the query of the link to the next page is used, because the token must not be sent to
    another address.
    """
    parameters = dict(query or {})
    seen: set[str | None] = set()
    while parameters.get("marker") not in seen:
        seen.add(parameters.get("marker"))
        answer = call(service, "GET", path, query=parameters)
        yield from answer[key]
        links = {each["rel"]: each["href"] for each in answer.get(f"{key}_links", ())}
        if "next" not in links:
            return
        parameters = dict(parse_qsl(urlsplit(links["next"]).query, keep_blank_values=True))
    raise osc_exceptions.CommandError("The service repeats a page of the list without end.")


def each_of(
    names: Sequence[str], act: Callable[[str], Any], log: logging.Logger
) -> tuple[list[Any], int]:
    """Apply ``act`` to each name. Returns the answers and the number of failures.

    Each failure is logged. If there is only one name, the :class:`CommandError` is raised instead.
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
    """Apply ``act`` to each name.

    If ``act`` failed for any name, raises :class:`CommandError` at the end.
    """
    _, refused = each_of(names, act, log)
    if refused:
        raise osc_exceptions.CommandError(f"{refused} of {len(names)} failed.")


class PartialLister(command.Lister):
    """A command that lists its results. It fails if some items were ``refused``."""

    refused = 0

    def run(self, parsed_args: argparse.Namespace) -> int:
        """Show the results, even if some items were refused."""
        status: int = super().run(parsed_args)
        return status or int(self.refused > 0)
