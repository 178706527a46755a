"""The commands ``openstack zone parent ...``, for the zones that may use a zone."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any, ClassVar

from osc_lib.cli import format_columns
from osc_lib.command import command

from innkeeper.entrypoints.cli.calling import all_of, call
from innkeeper.entrypoints.cli.commands import (
    Arguments,
    ComputeCommand,
    One,
    Table,
    changes_of,
    values_of,
)
from innkeeper.entrypoints.cli.zones.calling import PARENT, PARENTS, parent_id

COLUMNS = {
    "ID": "id",
    "Name": "name",
    "Enabled": "enabled",
    "Roles": "roles",
    "Instances": "instances",
    "Cores": "cores",
    "RAM": "ram",
}
LIMITS: Arguments = {
    f"--{name}": {"type": int, "metavar": "N", "help": f"limit on the {what}; -1 for no limit"}
    for name, what in (
        ("instances", "number of its servers"),
        ("cores", "processors of all its servers"),
        ("ram", "memory of all its servers, in MB"),
    )
}
ROLE: Mapping[str, Any] = {
    "dest": "roles",
    "action": "append",
    "metavar": "ROLE",
    "help": "role that its users may have here (repeat the option for several)",
}


class ListZoneParents(ComputeCommand, command.Lister):
    """List the zones that may use this zone (administrators only)."""

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        found = map(_readable, call(self.compute, "GET", PARENTS)["zone_parents"])
        return tuple(COLUMNS), ([each[name] for name in COLUMNS.values()] for each in found)


class ShowZoneParent(ComputeCommand, command.ShowOne):
    """Show a zone parent, without its password (administrators only)."""

    arguments = PARENT

    def take_action(self, parsed_args: argparse.Namespace) -> One:
        path = (*PARENTS, parent_id(self.compute, parsed_args.parent))
        return _shown(call(self.compute, "GET", path))


class CreateZoneParent(ComputeCommand, command.ShowOne):
    """Let a zone use this zone (administrators only). Its password is shown only once."""

    arguments: ClassVar[Arguments] = {
        "name": {"metavar": "NAME", "help": "user name of that zone in this zone"},
        "--role": ROLE,
        **LIMITS,
    }

    def take_action(self, parsed_args: argparse.Namespace) -> One:
        body = {"zone_parent": {"name": parsed_args.name, **_given(parsed_args)}}
        return _shown(call(self.compute, "POST", PARENTS, body=body))


class SetZoneParent(ComputeCommand, command.ShowOne):
    """Change a zone parent's rights, limits or password (administrators only)."""

    arguments: ClassVar[Arguments] = {**PARENT, **LIMITS}

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        roles = parser.add_mutually_exclusive_group()
        roles.add_argument("--role", **ROLE)
        roles.add_argument(
            "--no-role",
            dest="roles",
            action="store_const",
            const=(),
            help="remove all its roles; the zone parent can then only read",
        )
        use = parser.add_mutually_exclusive_group()
        use.add_argument(
            "--enable",
            dest="enabled",
            action="store_true",
            default=None,
            help="accept requests of the zone parent",
        )
        use.add_argument(
            "--disable",
            dest="enabled",
            action="store_false",
            default=None,
            help="refuse requests of the zone parent",
        )
        parser.add_argument(
            "--new-password",
            action="store_true",
            default=None,
            help="replace its password at once, and show the new one",
        )

    def take_action(self, parsed_args: argparse.Namespace) -> One:
        """Change the zone parent, and show it. Only a new password is shown."""
        given = {name: getattr(parsed_args, name) for name in ("enabled", "new_password")}
        changes = changes_of(given, _given(parsed_args))
        path = (*PARENTS, parent_id(self.compute, parsed_args.parent))
        return _shown(call(self.compute, "PUT", path, body={"zone_parent": changes}))


class DeleteZoneParents(ComputeCommand):
    """Remove zone parents, so that they lose access (administrators only). Their servers stay."""

    arguments: ClassVar[Arguments] = {
        "parents": {"nargs": "+", "metavar": "PARENT", "help": "name or ID of a zone parent"}
    }

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        def delete(text: str) -> None:
            call(self.compute, "DELETE", (*PARENTS, parent_id(self.compute, text)))

        all_of(parsed_args.parents, delete, self.log)


def _given(parsed_args: argparse.Namespace) -> dict[str, Any]:
    given = {name: getattr(parsed_args, name) for name in ("instances", "cores", "ram")}
    if parsed_args.roles is not None:
        given["roles"] = list(parsed_args.roles)
    return {name: value for name, value in given.items() if value is not None}


def _readable(parent: Mapping[str, Any]) -> dict[str, Any]:
    return {**parent, "roles": format_columns.ListColumn(parent["roles"])}


def _shown(answer: Mapping[str, Any]) -> One:
    return values_of(_readable(answer["zone_parent"]))
