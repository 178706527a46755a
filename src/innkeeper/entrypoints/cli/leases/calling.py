"""Calls the Reservation API, and declares the options that describe a reservation."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from osc_lib import exceptions as osc_exceptions

from innkeeper.domain.leases import RESOURCE_TYPES
from innkeeper.entrypoints.cli.calling import CatalogClient, call
from innkeeper.entrypoints.cli.commands import ApiCommand

FORMAT = "%Y-%m-%d %H:%M"
OPTIONS = {
    "amount": ("N", "number of hosts or slots (default: 1)"),
    "hypervisor_properties": ("TEXT", "requirement on hosts, for physical:host"),
    "resource_properties": ("TEXT", "requirement on hosts"),
    "vcpus": ("N", "processors of a slot, for the type of slots"),
    "memory_mb": ("MB", "memory of a slot, for the type of slots"),
    "disk_gb": ("GB", "disk of a slot, for the type of slots"),
    "affinity": ("WORD", "True: all slots on one host; False: on different hosts"),
    "flavor_id": ("ID", "flavor of a slot, for the type of flavors"),
}
"""The options that describe a reservation, by their names in the API."""
RESOURCE_TYPE = "resource_type"
QUERY_OWN = frozenset({"start_date", "end_date", "duration_minutes", "lease_id"})
"""Parameters of the query that do not belong to a reservation."""
# A value may contain commas, for example in JSON. Therefore, a comma separates two pairs only if a
# name and a "=" follow it.
_NEXT_PAIR = re.compile(r",(?=[^\s,=\"'\[\]{}]+=)")


class ReservationCommand(ApiCommand):
    """A command that calls the Reservation API."""

    def call(
        self,
        method: str,
        *path: str,
        query: Mapping[str, Any] | None = None,
        body: Mapping[str, Any] | None = None,
    ) -> Any:
        """Send a request, and return the answer.

        Raises :class:`CommandError` if the service rejects it.
        """
        # The type of service that python-blazarclient uses.
        service = CatalogClient(self.app.client_manager, "reservation")
        return call(service, method, path, body=body, query=query)


def add_demand(parser: argparse.ArgumentParser) -> None:
    """Declare the options that describe a reservation."""
    parser.add_argument(
        "--resource-type",
        metavar="TYPE",
        help=f"{', '.join(RESOURCE_TYPES)}, or another type of the service (default: the first)",
    )
    for name, (metavar, text) in OPTIONS.items():
        parser.add_argument(f"--{name.replace('_', '-')}", metavar=metavar, help=text)
    parser.add_argument(
        "--reservation",
        metavar="KEY=VALUE[,KEY=VALUE...]",
        type=pairs,
        default={},
        help="all parameters of a reservation, as 'reservation lease create' takes them; "
        "parameters of other resource types have no options",
    )


def pairs(text: str) -> dict[str, str]:
    """Parse the parameters of a reservation, as ``reservation lease create`` takes them."""
    found: dict[str, str] = {}
    for each in _NEXT_PAIR.split(text):
        name, sign, value = each.partition("=")
        if not sign or not name:
            raise argparse.ArgumentTypeError(f"must be KEY=VALUE, not {each!r}")
        if name in QUERY_OWN:
            raise argparse.ArgumentTypeError(f"{name} is not a parameter of a reservation")
        if name in found:
            raise argparse.ArgumentTypeError(f"{name} is given twice")
        found[name] = value
    return found


def demand(parsed_args: argparse.Namespace) -> dict[str, Any]:
    """Return the query that describes the reservation in the options.

    Raises :class:`CommandError` if ``--reservation`` has a parameter that is also given as an
    option.
    """
    named = {name: getattr(parsed_args, name) for name in (RESOURCE_TYPE, *OPTIONS)}
    options = {name: each for name, each in named.items() if each is not None}
    for name in parsed_args.reservation:
        if name in options:
            option = f"--{name.replace('_', '-')}"
            raise osc_exceptions.CommandError(f"--reservation has {name}, so omit {option}.")
    return {RESOURCE_TYPE: RESOURCE_TYPES[0], **options, **parsed_args.reservation}


def intervals(
    asking: ReservationCommand, query: Mapping[str, Any]
) -> Iterator[tuple[datetime, datetime, int]]:
    """Yield the start, the end and the number of free hosts or slots of each interval.

    Reads all pages of the answer.
    """
    found = _availability(asking, query)
    yield from _intervals(found)
    start = query.get("start_date")
    while found.get("next_start_date") is not None:
        later = moment(found["next_start_date"]).strftime(FORMAT)
        if later == start:
            raise osc_exceptions.CommandError("The service repeats a page without end.")
        start = later
        found = _availability(asking, {**query, "start_date": start})
        yield from _intervals(found)


def present(asking: ReservationCommand, query: Mapping[str, Any]) -> datetime:
    """Return the service's current time.

    Without a start date, the first interval begins at this time.
    """
    return next(_intervals(_availability(asking, query)))[0]


def _availability(asking: ReservationCommand, query: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Mapping[str, Any] = asking.call("GET", "availability", query=dict(query))["availability"]
    return found


def _intervals(found: Mapping[str, Any]) -> Iterator[tuple[datetime, datetime, int]]:
    for each in found["intervals"]:
        yield moment(each["start_date"]), moment(each["end_date"]), each["free"]


def moment(text: str) -> datetime:
    """Parse a date of the API, which is in UTC."""
    return datetime.fromisoformat(text)
