"""The commands ``openstack pcloud ...``, for a project's pclouds and the projects that use them.

A pcloud is a set of whole hosts.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any, ClassVar

from osc_lib import exceptions as osc_exceptions
from osc_lib.cli import format_columns
from osc_lib.command import command

from innkeeper.entrypoints.cli.calling import all_of, call, rows
from innkeeper.entrypoints.cli.commands import LONG, Arguments, One, Table, values_of
from innkeeper.entrypoints.cli.pclouds import facts
from innkeeper.entrypoints.cli.pclouds.about import PCLOUD, PROJECT, PcloudsCommand
from innkeeper.entrypoints.cli.pclouds.calling import (
    PCLOUDS,
    is_whole,
    own_project_id,
    pcloud,
    pcloud_id,
)
from innkeeper.entrypoints.cli.pclouds.projects import own_id

COLUMNS = {
    "ID": "id",
    "Name": "name",
    "Owner": "owner",
    "Hosts": "host_count",
    "Auto Placement": "auto_placement",
}
LONG_COLUMNS = {
    "CPU Ratio": "cpu_allocation_ratio",
    "RAM Ratio": "ram_allocation_ratio",
    "Projects": "projects",
    "Auto Placement Accepted": "auto_placement_accepted",
    "Size Policy": "size_policy",
    "Created At": "created_at",
}
"""The columns of lists, and their names in :func:`_fields`."""


class ListPclouds(PcloudsCommand, command.Lister):
    """List the pclouds that your project owns or may use."""

    arguments: ClassVar[Arguments] = {
        "--name": {"help": "list only pclouds with this name"},
        "--project": {"metavar": "PROJECT", "help": "list only pclouds that this project owns"},
        "--all-projects": {
            "action": "store_true",
            "help": "list the pclouds of all projects (administrators only)",
        },
        **LONG,
    }

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        query = {}
        if parsed_args.name is not None:
            query["name"] = parsed_args.name
        if parsed_args.project is not None:
            query["project_id"] = self.project_id(parsed_args.project, may_be_gone=True)
        if parsed_args.all_projects:
            query["all_projects"] = "true"
        columns = {**COLUMNS, **LONG_COLUMNS} if parsed_args.long else COLUMNS
        found = map(_fields, rows(self.compute, (PCLOUDS,), "pclouds", query))
        # A project that may use a pcloud, but does not own it, sees few fields.
        listed = ([each.get(name) for name in columns.values()] for each in found)
        return tuple(columns), listed


class ShowPcloud(PcloudsCommand, command.ShowOne):
    """Show a pcloud. Projects that may use it, but do not own it, see few fields."""

    arguments = PCLOUD

    def take_action(self, parsed_args: argparse.Namespace) -> One:
        """Show the pcloud, with a warning if another project owns it."""
        found = pcloud(self.connection, parsed_args.pcloud, is_for_guests=True)
        if not is_whole(found):
            self.log.warning("Pcloud %s belongs to another project.", found["id"])
        return values_of(_fields(found))


class CreatePcloud(PcloudsCommand, command.ShowOne):
    """Create a pcloud without hosts."""

    arguments: ClassVar[Arguments] = {"name": {"metavar": "NAME", "help": "name of the new pcloud"}}

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        facts.add(parser)

    def take_action(self, parsed_args: argparse.Namespace) -> One:
        body = {"pcloud": {"name": parsed_args.name, **facts.given(parsed_args, None)}}
        return values_of(_fields(call(self.compute, "POST", (PCLOUDS,), body=body)["pcloud"]))


class SetPcloud(PcloudsCommand):
    """Change a pcloud's name, ratios, size policy or automatic placement."""

    arguments: ClassVar[Arguments] = {**PCLOUD, "--name": {"help": "its new name"}}

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        facts.add(parser)

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Change the pcloud.

        If a field of the size policy is not among the options, the field keeps its value.
        """
        present = pcloud(self.connection, parsed_args.pcloud)
        changes = facts.given(parsed_args, present.get("size_policy"))
        if parsed_args.name is not None:
            changes["name"] = parsed_args.name
        if not changes:
            raise osc_exceptions.CommandError("Give at least one option to change.")
        call(self.compute, "PUT", (PCLOUDS, present["id"]), body={"pcloud": changes})


class DeletePclouds(PcloudsCommand):
    """Delete pclouds without hosts."""

    arguments: ClassVar[Arguments] = {
        "pclouds": {"nargs": "+", "metavar": "PCLOUD", "help": "name or ID of a pcloud"},
        "--force": {
            "action": "store_true",
            "help": "delete the pcloud even if shelved servers can be unshelved only on it; to "
            "unshelve these servers, first choose other dedicated hosts for them",
        },
    }

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        query = {"force": "true"} if parsed_args.force else None

        def delete(name: str) -> None:
            call(self.compute, "DELETE", self.pcloud_path(name), query=query)

        all_of(parsed_args.pclouds, delete, self.log)


class ListPcloudProjects(PcloudsCommand, command.Lister):
    """List the projects whose servers may be placed on a pcloud."""

    arguments = PCLOUD

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        path = self.pcloud_path(parsed_args.pcloud, "tenants")
        listed = call(self.compute, "GET", path)["tenants"]
        return ("Project ID",), ((each,) for each in listed)


class AddPcloudProject(PcloudsCommand):
    """Let a project's servers be placed on a pcloud."""

    arguments: ClassVar[Arguments] = {**PCLOUD, **PROJECT}

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        project = self.project_id(parsed_args.project)
        path = self.pcloud_path(parsed_args.pcloud, "tenants", project)
        call(self.compute, "PUT", path)


class RemovePcloudProject(PcloudsCommand):
    """Stop placing a project's new servers on a pcloud. Its existing servers stay."""

    arguments: ClassVar[Arguments] = {**PCLOUD, **PROJECT}

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Remove the project. A project that does not own the pcloud can remove itself.

        If the pcloud's list of projects contains the given text, this entry is removed without a
        look-up. The project may no longer exist, or the list may contain a name instead of an id.
        """
        name = parsed_args.project
        own = own_id(self.connection, name)
        found = pcloud(self.connection, parsed_args.pcloud, is_for_guests=own is not None)
        if name in found.get("tenants", ()):
            project = name
        else:
            project = own or self.project_id(name, may_be_gone=True)
        call(self.compute, "DELETE", (PCLOUDS, found["id"], "tenants", project))


class _Consent(PcloudsCommand):
    """The base of the commands that accept or decline automatic placement for a project."""

    arguments = PCLOUD
    method: ClassVar[str]

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        pcloud_ = pcloud_id(self.connection, parsed_args.pcloud, is_for_guests=True)
        own = own_project_id(self.connection)
        call(self.compute, self.method, (PCLOUDS, pcloud_, "tenants", own, "auto_placement"))


class AcceptPcloud(_Consent):
    """Accept automatic placement on a pcloud, for servers that name no pcloud."""

    method = "PUT"


class DeclinePcloud(_Consent):
    """Decline automatic placement on a pcloud.

    New servers that name the pcloud can still use it.
    """

    method = "DELETE"


def _fields(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Return a pcloud's fields as formatted columns, with ``tenants`` renamed to ``projects``."""
    words = {"tenants": "projects"}
    fields = {words.get(key, key): value for key, value in answer.items()}
    if "projects" in fields:
        fields["projects"] = format_columns.ListColumn(fields["projects"])
    if fields.get("size_policy") is not None:
        fields["size_policy"] = format_columns.DictColumn(fields["size_policy"])
    return fields
