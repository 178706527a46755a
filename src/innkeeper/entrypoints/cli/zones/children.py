"""The commands ``openstack zone ...``, for child zones and for the zone's own capabilities."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from osc_lib import utils
from osc_lib.cli import format_columns
from osc_lib.command import command

from innkeeper.entrypoints.cli.calling import all_of, call
from innkeeper.entrypoints.cli.commands import (
    LONG,
    Arguments,
    ComputeCommand,
    One,
    Table,
    changes_of,
    finite,
    values_of,
)
from innkeeper.entrypoints.cli.passwords import add_password, given_password
from innkeeper.entrypoints.cli.zones.calling import ZONE, ZONES, zone_id

WHOSE = "that the child made for this zone"
"""Completes the help of the options for the password."""
COLUMNS = {"ID": "id", "Name": "name", "URL": "api_url", "State": "state"}
LONG_COLUMNS = {
    "Username": "username",
    "Weight Offset": "weight_offset",
    "Weight Scale": "weight_scale",
    "Servers": "servers",
    "Latency (ms)": "latency_ms",
    "Last Seen At": "last_seen_at",
    "Last Error": "last_error",
}
TREE_COLUMNS = ("Zone", "State", "Hosts", "Free VCPUs", "Free RAM (MB)", "Servers")
"""The headings of lists."""
SEEN_FROM = "this zone"
WITH_BELOW = (
    "Zones below a child are not visible from here. "
    "The hosts and free amounts of a zone include those of the zones below it."
)


class ListZones(ComputeCommand, command.Lister):
    """List the child zones of this zone (administrators only)."""

    arguments = LONG

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        columns = {**COLUMNS, **LONG_COLUMNS} if parsed_args.long else COLUMNS
        path = (*ZONES, "detail") if parsed_args.long else ZONES
        found = call(self.compute, "GET", path)["zones"]
        shown = ({**each, "state": state_of(each)} for each in found)
        return tuple(columns), ([each[name] for name in columns.values()] for each in shown)


class ShowZone(ComputeCommand, command.ShowOne):
    """Show a child zone, and the results of the last polls (administrators only)."""

    arguments = ZONE

    def take_action(self, parsed_args: argparse.Namespace) -> One:
        path = (*ZONES, zone_id(self.compute, parsed_args.zone))
        return _shown(call(self.compute, "GET", path))


class CreateZone(ComputeCommand, command.ShowOne):
    """Add a child zone (administrators only). The service first contacts the zone."""

    arguments: ClassVar[Arguments] = {
        "name": {"metavar": "NAME", "help": "name of the child zone in this zone"},
        "url": {"metavar": "URL", "help": "address of its Compute API, which ends with /v2.1"},
        "--username": {
            "required": True,
            "help": "name of the zone parent that the child made for this zone",
        },
    }

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add_password(parser, f"{WHOSE}; default: the command asks for it")
        _add_weights(parser)
        parser.add_argument("--disable", action="store_true", help="do not use the child zone yet")

    def take_action(self, parsed_args: argparse.Namespace) -> One:
        """Add the zone, with the password from an option, a file or the terminal."""
        password = given_password(parsed_args)
        if password is None:
            prompt = "Password of the child zone:"
            password = utils.get_password(self.app.stdin, prompt, confirm=False)
        zone = {
            "name": parsed_args.name,
            "api_url": parsed_args.url,
            "username": parsed_args.username,
            "password": password,
            **_weights(parsed_args),
        }
        if parsed_args.disable:
            zone["enabled"] = False
        return _shown(call(self.compute, "POST", ZONES, body={"zone": zone}))


class SetZone(ComputeCommand):
    """Change a child zone (administrators only)."""

    arguments: ClassVar[Arguments] = {
        **ZONE,
        "--name": {"help": "its new name"},
        "--url": {"metavar": "URL", "help": "new address of its Compute API"},
        "--username": {"help": "new name of the zone parent that the child made for this zone"},
    }

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add_password(parser, WHOSE)
        _add_weights(parser)
        _add_switch(
            parser,
            "enabled",
            ("--enable", "use the child zone"),
            ("--disable", "do not use the child zone"),
        )
        drain = ("--drain", "boot no more servers in the child; its servers stay")
        _add_switch(parser, "draining", drain, ("--undrain", "boot servers in the child again"))
        parser.add_argument(
            "--replaced",
            action="store_true",
            default=None,
            help="the child is lost, and another zone takes its place; servers that the new zone "
            "does not have are forgotten",
        )

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        given = {
            "name": parsed_args.name,
            "api_url": parsed_args.url,
            "username": parsed_args.username,
            "password": given_password(parsed_args),
            "enabled": parsed_args.enabled,
            "draining": parsed_args.draining,
            "replaced": parsed_args.replaced,
        }
        changes = changes_of(given, _weights(parsed_args))
        path = (*ZONES, zone_id(self.compute, parsed_args.zone))
        call(self.compute, "PUT", path, body={"zone": changes})


class DeleteZones(ComputeCommand):
    """Remove child zones that have no servers of this zone (administrators only)."""

    arguments: ClassVar[Arguments] = {
        "zones": {"nargs": "+", "metavar": "ZONE", "help": "name or ID of a child zone"}
    }

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        def delete(text: str) -> None:
            call(self.compute, "DELETE", (*ZONES, zone_id(self.compute, text)))

        all_of(parsed_args.zones, delete, self.log)


class ShowZoneTree(ComputeCommand, command.Lister):
    """Show this zone and its child zones with their capacity (administrators only)."""

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        """Show the part of the tree that this zone knows, and log what is missing."""
        own = call(self.compute, "GET", (*ZONES, "info"))["zone"]
        children = call(self.compute, "GET", (*ZONES, "detail"))["zones"]
        if children:
            self.log.warning(WITH_BELOW)
        return TREE_COLUMNS, _tree(own, children)


class DescribeZone(ComputeCommand, command.ShowOne):
    """Show this zone's own name, ID and capabilities (administrators only)."""

    def take_action(self, parsed_args: argparse.Namespace) -> One:
        return values_of(_readable(call(self.compute, "GET", (*ZONES, "info"))["zone"]))


def state_of(zone: Mapping[str, Any]) -> str:
    """Return the state of a child zone in one word. Only active child zones get new servers."""
    if not zone["enabled"]:
        return "disabled"
    if not zone["is_active"]:
        return "inactive"
    return "draining" if zone["draining"] else "active"


def _tree(own: Mapping[str, Any], children: Sequence[Mapping[str, Any]]) -> Iterator[Sequence[Any]]:
    yield own["name"], SEEN_FROM, *_amounts(own), None
    for each in children:
        mark = "`-" if each is children[-1] else "|-"
        yield f"{mark} {each['name']}", state_of(each), *_amounts(each), each["servers"]


def _amounts(zone: Mapping[str, Any]) -> Sequence[int | None]:
    told = zone["capabilities"]
    found = [told.get(name) for name in ("hosts", "vcpus_free", "memory_mb_free")]
    return [None if each is None else int(each) for each in found]


def _shown(answer: Mapping[str, Any]) -> One:
    return values_of(_readable(answer["zone"]))


def _readable(zone: Mapping[str, Any]) -> dict[str, Any]:
    return {**zone, "capabilities": format_columns.DictColumn(zone["capabilities"])}


def _add_weights(parser: argparse.ArgumentParser) -> None:
    for name, what in (("offset", "that is added to"), ("scale", "above 0 that multiplies")):
        parser.add_argument(
            f"--weight-{name}",
            type=finite,
            metavar="NUMBER",
            help=f"number {what} the weights of the child; the lower weight wins",
        )


def _weights(parsed_args: argparse.Namespace) -> dict[str, Any]:
    given = {name: getattr(parsed_args, name) for name in ("weight_offset", "weight_scale")}
    return {name: value for name, value in given.items() if value is not None}


def _add_switch(
    parser: argparse.ArgumentParser, name: str, on: tuple[str, str], off: tuple[str, str]
) -> None:
    switch = parser.add_mutually_exclusive_group()
    for (option, what), action in ((on, "store_true"), (off, "store_false")):
        switch.add_argument(option, dest=name, action=action, default=None, help=what)
