"""The base classes and functions that all ``openstack`` commands of Innkeeper share."""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from osc_lib import exceptions as osc_exceptions
from osc_lib.command import command

from innkeeper.entrypoints.cli.calling import ApiClient, ComputeClient

Table = tuple[Sequence[str], Iterator[Sequence[Any]]]
"""The headings and the rows of a list."""
One = tuple[Sequence[str], Sequence[Any]]
"""The names and the values of one row."""
Arguments = Mapping[str, Mapping[str, Any]]
"""The parameters of ``add_argument``, by the name of the argument."""

LONG: Arguments = {"--long": {"action": "store_true", "help": "show more columns"}}


class ApiCommand(command.Command):
    """A command that calls an API of the service. It has ``arguments``, in this order."""

    arguments: ClassVar[Arguments] = {}

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Declare ``arguments``, and then the arguments of :meth:`add_arguments`."""
        parser: argparse.ArgumentParser = super().get_parser(prog_name)
        for name, more in self.arguments.items():
            parser.add_argument(name, **more)
        self.add_arguments(parser)
        return parser

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare arguments that ``arguments`` cannot express, such as groups."""


class ComputeCommand(ApiCommand):
    """A command that calls the Compute API."""

    @property
    def connection(self) -> Any:
        """The SDK's connection, with the login of the caller."""
        return self.app.client_manager.sdk_connection

    @property
    def compute(self) -> ApiClient:
        """The Compute API."""
        return ComputeClient(self.connection.compute)


def finite(text: str) -> float:
    """Parse a finite number. JSON cannot express infinity and "nan", which Python also parses."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise argparse.ArgumentTypeError(f"must be a number, not {text!r}")
    return number


def changes_of(given: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """Return the given options and ``more``. Raises if there are no options."""
    changes = {name: value for name, value in given.items() if value is not None} | dict(more)
    if not changes:
        raise osc_exceptions.CommandError("Give at least one option.")
    return changes


def values_of(shown: Mapping[str, Any]) -> One:
    """Return the names and the values to show."""
    return tuple(shown), tuple(shown.values())
