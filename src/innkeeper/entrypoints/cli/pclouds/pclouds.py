"""``openstack pcloud ...``: a project's sets of whole hosts, and the projects that use them."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from osc_lib import exceptions as osc_exceptions
from osc_lib.cli import format_columns
from osc_lib.command import command

from innkeeper.entrypoints.cli.pclouds import facts
from innkeeper.entrypoints.cli.pclouds.about import AboutPcloud, AboutPcloudProject, One, Table
from innkeeper.entrypoints.cli.pclouds.calling import (
    PCLOUDS,
    all_of,
    call,
    is_whole,
    own_project_id,
    pcloud,
    pcloud_id,
    rows,
)
from innkeeper.entrypoints.cli.pclouds.projects import own_id, project_id

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
"""What lists show, and the words for it in :func:`_facts`."""


class ListPclouds(command.Lister):
    """List the pclouds that the project owns or may use."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Take which are meant, and how much is to be told."""
        parser: argparse.ArgumentParser = super().get_parser(prog_name)
        parser.add_argument("--name", help="only those of this name")
        parser.add_argument(
            "--project", metavar="PROJECT", help="only those that this project owns"
        )
        parser.add_argument(
            "--all-projects", action="store_true", help="of all (administrators only)"
        )
        parser.add_argument("--long", action="store_true", help="tell more of each")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        """Ask for all pages."""
        connection = self.app.client_manager.sdk_connection
        query = {}
        if parsed_args.name is not None:
            query["name"] = parsed_args.name
        if parsed_args.project is not None:
            query["project_id"] = project_id(
                connection, parsed_args.project, self.log, may_be_gone=True
            )
        if parsed_args.all_projects:
            query["all_projects"] = "true"
        columns = {**COLUMNS, **LONG_COLUMNS} if parsed_args.long else COLUMNS
        found = map(_facts, rows(connection.compute, (PCLOUDS,), "pclouds", query))
        # Who may use a pcloud and does not own it is told little of it.
        listed = ([each.get(word) for word in columns.values()] for each in found)
        return tuple(columns), listed


class ShowPcloud(AboutPcloud, command.ShowOne):
    """Show a pcloud: all of it to its owner, its name to projects that may use it."""

    def take_action(self, parsed_args: argparse.Namespace) -> One:
        """Ask for it; say so where another project's is all that has the name."""
        connection = self.app.client_manager.sdk_connection
        found = pcloud(connection, parsed_args.pcloud, is_for_guests=True)
        if not is_whole(found):
            self.log.warning("Pcloud %s is another project's.", found["id"])
        return _shown(found)


class CreatePcloud(command.ShowOne):
    """Create a pcloud without hosts."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Take what is said of it."""
        parser: argparse.ArgumentParser = super().get_parser(prog_name)
        parser.add_argument("name", metavar="NAME", help="what it is called")
        facts.add(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> One:
        """Make it."""
        compute = self.app.client_manager.sdk_connection.compute
        wanted = {"name": parsed_args.name, **facts.said(parsed_args, None)}
        return _shown(call(compute, "POST", (PCLOUDS,), body={"pcloud": wanted})["pcloud"])


class SetPcloud(AboutPcloud):
    """Rename a pcloud, or change its ratios, its size or whether it is used unasked."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Take what is to be different."""
        parser: argparse.ArgumentParser = super().get_parser(prog_name)
        parser.add_argument("--name", help="what it is called from now on")
        facts.add(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Change it; of a size policy, what is not said stays as it is."""
        connection = self.app.client_manager.sdk_connection
        present = pcloud(connection, parsed_args.pcloud)
        wanted = facts.said(parsed_args, present.get("size_policy"))
        if parsed_args.name is not None:
            wanted["name"] = parsed_args.name
        if not wanted:
            raise osc_exceptions.CommandError("Say what is to be different.")
        path = (PCLOUDS, present["id"])
        call(connection.compute, "PUT", path, body={"pcloud": wanted})


class DeletePclouds(command.Command):
    """Delete pclouds without hosts."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Take the pclouds."""
        parser: argparse.ArgumentParser = super().get_parser(prog_name)
        parser.add_argument("pclouds", nargs="+", metavar="PCLOUD", help="name or ID of a pcloud")
        parser.add_argument(
            "--force",
            action="store_true",
            help="also where shelved servers could come back to the pcloud alone; they cannot "
            "be unshelved then before their dedicated hosts are changed",
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Delete each, whatever becomes of the others."""
        connection = self.app.client_manager.sdk_connection

        query = {"force": "true"} if parsed_args.force else None

        def delete(text: str) -> None:
            path = (PCLOUDS, pcloud_id(connection, text))
            call(connection.compute, "DELETE", path, query=query)

        all_of(parsed_args.pclouds, delete, self.log)


# -- who may use it ----------------------------------------------------------------------------


class ListPcloudProjects(AboutPcloud, command.Lister):
    """List the projects whose servers may come to a pcloud."""

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        """Ask for them."""
        connection = self.app.client_manager.sdk_connection
        path = (PCLOUDS, pcloud_id(connection, parsed_args.pcloud), "tenants")
        listed = call(connection.compute, "GET", path)["tenants"]
        return ("Project ID",), ((each,) for each in listed)


class AddPcloudProject(AboutPcloudProject):
    """Let a project's servers come to a pcloud."""

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Let it in."""
        connection = self.app.client_manager.sdk_connection
        project = project_id(connection, parsed_args.project, self.log)
        pcloud_ = pcloud_id(connection, parsed_args.pcloud)
        call(connection.compute, "PUT", (PCLOUDS, pcloud_, "tenants", project))


class RemovePcloudProject(AboutPcloudProject):
    """Let no new server of a project come to a pcloud; those that are there stay."""

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Let it in no more. A guest that names its own project leaves.

        What the pcloud lists is removed as it is listed: the project may be gone, or have had
        its name written where its id belongs.
        """
        connection = self.app.client_manager.sdk_connection
        own = own_id(connection, parsed_args.project)
        found = pcloud(connection, parsed_args.pcloud, is_for_guests=own is not None)
        project = self._meant(connection, parsed_args.project, own, found)
        call(connection.compute, "DELETE", (PCLOUDS, found["id"], "tenants", project))

    def _meant(self, connection: Any, text: str, own: str | None, found: Mapping[str, Any]) -> str:
        if text in found.get("tenants", ()):
            return text
        return own or project_id(connection, text, self.log, may_be_gone=True)


class _Consent(AboutPcloud):
    """What a project says for itself of a pcloud that it may use."""

    method: str

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Say it for the project that the login is for."""
        connection = self.app.client_manager.sdk_connection
        pcloud_ = pcloud_id(connection, parsed_args.pcloud, is_for_guests=True)
        mine = own_project_id(connection)
        path = (PCLOUDS, pcloud_, "tenants", mine, "auto_placement")
        call(connection.compute, self.method, path)


class AcceptPcloud(_Consent):
    """Let the project's servers that name no pcloud come to one that takes such."""

    method = "PUT"


class DeclinePcloud(_Consent):
    """Let none of the project's new servers come to a pcloud that they do not name."""

    method = "DELETE"


def _facts(answer: Mapping[str, Any]) -> dict[str, Any]:
    """What the API says of a pcloud, with our words and in forms for people and programs."""
    words = {"tenants": "projects"}
    told = {words.get(key, key): value for key, value in answer.items()}
    if "projects" in told:
        told["projects"] = format_columns.ListColumn(told["projects"])
    if told.get("size_policy") is not None:
        told["size_policy"] = format_columns.DictColumn(told["size_policy"])
    return told


def _shown(answer: Mapping[str, Any]) -> One:
    told = _facts(answer)
    return tuple(told), tuple(told.values())
