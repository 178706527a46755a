"""``openstack server dedicated hosts ...``: where a shelved server comes back to.

Always true: names go to the service as they are typed. It looks them up for the project of the
server, which need not be the caller's.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping

from osc_lib.command import command

from innkeeper.entrypoints.cli.pclouds.calling import call


class _AboutServer(command.Command):
    """A command that is about one server."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Take the server."""
        parser: argparse.ArgumentParser = super().get_parser(prog_name)
        parser.add_argument("server", metavar="SERVER", help="name or ID of the server")
        return parser

    def ask(self, server: str, wanted: Mapping[str, str]) -> None:
        """Have the server come back to these hosts."""
        compute = self.app.client_manager.sdk_connection.compute
        found = compute.find_server(server, ignore_missing=False)
        body = {"setDedicatedHosts": dict(wanted)}
        call(compute, "POST", ("servers", found.id, "action"), body=body)


class SetDedicatedHosts(_AboutServer):
    """Have a shelved server come back to the hosts of a pcloud or of a reservation."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Take the server, and whose hosts they are."""
        parser = super().get_parser(prog_name)
        hosts = parser.add_mutually_exclusive_group(required=True)
        hosts.add_argument(
            "--pcloud", metavar="PCLOUD", help="to hosts of this pcloud (name or ID)"
        )
        hosts.add_argument(
            "--reservation",
            metavar="RESERVATION",
            help="to hosts of this reservation (its ID, or the name of its lease)",
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Change it."""
        if parsed_args.pcloud is not None:
            wanted = {"pcloud": parsed_args.pcloud}
        else:
            wanted = {"reservation": parsed_args.reservation}
        self.ask(parsed_args.server, wanted)


class UnsetDedicatedHosts(_AboutServer):
    """Have a shelved server come back to ordinary hosts, which are for everybody."""

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Change it."""
        self.ask(parsed_args.server, {})
