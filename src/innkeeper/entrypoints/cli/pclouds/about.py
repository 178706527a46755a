"""The shared part of the commands for host flavors and pclouds: arguments and the API client."""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from osc_lib.command import command

from innkeeper.entrypoints.cli.calling import ApiClient
from innkeeper.entrypoints.cli.pclouds.calling import PCLOUDS, compute_of, pcloud_id
from innkeeper.entrypoints.cli.pclouds.projects import project_id

Table = tuple[Sequence[str], Iterator[Sequence[Any]]]
"""The headings and the rows of a list."""
One = tuple[Sequence[str], Sequence[Any]]
"""The names and the values of one row."""
Arguments = Mapping[str, Mapping[str, Any]]
"""The options of ``add_argument``, by the argument's name."""

FLAVOR: Arguments = {"flavor": {"metavar": "FLAVOR", "help": "ID of the host flavor"}}
PCLOUD: Arguments = {"pcloud": {"metavar": "PCLOUD", "help": "name or ID of the pcloud"}}
PROJECT: Arguments = {"project": {"metavar": "PROJECT", "help": "name or ID of the project"}}
HOST: Arguments = {"host": {"metavar": "HOST", "help": "name of the host"}}
HOSTS: Arguments = {"hosts": {"nargs": "+", "metavar": "HOST", "help": "name of a host"}}
LONG: Arguments = {"--long": {"action": "store_true", "help": "show more columns"}}


class ApiCommand(command.Command):
    """A command that takes ``arguments`` in their order and calls the Compute API."""

    arguments: ClassVar[Arguments] = {}

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Declare the arguments, and then those of :meth:`add_arguments`."""
        parser: argparse.ArgumentParser = super().get_parser(prog_name)
        for name, more in self.arguments.items():
            parser.add_argument(name, **more)
        self.add_arguments(parser)
        return parser

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare arguments that need a group."""

    @property
    def connection(self) -> Any:
        """The SDK's connection, with the login of the caller."""
        return self.app.client_manager.sdk_connection

    @property
    def compute(self) -> ApiClient:
        """The Compute API."""
        return compute_of(self.connection)

    def pcloud_path(self, name: str, *more: str) -> tuple[str, ...]:
        """Return the path of the pcloud with this name or ID, extended by ``more``."""
        return (PCLOUDS, pcloud_id(self.connection, name), *more)

    def project_id(self, name: str, *, may_be_gone: bool = False) -> str:
        """See :func:`innkeeper.entrypoints.cli.pclouds.projects.project_id`."""
        return project_id(self.connection, name, self.log, may_be_gone=may_be_gone)


def finite(text: str) -> float:
    """Parse a number. JSON has neither infinity nor "nan", which Python parses."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise argparse.ArgumentTypeError(f"must be a number, not {text!r}")
    return number


def values_of(shown: Mapping[str, Any]) -> One:
    """Return the names and the values to show."""
    return tuple(shown), tuple(shown.values())
