"""The commands ``openstack pcloud host ...``, for the hosts of a pcloud.

The owner of the pcloud has named the hosts.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from osc_lib import exceptions as osc_exceptions
from osc_lib.cli import format_columns
from osc_lib.command import command

from innkeeper.entrypoints.cli.calling import PartialLister, all_of, call, rows
from innkeeper.entrypoints.cli.commands import LONG, Arguments, One, Table, values_of
from innkeeper.entrypoints.cli.pclouds.about import HOSTS, PCLOUD, PcloudsCommand

PCLOUD_HOST: Arguments = {
    **PCLOUD,
    "host": {"metavar": "HOST", "help": "name of the host in the pcloud"},
}
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
"""The columns of lists, and their names in the API."""


class ListPcloudHosts(PcloudsCommand, command.Lister):
    """List the hosts of a pcloud, and the servers on them."""

    arguments: ClassVar[Arguments] = {**PCLOUD, **LONG}

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        columns = {**COLUMNS, **LONG_COLUMNS} if parsed_args.long else COLUMNS
        listed = rows(self.compute, self.pcloud_path(parsed_args.pcloud, "hosts"), "hosts")
        return tuple(columns), (_row(each, columns) for each in listed)


class ShowPcloudHost(PcloudsCommand, command.ShowOne):
    """Show a host of a pcloud, and the owners of the servers on it."""

    arguments = PCLOUD_HOST

    def take_action(self, parsed_args: argparse.Namespace) -> One:
        path = self.pcloud_path(parsed_args.pcloud, "hosts", parsed_args.host)
        return _shown(call(self.compute, "GET", path))


class AddPcloudHosts(PcloudsCommand, PartialLister):
    """Allocate free hosts of a host flavor to a pcloud, one for each name."""

    arguments: ClassVar[Arguments] = {
        **PCLOUD,
        "hosts": {"nargs": "+", "metavar": "NAME", "help": "name of a host in the pcloud"},
        "--host-flavor": {"required": True, "metavar": "FLAVOR", "help": "ID of the host flavor"},
        "--availability-zone": {"metavar": "ZONE", "help": "their zone; default: any"},
        "--enable": {"action": "store_true", "help": "let servers be placed on them at once"},
        "--client-token": {
            "metavar": "TOKEN",
            "help": "a name for this request; within a day, a repeated request with this name "
            "allocates no more hosts",
        },
    }

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        """Allocate as many hosts as possible, list them, and log each failure."""
        path = self.pcloud_path(parsed_args.pcloud, "hosts")
        hosts = [_requested(parsed_args, name) for name in parsed_args.hosts]
        body: dict[str, Any] = {"hosts": hosts} if len(hosts) > 1 else {"host": hosts[0]}
        if parsed_args.client_token is not None:
            body["client_token"] = parsed_args.client_token
        answer = call(self.compute, "POST", path, body=body)
        failures = answer.get("failures", ())
        for each in failures:
            self.log.error("%s: %s", each["name"], each["message"])
        self.refused = len(failures)
        allocated = answer["hosts"] if "hosts" in answer else [answer["host"]]
        return tuple(COLUMNS), (_row(each, COLUMNS) for each in allocated)


class SetPcloudHost(PcloudsCommand):
    """Enable, disable or rename a host of a pcloud. Its servers stay."""

    arguments: ClassVar[Arguments] = {**PCLOUD_HOST, "--name": {"help": "its new name"}}

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        state = parser.add_mutually_exclusive_group()
        for option, value, text in (
            ("--enable", "enabled", "let servers be placed on it"),
            ("--disable", "disabled", "let no new servers be placed on it"),
        ):
            state.add_argument(option, dest="state", action="store_const", const=value, help=text)

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        given = {"name": parsed_args.name, "state": parsed_args.state}
        changes = {name: value for name, value in given.items() if value is not None}
        if not changes:
            raise osc_exceptions.CommandError("Give --enable, --disable or --name.")
        path = self.pcloud_path(parsed_args.pcloud, "hosts", parsed_args.host)
        call(self.compute, "PUT", path, body={"host": changes})


class RemovePcloudHosts(PcloudsCommand):
    """Return disabled, empty hosts of a pcloud to their pools."""

    arguments: ClassVar[Arguments] = {**PCLOUD, **HOSTS}

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        path = self.pcloud_path(parsed_args.pcloud, "hosts")
        all_of(
            parsed_args.hosts, lambda name: call(self.compute, "DELETE", (*path, name)), self.log
        )


class ReplacePcloudHost(PcloudsCommand, command.ShowOne):
    """Replace a broken or disabled host with a free host, which gets the same name."""

    arguments = PCLOUD_HOST

    def take_action(self, parsed_args: argparse.Namespace) -> One:
        path = self.pcloud_path(parsed_args.pcloud, "hosts", parsed_args.host, "action")
        return _shown(call(self.compute, "POST", path, body={"replace": {}}))


def _requested(parsed_args: argparse.Namespace, name: str) -> dict[str, Any]:
    host = {"name": name, "host_flavor": parsed_args.host_flavor}
    if parsed_args.availability_zone is not None:
        host["availability_zone"] = parsed_args.availability_zone
    if parsed_args.enable:
        host["state"] = "enabled"
    return host


def _row(host: Mapping[str, Any], columns: Mapping[str, str]) -> Sequence[Any]:
    servers = format_columns.ListColumn([each["id"] for each in host["servers"]])
    free = {name: max(0, of["capacity"] - of["used"]) for name, of in host["resources"].items()}
    cells = {**host, "servers": servers, "free": format_columns.DictColumn(free)}
    return [cells[name] for name in columns.values()]


def _shown(answer: Mapping[str, Any]) -> One:
    host = answer["host"]
    return values_of(
        {
            **host,
            "resources": format_columns.DictColumn(host["resources"]),
            "servers": format_columns.ListDictColumn(host["servers"]),
        }
    )
