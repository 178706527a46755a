"""``openstack pcloud host ...``: a pcloud's whole hosts, by the names that its owner gave."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

from osc_lib import exceptions as osc_exceptions
from osc_lib.cli import format_columns
from osc_lib.command import command

from innkeeper.entrypoints.cli.pclouds.about import AboutPcloud, AboutPcloudHost, One, Table
from innkeeper.entrypoints.cli.pclouds.calling import (
    PCLOUDS,
    PartialLister,
    all_of,
    call,
    pcloud_id,
    rows,
)

COLUMNS = {
    "Name": "name",
    "Host Flavor": "host_flavor",
    "Availability Zone": "availability_zone",
    "State": "state",
    "Health": "health",
    "Over Capacity": "over_capacity",
    "Servers": "servers",
}
LONG_COLUMNS = {
    "Free": "free",
    "Units": "units",
    "Maintenance": "maintenance",
    "Allocated At": "allocated_at",
}
"""What lists show, and the API's words for it."""


class ListPcloudHosts(AboutPcloud, command.Lister):
    """List the hosts of a pcloud, and the servers on them."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Take the pcloud, and how much is to be told."""
        parser: argparse.ArgumentParser = super().get_parser(prog_name)
        parser.add_argument("--long", action="store_true", help="tell more of each")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        """Ask for all pages."""
        connection = self.app.client_manager.sdk_connection
        columns = {**COLUMNS, **LONG_COLUMNS} if parsed_args.long else COLUMNS
        path = (PCLOUDS, pcloud_id(connection, parsed_args.pcloud), "hosts")
        return tuple(columns), (
            _row(each, columns) for each in rows(connection.compute, path, "hosts")
        )


class ShowPcloudHost(AboutPcloudHost, command.ShowOne):
    """Show a host of a pcloud, and whose servers are on it."""

    def take_action(self, parsed_args: argparse.Namespace) -> One:
        """Ask for it."""
        connection = self.app.client_manager.sdk_connection
        path = (PCLOUDS, pcloud_id(connection, parsed_args.pcloud), "hosts", parsed_args.host)
        return _shown(call(connection.compute, "GET", path)["host"])


class AddPcloudHosts(AboutPcloud, PartialLister):
    """Take free hosts of a host flavor into a pcloud, one for each name."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Take the names, and what the hosts are to be."""
        parser: argparse.ArgumentParser = super().get_parser(prog_name)
        parser.add_argument("hosts", nargs="+", metavar="NAME", help="what a host is to be called")
        parser.add_argument(
            "--host-flavor", required=True, metavar="FLAVOR", help="ID of their host flavor"
        )
        parser.add_argument(
            "--availability-zone", metavar="ZONE", help="where they must be; else anywhere"
        )
        parser.add_argument(
            "--enable", action="store_true", help="let servers come to them at once"
        )
        parser.add_argument(
            "--client-token",
            metavar="TOKEN",
            help="a name for this request, so that repeating it within a day takes no more",
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        """Take as many as can be had, and list them; tell of each that cannot."""
        connection = self.app.client_manager.sdk_connection
        path = (PCLOUDS, pcloud_id(connection, parsed_args.pcloud), "hosts")
        wanted = [_wanted(parsed_args, name) for name in parsed_args.hosts]
        body: dict[str, Any] = {"hosts": wanted} if len(wanted) > 1 else {"host": wanted[0]}
        if parsed_args.client_token is not None:
            body["client_token"] = parsed_args.client_token
        answer = call(connection.compute, "POST", path, body=body)
        failures = answer.get("failures", ())
        for each in failures:
            self.log.error("%s: %s", each["name"], each["message"])
        self.refused = len(failures)
        taken = answer["hosts"] if "hosts" in answer else [answer["host"]]
        return tuple(COLUMNS), (_row(each, COLUMNS) for each in taken)


class SetPcloudHost(AboutPcloudHost):
    """Enable, disable or rename a host of a pcloud; servers on it stay."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Take what is to be different."""
        parser: argparse.ArgumentParser = super().get_parser(prog_name)
        state = parser.add_mutually_exclusive_group()
        state.add_argument(
            "--enable",
            dest="state",
            action="store_const",
            const="enabled",
            help="let servers come to it",
        )
        state.add_argument(
            "--disable",
            dest="state",
            action="store_const",
            const="disabled",
            help="let no new servers come to it",
        )
        parser.add_argument("--name", help="what it is called from now on")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Change it."""
        asked = {"name": parsed_args.name, "state": parsed_args.state}
        wanted = {word: value for word, value in asked.items() if value is not None}
        if not wanted:
            raise osc_exceptions.CommandError("Say --enable, --disable or --name.")
        connection = self.app.client_manager.sdk_connection
        path = (PCLOUDS, pcloud_id(connection, parsed_args.pcloud), "hosts", parsed_args.host)
        call(connection.compute, "PUT", path, body={"host": wanted})


class RemovePcloudHosts(AboutPcloud):
    """Give disabled, empty hosts of a pcloud back to their pools."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Take the pcloud and the hosts."""
        parser: argparse.ArgumentParser = super().get_parser(prog_name)
        parser.add_argument("hosts", nargs="+", metavar="HOST", help="name of a host")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Give each back, whatever becomes of the others."""
        connection = self.app.client_manager.sdk_connection
        path = (PCLOUDS, pcloud_id(connection, parsed_args.pcloud), "hosts")
        all_of(
            parsed_args.hosts,
            lambda name: call(connection.compute, "DELETE", (*path, name)),
            self.log,
        )


class ReplacePcloudHost(AboutPcloudHost, command.ShowOne):
    """Have another free host take the name and place of one that is broken or disabled."""

    def take_action(self, parsed_args: argparse.Namespace) -> One:
        """Replace it; show the other one."""
        connection = self.app.client_manager.sdk_connection
        pcloud = pcloud_id(connection, parsed_args.pcloud)
        path = (PCLOUDS, pcloud, "hosts", parsed_args.host, "action")
        return _shown(call(connection.compute, "POST", path, body={"replace": {}})["host"])


def _wanted(parsed_args: argparse.Namespace, name: str) -> dict[str, Any]:
    wanted = {"name": name, "host_flavor": parsed_args.host_flavor}
    if parsed_args.availability_zone is not None:
        wanted["availability_zone"] = parsed_args.availability_zone
    if parsed_args.enable:
        wanted["state"] = "enabled"
    return wanted


def _row(host: Mapping[str, Any], columns: Mapping[str, str]) -> Sequence[Any]:
    servers = format_columns.ListColumn([each["id"] for each in host["servers"]])
    free = {name: max(0, of["capacity"] - of["used"]) for name, of in host["resources"].items()}
    told = {**host, "servers": servers, "free": format_columns.DictColumn(free)}
    return [told[word] for word in columns.values()]


def _shown(host: Mapping[str, Any]) -> One:
    told = {
        **host,
        "resources": format_columns.DictColumn(host["resources"]),
        "servers": format_columns.ListDictColumn(host["servers"]),
    }
    return tuple(told), tuple(told.values())
