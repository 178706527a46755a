"""Calls the Pods API for commands, at its address in the service catalog.

Always true: errors show the service's own message. The password of a pod is never shown.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from osc_lib import exceptions as osc_exceptions
from osc_lib.cli import format_columns

from innkeeper.entrypoints.cli.calling import ApiClient, CatalogClient, call, rows
from innkeeper.entrypoints.cli.commands import ApiCommand, Arguments, One, values_of

POD: Arguments = {"pod": {"metavar": "POD", "help": "name or ID of the pod"}}
OBJECTS = ("resource_affinity_tag", "headroom", "allocation_ratios", "endpoints")
"""Fields whose values are JSON objects."""


class PodsCommand(ApiCommand):
    """A command that calls the Pods API."""

    def call(
        self,
        method: str,
        *path: str,
        body: Mapping[str, Any] | None = None,
        query: Mapping[str, Any] | None = None,
    ) -> Any:
        """Send a request. Returns the decoded body of the answer, or ``None`` if the body is empty.

        If the service rejects the request, raises :class:`CommandError` with the service's message.
        """
        return call(self._service, method, path, body=body, query=query)

    @property
    def _service(self) -> ApiClient:
        return CatalogClient(self.app.client_manager, "pods")

    def rows(
        self, path: Sequence[str], key: str, query: Mapping[str, Any]
    ) -> Iterator[dict[str, Any]]:
        """Yield the rows of a list, page by page."""
        return rows(self._service, path, key, query)

    def pod_id(self, text: str) -> str:
        """Return the id of the pod with this id or name.

        Raises :class:`CommandError` if none has it.
        """
        listed = list(self.rows(("pods",), "pods", {}))
        for field in ("pod_id", "pod_name"):
            for each in listed:
                if each[field] == text:
                    return str(each["pod_id"])
        raise osc_exceptions.CommandError(f"No pod has the name or ID '{text}'.")

    def pod_names(self) -> dict[str, str]:
        """Return the names of all pods, by id."""
        return {each["pod_id"]: each["pod_name"] for each in self.rows(("pods",), "pods", {})}


def shown(told: Mapping[str, Any]) -> One:
    """Return the names and the values to show. JSON objects are formatted for a column."""
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
