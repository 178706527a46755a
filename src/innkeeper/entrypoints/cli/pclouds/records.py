"""``openstack pcloud action|usage|quota ...``: what was done, what it costs, and its bounds."""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from osc_lib import exceptions as osc_exceptions
from osc_lib.command import command

from innkeeper.domain.ids import canonical_uuid
from innkeeper.entrypoints.cli.pclouds.about import AboutPcloud, One, Table, add_project
from innkeeper.entrypoints.cli.pclouds.calling import PCLOUDS, call, own_project_id, pcloud_id, rows
from innkeeper.entrypoints.cli.pclouds.projects import project_id

QUOTAS, USAGE = "os-pcloud-quotas", "os-pcloud-usage"
BEGINNING = "1970-01-01"
"""People ask for all there was; the service alone would tell of the last month."""
ACTION_COLUMNS = {
    "Created At": "created_at",
    "Action": "action",
    "Host": "host",
    "Detail": "detail",
}
LONG_ACTION_COLUMNS = {"Project ID": "project_id", "User ID": "user_id", "Request ID": "request_id"}
RUN_COLUMNS = {
    "Pcloud": "pcloud_id",
    "Host": "name",
    "Host Flavor": "host_flavor",
    "Units": "units",
    "Started At": "started_at",
    "Ended At": "ended_at",
    "Hours": "hours",
}
"""What lists show, and the API's words for it."""
SHOWN_DIGITS = 2
"""Of hours, in tables for people; a hundredth is half a minute."""


class ListPcloudActions(AboutPcloud, command.Lister):
    """List what was done to a pcloud, the newest first; one that is gone goes by its ID."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Take the pcloud, and how much is to be told."""
        parser: argparse.ArgumentParser = super().get_parser(prog_name)
        parser.add_argument("--limit", type=int, metavar="N", help="only so many, the newest ones")
        parser.add_argument("--long", action="store_true", help="tell who did it as well")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        """Ask for as many pages as are wanted."""
        if parsed_args.limit is not None and parsed_args.limit < 1:
            raise osc_exceptions.CommandError("--limit is a number of actions.")
        connection = self.app.client_manager.sdk_connection
        columns = dict(ACTION_COLUMNS)
        if parsed_args.long:
            columns |= LONG_ACTION_COLUMNS
        path = (PCLOUDS, _id_ever(connection, parsed_args.pcloud), "actions")
        query = {} if parsed_args.limit is None else {"limit": str(parsed_args.limit)}
        done = itertools.islice(rows(connection.compute, path, "actions", query), parsed_args.limit)
        return tuple(columns), ([each[word] for word in columns.values()] for each in done)


def _id_ever(connection: Any, text: str) -> str:
    """The id of the pcloud that somebody named, which may be gone."""
    try:
        return pcloud_id(connection, text)
    except osc_exceptions.CommandError:
        gone = canonical_uuid(text)
        if gone is None:
            raise
        return gone


class ShowPcloudUsage(command.Lister):
    """Tell how many hours of whole hosts a project had within a period, used or not."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Take the period, and whose hosts are meant."""
        parser: argparse.ArgumentParser = super().get_parser(prog_name)
        parser.add_argument(
            "--start",
            metavar="TIME",
            default=BEGINNING,
            help="from when on, in UTC, such as 2030-01-31 or 2030-01-31T12:30:00; else all",
        )
        parser.add_argument("--end", metavar="TIME", help="until when, in UTC; else until now")
        whose = parser.add_mutually_exclusive_group()
        whose.add_argument("--project", metavar="PROJECT", help="name or ID of a project")
        whose.add_argument(
            "--all-projects", action="store_true", help="of all (administrators only)"
        )
        parser.add_argument("--long", action="store_true", help="tell of each host by itself")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        """Ask for all pages, and add up what they say of the same project."""
        connection = self.app.client_manager.sdk_connection
        query = {"start": parsed_args.start}
        if parsed_args.end is not None:
            query["end"] = parsed_args.end
        if parsed_args.project is not None:
            query["project_id"] = project_id(
                connection, parsed_args.project, self.log, may_be_gone=True
            )
        if parsed_args.all_projects:
            query["all_projects"] = "true"
        told = rows(connection.compute, (USAGE,), "pcloud_usages", query)
        if parsed_args.long:
            return ("Project ID", *RUN_COLUMNS), _runs(told)
        return ("Project ID", "Hosts", "Host Hours", "Unit Hours"), _sums(told)


def _runs(told: Iterator[Mapping[str, Any]]) -> Iterator[Sequence[Any]]:
    for usage in told:
        for run in usage["hosts"]:
            shown = {**run, "hours": round(run["hours"], SHOWN_DIGITS)}
            yield usage["project_id"], *(shown[word] for word in RUN_COLUMNS.values())


def _sums(told: Iterator[Mapping[str, Any]]) -> Iterator[Sequence[Any]]:
    # A project whose hosts are on several pages is on each of them.
    sums: dict[str, list[float]] = {}
    for usage in told:
        mine = sums.setdefault(usage["project_id"], [0, 0.0, 0.0])
        mine[0] += len(usage["hosts"])
        mine[1] += usage["host_hours"]
        mine[2] += usage["unit_hours"]
    for project, (hosts, host_hours, unit_hours) in sums.items():
        yield project, hosts, round(host_hours, SHOWN_DIGITS), round(unit_hours, SHOWN_DIGITS)


# -- quotas ------------------------------------------------------------------------------------


class ShowPcloudQuota(command.ShowOne):
    """Show how many units of whole hosts a project may hold, and holds."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Take the project."""
        parser: argparse.ArgumentParser = super().get_parser(prog_name)
        parser.add_argument(
            "project",
            nargs="?",
            metavar="PROJECT",
            help="name or ID of the project; else one's own",
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> One:
        """Ask for it."""
        connection = self.app.client_manager.sdk_connection
        if parsed_args.project is None:
            project = own_project_id(connection)
        else:
            project = project_id(connection, parsed_args.project, self.log, may_be_gone=True)
        shown = call(connection.compute, "GET", (QUOTAS, project))["pcloud_quota"]
        return tuple(shown), tuple(shown.values())


class SetPcloudQuota(command.Command):
    """Set how many units of whole hosts a project may hold (administrators only)."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Take the project and the limit."""
        parser: argparse.ArgumentParser = super().get_parser(prog_name)
        add_project(parser)
        parser.add_argument(
            "--units", type=int, required=True, help="the limit; -1 is without limit"
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Set it; what the project holds already stays."""
        connection = self.app.client_manager.sdk_connection
        project = project_id(connection, parsed_args.project, self.log)
        body = {"pcloud_quota": {"units": parsed_args.units}}
        call(connection.compute, "PUT", (QUOTAS, project), body=body)


class ResetPcloudQuota(command.Command):
    """Go back to the default limit for a project (administrators only)."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Take the project."""
        parser: argparse.ArgumentParser = super().get_parser(prog_name)
        add_project(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Forget its own."""
        connection = self.app.client_manager.sdk_connection
        project = project_id(connection, parsed_args.project, self.log, may_be_gone=True)
        call(connection.compute, "DELETE", (QUOTAS, project))
