"""Calls the Pods API at its address in the service catalog, for the commands for pods.

Always true: errors show the service's own message. The password of a pod is never shown.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from osc_lib import exceptions as osc_exceptions
from osc_lib.cli import format_columns

from innkeeper.entrypoints.cli.pclouds.about import ApiCommand, Arguments, One, values_of

REFUSED = 400
DOTS = frozenset({".", ".."})
POD: Arguments = {"pod": {"metavar": "POD", "help": "name or ID of the pod"}}
OBJECTS = ("resource_affinity_tag", "headroom", "allocation_ratios", "endpoints")
"""Fields that are objects."""


class PodsCommand(ApiCommand):
    """A command that calls the Pods API."""

    def call(
        self,
        method: str,
        *path: str,
        body: Mapping[str, Any] | None = None,
        query: Mapping[str, Any] | None = None,
    ) -> Any:
        """Send a request; returns the decoded body, or ``None`` if it is empty.

        Raises :class:`CommandError` with the service's message if it refuses.
        """
        clients = self.app.client_manager
        service = {
            "service_type": "pods",
            "interface": clients.interface,
            "region_name": clients.region_name,
        }
        address = "".join(f"/{_part(each)}" for each in path)
        given = {name: value for name, value in (query or {}).items() if value is not None}
        if given:
            address += f"?{urlencode(given)}"
        more: dict[str, Any] = {} if body is None else {"json": body}
        answer = clients.session.request(
            address, method, endpoint_filter=service, raise_exc=False, **more
        )
        if answer.status_code >= REFUSED:
            raise osc_exceptions.CommandError(_message(answer))
        return answer.json() if answer.content else None

    def rows(self, path: str, key: str, query: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """Yield the rows of a list, page by page."""
        parameters = dict(query)
        seen: set[str | None] = set()
        while parameters.get("marker") not in seen:
            seen.add(parameters.get("marker"))
            answer = self.call("GET", path, query=parameters)
            yield from answer[key]
            links = {each["rel"]: each["href"] for each in answer.get(f"{key}_links", ())}
            if "next" not in links:
                return
            # Only the query of the link is used: the token goes to no other address.
            parameters = dict(parse_qsl(urlsplit(links["next"]).query, keep_blank_values=True))
        raise osc_exceptions.CommandError("The service repeats a page of the list without end.")

    def pod_id(self, text: str) -> str:
        """Return the id of the pod with this id or name. Raises :class:`CommandError`."""
        listed = list(self.rows("pods", "pods", {}))
        for field in ("pod_id", "pod_name"):
            for each in listed:
                if each[field] == text:
                    return str(each["pod_id"])
        raise osc_exceptions.CommandError(f"No pod has the name or ID '{text}'.")

    def pod_names(self) -> dict[str, str]:
        """Return the names of all pods, by id."""
        return {each["pod_id"]: each["pod_name"] for each in self.rows("pods", "pods", {})}


def _part(text: str) -> str:
    # HTTP clients resolve dots as directories, even quoted ones.
    if text in DOTS or not text:
        raise osc_exceptions.CommandError(f"'{text}' is not a valid name or ID.")
    return quote(text, safe="")


def _message(answer: Any) -> str:
    try:
        (inner,) = answer.json().values()
        message = inner["message"]
    except (ValueError, KeyError, TypeError):
        message = answer.reason
    return f"{message} (HTTP {answer.status_code})"


def shown(told: Mapping[str, Any]) -> One:
    """Return the names and the values to show, with objects as columns."""
    return values_of(
        {
            name: format_columns.DictColumn(value) if name in OBJECTS else value
            for name, value in told.items()
        }
    )


def pairs(given: Sequence[str] | None, option: str) -> dict[str, str] | None:
    """Return the KEY=VALUE pairs of an option, or ``None`` if it was not given."""
    if given is None:
        return None
    found = {}
    for each in given:
        key, sign, value = each.partition("=")
        if not sign or not key:
            raise osc_exceptions.CommandError(f"{option} must be KEY=VALUE, not '{each}'.")
        found[key] = value
    return found


def amounts(given: Sequence[str] | None, option: str) -> dict[str, float] | None:
    """Return the KIND=AMOUNT pairs of an option, or ``None`` if it was not given."""
    found = pairs(given, option)
    try:
        return None if found is None else {key: float(value) for key, value in found.items()}
    except ValueError as error:
        raise osc_exceptions.CommandError(f"{option} needs numbers: {error}.") from error


def add_pairs(
    parser: argparse.ArgumentParser, option: str, text: str, metavar: str = "KEY=VALUE"
) -> None:
    """Declare an option that can be repeated."""
    parser.add_argument(option, action="append", metavar=metavar, help=text + " (repeatable)")
