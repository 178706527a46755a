"""``openstack host flavor ...``: types of whole hosts, and the pools that they come from."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from osc_lib import exceptions as osc_exceptions
from osc_lib.cli import format_columns
from osc_lib.command import command

from innkeeper.entrypoints.cli.pclouds.about import (
    AboutFlavor,
    AboutPoolHost,
    AboutPoolHosts,
    One,
    Table,
)
from innkeeper.entrypoints.cli.pclouds.calling import (
    FLAVORS,
    PartialLister,
    all_of,
    call,
    each_of,
    rows,
)

POOL_COLUMNS = {
    "Host": "hostname",
    "Availability Zone": "availability_zone",
    "Service State": "service_state",
    "Service Status": "service_status",
    "Maintenance": "maintenance",
    "Pcloud": "pcloud_id",
    "Name": "name",
    "Replaced": "replaced",
}
"""What lists of a pool show, and the API's words for it."""


class ListHostFlavors(command.Lister):
    """List host flavors."""

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        """Ask for all pages; how many are free is told unless the cloud keeps it secret."""
        compute = self.app.client_manager.sdk_connection.compute
        listed = (
            (
                each["id"],
                each["description"],
                each["units"],
                format_columns.DictColumn(each.get("free", {})),
            )
            for each in rows(compute, (FLAVORS,), "host_flavors")
        )
        return ("ID", "Description", "Units", "Free"), listed


class ShowHostFlavor(AboutFlavor, command.ShowOne):
    """Show a host flavor; to administrators with the number of its hosts."""

    def take_action(self, parsed_args: argparse.Namespace) -> One:
        """Ask for it."""
        compute = self.app.client_manager.sdk_connection.compute
        answer = call(compute, "GET", (FLAVORS, parsed_args.flavor))
        return _shown(answer["host_flavor"])


class CreateHostFlavor(command.ShowOne):
    """Define a host flavor, whose pool is empty (administrators only)."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Take what the flavor says of itself."""
        parser: argparse.ArgumentParser = super().get_parser(prog_name)
        parser.add_argument("flavor", metavar="ID", help="what the host flavor is called")
        parser.add_argument(
            "--units", type=int, required=True, help="what a host costs of its owner's quota"
        )
        parser.add_argument("--description", help="what such a host has, for people")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> One:
        """Make it."""
        compute = self.app.client_manager.sdk_connection.compute
        wanted = {"id": parsed_args.flavor, **_said(parsed_args)}
        answer = call(compute, "POST", (FLAVORS,), body={"host_flavor": wanted})
        return _shown(answer["host_flavor"])


class SetHostFlavor(AboutFlavor):
    """Change a host flavor (administrators only); hosts keep the units they were taken with."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Take what is to be different."""
        parser: argparse.ArgumentParser = super().get_parser(prog_name)
        parser.add_argument("--units", type=int, help="what a host costs from now on")
        parser.add_argument("--description", help="what such a host has, for people")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Change it."""
        wanted = _said(parsed_args)
        if not wanted:
            raise osc_exceptions.CommandError("Say --units, --description, or both.")
        compute = self.app.client_manager.sdk_connection.compute
        call(compute, "PUT", (FLAVORS, parsed_args.flavor), body={"host_flavor": wanted})


class DeleteHostFlavors(command.Command):
    """Delete host flavors whose pools are empty (administrators only)."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Take the flavors."""
        parser: argparse.ArgumentParser = super().get_parser(prog_name)
        parser.add_argument("flavors", nargs="+", metavar="FLAVOR", help="ID of a host flavor")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Delete each, whatever becomes of the others."""
        compute = self.app.client_manager.sdk_connection.compute
        all_of(
            parsed_args.flavors, lambda flavor: call(compute, "DELETE", (FLAVORS, flavor)), self.log
        )


# -- pools -------------------------------------------------------------------------------------


class ListPoolHosts(AboutFlavor, command.Lister):
    """List the hosts of a host flavor's pool, and who has them (administrators only)."""

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        """Ask for all pages."""
        compute = self.app.client_manager.sdk_connection.compute
        pool = rows(compute, (FLAVORS, parsed_args.flavor, "hosts"), "hosts")
        return tuple(POOL_COLUMNS), map(_pooled, pool)


class ShowPoolHost(AboutPoolHost, command.ShowOne):
    """Show a host of a host flavor's pool (administrators only)."""

    def take_action(self, parsed_args: argparse.Namespace) -> One:
        """Ask for it."""
        compute = self.app.client_manager.sdk_connection.compute
        path = (FLAVORS, parsed_args.flavor, "hosts", parsed_args.host)
        shown = call(compute, "GET", path)["host"]
        return tuple(shown), tuple(shown.values())


class AddPoolHosts(AboutPoolHosts, PartialLister):
    """Put empty, disabled hosts into a host flavor's pool and enable them (administrators
    only)."""

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        """Put each in, whatever becomes of the others; list those that came in."""
        compute = self.app.client_manager.sdk_connection.compute
        path = (FLAVORS, parsed_args.flavor, "hosts")

        def add(hostname: str) -> Any:
            return call(compute, "POST", path, body={"host": {"hostname": hostname}})["host"]

        added, self.refused = each_of(parsed_args.hosts, add, self.log)
        return tuple(POOL_COLUMNS), map(_pooled, added)


class RemovePoolHosts(AboutPoolHosts):
    """Take hosts that nobody has out of a host flavor's pool and disable them (administrators
    only)."""

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Take each out, whatever becomes of the others."""
        compute = self.app.client_manager.sdk_connection.compute
        path = (FLAVORS, parsed_args.flavor, "hosts")
        all_of(parsed_args.hosts, lambda host: call(compute, "DELETE", (*path, host)), self.log)


class SetPoolHost(AboutPoolHost):
    """Say that a host of a pool is in maintenance, or is not any more (administrators only)."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Take the reason, or that there is none."""
        parser: argparse.ArgumentParser = super().get_parser(prog_name)
        which = parser.add_mutually_exclusive_group(required=True)
        which.add_argument(
            "--maintenance",
            metavar="REASON",
            help="let nothing new come to it; the owner of its pcloud reads the reason",
        )
        which.add_argument(
            "--no-maintenance",
            dest="maintenance",
            action="store_const",
            const=None,
            help="let servers come to it again",
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Say it."""
        compute = self.app.client_manager.sdk_connection.compute
        path = (FLAVORS, parsed_args.flavor, "hosts", parsed_args.host)
        call(compute, "PUT", path, body={"host": {"maintenance": parsed_args.maintenance}})


def _said(parsed_args: argparse.Namespace) -> dict[str, Any]:
    said = {"units": parsed_args.units, "description": parsed_args.description}
    return {name: value for name, value in said.items() if value is not None}


def _shown(flavor: dict[str, Any]) -> One:
    if "free" in flavor:
        flavor = {**flavor, "free": format_columns.DictColumn(flavor["free"])}
    return tuple(flavor), tuple(flavor.values())


def _pooled(host: dict[str, Any]) -> Sequence[Any]:
    return [host[word] for word in POOL_COLUMNS.values()]
