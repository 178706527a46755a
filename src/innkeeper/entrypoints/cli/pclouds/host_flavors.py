"""The commands ``openstack host flavor ...``, for types of whole hosts and pools of such hosts."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any, ClassVar

from osc_lib import exceptions as osc_exceptions
from osc_lib.cli import format_columns
from osc_lib.command import command

from innkeeper.entrypoints.cli.calling import PartialLister, all_of, call, each_of, rows
from innkeeper.entrypoints.cli.commands import Arguments, One, Table, values_of
from innkeeper.entrypoints.cli.pclouds.about import FLAVOR, HOST, HOSTS, PcloudsCommand
from innkeeper.entrypoints.cli.pclouds.calling import FLAVORS

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
"""The columns of a pool's list, and their names in the API."""
DESCRIPTION = {"--description": {"help": "description of such a host"}}


class ListHostFlavors(PcloudsCommand, command.Lister):
    """List host flavors."""

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        """Read all pages. Numbers of free hosts are shown if the cloud does not hide them."""
        listed = (
            (
                each["id"],
                each["description"],
                each["units"],
                format_columns.DictColumn(each.get("free", {})),
            )
            for each in rows(self.compute, (FLAVORS,), "host_flavors")
        )
        return ("ID", "Description", "Units", "Free"), listed


class ShowHostFlavor(PcloudsCommand, command.ShowOne):
    """Show a host flavor. Administrators also see the number of its hosts."""

    arguments = FLAVOR

    def take_action(self, parsed_args: argparse.Namespace) -> One:
        return _shown(call(self.compute, "GET", (FLAVORS, parsed_args.flavor)))


class CreateHostFlavor(PcloudsCommand, command.ShowOne):
    """Create a host flavor with an empty pool (administrators only)."""

    arguments: ClassVar[Arguments] = {
        "flavor": {"metavar": "ID", "help": "ID of the new host flavor"},
        "--units": {"type": int, "required": True, "help": "units of a host in quotas"},
        **DESCRIPTION,
    }

    def take_action(self, parsed_args: argparse.Namespace) -> One:
        flavor = {"id": parsed_args.flavor, **_given(parsed_args)}
        return _shown(call(self.compute, "POST", (FLAVORS,), body={"host_flavor": flavor}))


class SetHostFlavor(PcloudsCommand):
    """Change a host flavor (administrators only). Allocated hosts keep their units."""

    arguments: ClassVar[Arguments] = {
        **FLAVOR,
        "--units": {"type": int, "help": "units of a newly allocated host in quotas"},
        **DESCRIPTION,
    }

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        given = _given(parsed_args)
        if not given:
            raise osc_exceptions.CommandError("Give --units, --description, or both.")
        call(self.compute, "PUT", (FLAVORS, parsed_args.flavor), body={"host_flavor": given})


class DeleteHostFlavors(PcloudsCommand):
    """Delete host flavors whose pools are empty (administrators only)."""

    arguments: ClassVar[Arguments] = {
        "flavors": {"nargs": "+", "metavar": "FLAVOR", "help": "ID of a host flavor"}
    }

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        all_of(
            parsed_args.flavors, lambda id_: call(self.compute, "DELETE", (FLAVORS, id_)), self.log
        )


class ListPoolHosts(PcloudsCommand, command.Lister):
    """List the hosts of a host flavor's pool, and their owners (administrators only)."""

    arguments = FLAVOR

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        pool = rows(self.compute, (FLAVORS, parsed_args.flavor, "hosts"), "hosts")
        return tuple(POOL_COLUMNS), map(_pool_row, pool)


class ShowPoolHost(PcloudsCommand, command.ShowOne):
    """Show a host of a host flavor's pool (administrators only)."""

    arguments: ClassVar[Arguments] = {**FLAVOR, **HOST}

    def take_action(self, parsed_args: argparse.Namespace) -> One:
        path = (FLAVORS, parsed_args.flavor, "hosts", parsed_args.host)
        return values_of(call(self.compute, "GET", path)["host"])


class AddPoolHosts(PcloudsCommand, PartialLister):
    """Add empty, disabled hosts to a host flavor's pool and enable them (administrators
    only)."""

    arguments: ClassVar[Arguments] = {**FLAVOR, **HOSTS}

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        path = (FLAVORS, parsed_args.flavor, "hosts")

        def add(hostname: str) -> Any:
            return call(self.compute, "POST", path, body={"host": {"hostname": hostname}})["host"]

        added, self.refused = each_of(parsed_args.hosts, add, self.log)
        return tuple(POOL_COLUMNS), map(_pool_row, added)


class RemovePoolHosts(PcloudsCommand):
    """Remove hosts without an owner from a host flavor's pool and disable them (administrators
    only)."""

    arguments: ClassVar[Arguments] = {**FLAVOR, **HOSTS}

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        path = (FLAVORS, parsed_args.flavor, "hosts")
        all_of(
            parsed_args.hosts, lambda host: call(self.compute, "DELETE", (*path, host)), self.log
        )


class SetPoolHost(PcloudsCommand):
    """Start or end the maintenance of a host of a pool (administrators only)."""

    arguments: ClassVar[Arguments] = {**FLAVOR, **HOST}

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        which = parser.add_mutually_exclusive_group(required=True)
        which.add_argument(
            "--maintenance",
            metavar="REASON",
            help="place no new servers on it; the owner of its pcloud sees this reason",
        )
        which.add_argument(
            "--no-maintenance",
            dest="maintenance",
            action="store_const",
            const=None,
            help="place servers on it again",
        )

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        path = (FLAVORS, parsed_args.flavor, "hosts", parsed_args.host)
        call(self.compute, "PUT", path, body={"host": {"maintenance": parsed_args.maintenance}})


def _given(parsed_args: argparse.Namespace) -> dict[str, Any]:
    given = {"units": parsed_args.units, "description": parsed_args.description}
    return {name: value for name, value in given.items() if value is not None}


def _shown(answer: dict[str, Any]) -> One:
    flavor = answer["host_flavor"]
    if "free" in flavor:
        flavor = {**flavor, "free": format_columns.DictColumn(flavor["free"])}
    return values_of(flavor)


def _pool_row(host: dict[str, Any]) -> Sequence[Any]:
    return [host[name] for name in POOL_COLUMNS.values()]
