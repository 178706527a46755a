"""The commands ``openstack reservation utilisation`` and ``... host unset``, for administrators."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from osc_lib import exceptions as osc_exceptions
from osc_lib.command import command

from innkeeper.entrypoints.cli.leases.calling import ReservationCommand

TOTAL = "total"


class ShowUtilisation(ReservationCommand, command.Lister):
    """Show how long hosts and slots of the freepool were reserved, used and idle, in hours."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "--start-date", metavar="TIME", help="YYYY-MM-DD HH:MM in UTC; default: 30 days earlier"
        )
        parser.add_argument(
            "--end-date", metavar="TIME", help="YYYY-MM-DD HH:MM in UTC; default: now"
        )
        parser.add_argument(
            "--group-by", choices=("project", "day", "host"), default="project", help="the rows"
        )

    def take_action(
        self, parsed_args: argparse.Namespace
    ) -> tuple[Sequence[str], list[Sequence[Any]]]:
        """Show a row for each group, and then the total."""
        group_by = parsed_args.group_by
        query = {
            "start_date": parsed_args.start_date,
            "end_date": parsed_args.end_date,
            "group_by": group_by,
        }
        found = self.call("GET", "utilisation", query=query)["utilisation"]
        names = tuple(found["total"])
        headings = tuple(each.replace("_", " ").title() for each in (group_by, *names))
        rows = [*found["rows"], {group_by: TOTAL, **found["total"]}]
        return headings, [[each[name] for name in (group_by, *names)] for each in rows]


class UnsetHost(ReservationCommand):
    """Remove capabilities of a host. python-blazarclient's own command cannot be loaded."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("host", metavar="HOST", help="name or ID of the host")
        parser.add_argument(
            "--extra",
            metavar="KEY",
            action="append",
            required=True,
            help="capability to remove (repeat the option for several)",
        )

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Look up the host, and remove its capabilities."""
        body = dict.fromkeys(parsed_args.extra)
        self.call("PUT", "os-hosts", self._id_of(parsed_args.host), body=body)

    def _id_of(self, name: str) -> str:
        if name.isdigit():
            return name
        marker = None
        while page := self.call("GET", "os-hosts", query={"marker": marker})["hosts"]:
            for each in page:
                if each["hypervisor_hostname"] == name:
                    return str(each["id"])
            marker = page[-1]["id"]
        raise osc_exceptions.CommandError(f"No host has the name or ID '{name}'.")
