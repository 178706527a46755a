"""The arguments and the base class that the commands for host flavors and pclouds share."""

from __future__ import annotations

from innkeeper.entrypoints.cli.commands import Arguments, ComputeCommand
from innkeeper.entrypoints.cli.pclouds.calling import PCLOUDS, pcloud_id
from innkeeper.entrypoints.cli.pclouds.projects import project_id

FLAVOR: Arguments = {"flavor": {"metavar": "FLAVOR", "help": "ID of the host flavor"}}
PCLOUD: Arguments = {"pcloud": {"metavar": "PCLOUD", "help": "name or ID of the pcloud"}}
PROJECT: Arguments = {"project": {"metavar": "PROJECT", "help": "name or ID of the project"}}
HOST: Arguments = {"host": {"metavar": "HOST", "help": "name of the host"}}
HOSTS: Arguments = {"hosts": {"nargs": "+", "metavar": "HOST", "help": "name of a host"}}


class PcloudsCommand(ComputeCommand):
    """A command for host flavors or pclouds."""

    def pcloud_path(self, name: str, *more: str) -> tuple[str, ...]:
        """Return the API's path of the pcloud with this name or ID, followed by ``more``."""
        return (PCLOUDS, pcloud_id(self.connection, name), *more)

    def project_id(self, name: str, *, may_be_gone: bool = False) -> str:
        """Return the id of a project.

        See :func:`innkeeper.entrypoints.cli.pclouds.projects.project_id`.
        """
        return project_id(self.connection, name, self.log, may_be_gone=may_be_gone)
