"""What commands of host flavors and pclouds are about, and the forms in which they tell of it.

Always true: what a command is about comes first among its arguments, whatever else it takes.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import Any

from osc_lib.command import command

Table = tuple[Sequence[str], Iterator[Sequence[Any]]]
One = tuple[Sequence[str], Sequence[Any]]
"""The head and the rows of a list; the fields and the values of one thing."""


class AboutFlavor(command.Command):
    """A command that is about one host flavor."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Take the flavor."""
        parser: argparse.ArgumentParser = super().get_parser(prog_name)
        parser.add_argument("flavor", metavar="FLAVOR", help="ID of the host flavor")
        return parser


class AboutPoolHost(AboutFlavor):
    """A command that is about one host of a host flavor's pool."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Take the flavor and the host."""
        parser: argparse.ArgumentParser = super().get_parser(prog_name)
        parser.add_argument("host", metavar="HOST", help="name of the host")
        return parser


class AboutPoolHosts(AboutFlavor):
    """A command that is about some hosts of a host flavor's pool."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Take the flavor and the hosts."""
        parser: argparse.ArgumentParser = super().get_parser(prog_name)
        parser.add_argument("hosts", nargs="+", metavar="HOST", help="name of a host")
        return parser


class AboutPcloud(command.Command):
    """A command that is about one pcloud."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Take the pcloud."""
        parser: argparse.ArgumentParser = super().get_parser(prog_name)
        parser.add_argument("pcloud", metavar="PCLOUD", help="name or ID of the pcloud")
        return parser


class AboutPcloudHost(AboutPcloud):
    """A command that is about one host of a pcloud."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Take the pcloud and the host."""
        parser: argparse.ArgumentParser = super().get_parser(prog_name)
        parser.add_argument("host", metavar="HOST", help="name of the host in the pcloud")
        return parser


class AboutPcloudProject(AboutPcloud):
    """A command that is about a project and a pcloud."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Take the pcloud and the project."""
        parser: argparse.ArgumentParser = super().get_parser(prog_name)
        add_project(parser)
        return parser


def add_project(parser: argparse.ArgumentParser) -> None:
    """Have a command take a project that it cannot do without."""
    parser.add_argument("project", metavar="PROJECT", help="name or ID of the project")
