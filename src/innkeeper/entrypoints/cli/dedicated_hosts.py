"""The commands ``openstack server dedicated hosts ...`` choose hosts for a shelved server.

The server is unshelved on one of these hosts.

Always true: names are sent as they are typed. The service looks up the names for the server's
project, which may differ from the caller's project.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping

from innkeeper.entrypoints.cli.calling import call
from innkeeper.entrypoints.cli.commands import Arguments, ComputeCommand

SERVER: Arguments = {"server": {"metavar": "SERVER", "help": "name or ID of the server"}}


class SetDedicatedHosts(ComputeCommand):
    """Choose the pcloud or the reservation on whose hosts a shelved server is unshelved."""

    arguments = SERVER

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the options that name the pcloud or the reservation of the hosts."""
        hosts = parser.add_mutually_exclusive_group(required=True)
        hosts.add_argument(
            "--pcloud", metavar="PCLOUD", help="on hosts of this pcloud (name or ID)"
        )
        hosts.add_argument(
            "--reservation",
            metavar="RESERVATION",
            help="on hosts of this reservation (its ID, or the name of its lease)",
        )

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        owners = {"pcloud": parsed_args.pcloud, "reservation": parsed_args.reservation}
        hosts = {key: text for key, text in owners.items() if text is not None}
        _send(self, parsed_args.server, hosts)


class UnsetDedicatedHosts(ComputeCommand):
    """Let a shelved server be unshelved on ordinary hosts, which are open to everybody."""

    arguments = SERVER

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        _send(self, parsed_args.server, {})


def _send(command: ComputeCommand, server: str, hosts: Mapping[str, str]) -> None:
    found = command.connection.compute.find_server(server, ignore_missing=False)
    path = ("servers", found.id, "action")
    call(command.compute, "POST", path, body={"setDedicatedHosts": dict(hosts)})
