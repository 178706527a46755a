"""The commands ``openstack pcloud action|usage|quota ...``, for history, usage and quotas."""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from osc_lib import exceptions as osc_exceptions
from osc_lib.command import command

from innkeeper.domain.ids import canonical_uuid
from innkeeper.entrypoints.cli.calling import call, rows
from innkeeper.entrypoints.cli.commands import LONG, Arguments, One, Table, values_of
from innkeeper.entrypoints.cli.pclouds.about import PCLOUD, PROJECT, PcloudsCommand
from innkeeper.entrypoints.cli.pclouds.calling import PCLOUDS, own_project_id, pcloud_id

QUOTAS, USAGE = "os-pcloud-quotas", "os-pcloud-usage"
BEGINNING = "1970-01-01"
"""The default of ``--start``. The service's own default is the last month."""
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
"""The columns of lists, and their names in the API."""
SHOWN_DIGITS = 2
"""Decimals of hours in tables."""


class ListPcloudActions(PcloudsCommand, command.Lister):
    """List the actions on a pcloud, newest first. A deleted pcloud must be named by its ID."""

    arguments: ClassVar[Arguments] = {
        **PCLOUD,
        "--limit": {"type": int, "metavar": "N", "help": "only this many of the newest actions"},
        **LONG,
    }

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        """Read as many pages as are needed."""
        limit = parsed_args.limit
        if limit is not None and limit < 1:
            raise osc_exceptions.CommandError("--limit must be at least 1.")
        columns = {**ACTION_COLUMNS, **(LONG_ACTION_COLUMNS if parsed_args.long else {})}
        path = (PCLOUDS, _present_or_past_id(self.connection, parsed_args.pcloud), "actions")
        query = {} if limit is None else {"limit": str(limit)}
        actions = itertools.islice(rows(self.compute, path, "actions", query), limit)
        return tuple(columns), ([each[name] for name in columns.values()] for each in actions)


def _present_or_past_id(connection: Any, text: str) -> str:
    try:
        return pcloud_id(connection, text)
    except osc_exceptions.CommandError:
        deleted = canonical_uuid(text)
        if deleted is None:
            raise
        return deleted


class ShowPcloudUsage(PcloudsCommand, command.Lister):
    """Show the hours for which projects had whole hosts in a period."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "--start",
            metavar="TIME",
            default=BEGINNING,
            help="start in UTC, such as 2030-01-31 or 2030-01-31T12:30:00; default: all",
        )
        parser.add_argument("--end", metavar="TIME", help="end in UTC; default: now")
        whose = parser.add_mutually_exclusive_group()
        whose.add_argument("--project", metavar="PROJECT", help="name or ID of a project")
        whose.add_argument(
            "--all-projects", action="store_true", help="all projects (administrators only)"
        )
        parser.add_argument("--long", action="store_true", help="show each host separately")

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        """Read all pages, and add up the rows of each project."""
        query = {"start": parsed_args.start}
        if parsed_args.end is not None:
            query["end"] = parsed_args.end
        if parsed_args.project is not None:
            query["project_id"] = self.project_id(parsed_args.project, may_be_gone=True)
        if parsed_args.all_projects:
            query["all_projects"] = "true"
        usages = rows(self.compute, (USAGE,), "pcloud_usages", query)
        if parsed_args.long:
            return ("Project ID", *RUN_COLUMNS), _runs(usages)
        return ("Project ID", "Hosts", "Host Hours", "Unit Hours"), _sums(usages)


def _runs(usages: Iterator[Mapping[str, Any]]) -> Iterator[Sequence[Any]]:
    for usage in usages:
        for run in usage["hosts"]:
            shown = {**run, "hours": round(run["hours"], SHOWN_DIGITS)}
            yield usage["project_id"], *(shown[name] for name in RUN_COLUMNS.values())


def _sums(usages: Iterator[Mapping[str, Any]]) -> Iterator[Sequence[Any]]:
    # A project may be on several pages.
    sums: dict[str, list[float]] = {}
    for usage in usages:
        total = sums.setdefault(usage["project_id"], [0, 0.0, 0.0])
        total[0] += len(usage["hosts"])
        total[1] += usage["host_hours"]
        total[2] += usage["unit_hours"]
    for project, (hosts, host_hours, unit_hours) in sums.items():
        yield project, hosts, round(host_hours, SHOWN_DIGITS), round(unit_hours, SHOWN_DIGITS)


class ShowPcloudQuota(PcloudsCommand, command.ShowOne):
    """Show a project's quota and usage of whole hosts, in units."""

    arguments: ClassVar[Arguments] = {
        "project": {
            "nargs": "?",
            "metavar": "PROJECT",
            "help": "name or ID of the project; default: your own",
        }
    }

    def take_action(self, parsed_args: argparse.Namespace) -> One:
        if parsed_args.project is None:
            project = own_project_id(self.connection)
        else:
            project = self.project_id(parsed_args.project, may_be_gone=True)
        return values_of(call(self.compute, "GET", (QUOTAS, project))["pcloud_quota"])


class SetPcloudQuota(PcloudsCommand):
    """Set a project's quota of whole hosts, in units (administrators only)."""

    arguments: ClassVar[Arguments] = {
        **PROJECT,
        "--units": {"type": int, "required": True, "help": "the limit; -1 for no limit"},
    }

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        body = {"pcloud_quota": {"units": parsed_args.units}}
        call(self.compute, "PUT", (QUOTAS, self.project_id(parsed_args.project)), body=body)


class ResetPcloudQuota(PcloudsCommand):
    """Reset a project's quota of whole hosts to the default (administrators only)."""

    arguments = PROJECT

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        project = self.project_id(parsed_args.project, may_be_gone=True)
        call(self.compute, "DELETE", (QUOTAS, project))
