"""The command ``openstack pod routing list``, which shows the pod of each server and volume."""

from __future__ import annotations

import argparse
from typing import ClassVar

from osc_lib.command import command

from innkeeper.entrypoints.cli.commands import Arguments, Table
from innkeeper.entrypoints.cli.pods.calling import PodsCommand

COLUMNS = {
    "ID": "id",
    "Resource": "top_id",
    "Type": "resource_type",
    "Project": "project_id",
    "Pod": "pod",
    "In Pod As": "bottom_id",
    "Created At": "created_at",
}


class ListRoutings(PodsCommand, command.Lister):
    """List the pods of servers and volumes, newest first (administrators only)."""

    arguments: ClassVar[Arguments] = {
        "--resource": {"metavar": "ID", "help": "only the routing of this server or volume"},
        "--project": {"metavar": "PROJECT", "help": "only routings of this project (its ID)"},
        "--pod": {"metavar": "POD", "help": "only routings to this pod"},
        "--type": {"metavar": "TYPE", "help": "only routings of this type, such as server"},
        "--begun": {"action": "store_true", "help": "only resources that no pod has confirmed yet"},
    }

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        """List the routings, with the names of pods."""
        names = self.pod_names()
        query = {
            "top_id": parsed_args.resource,
            "project_id": parsed_args.project,
            "pod_id": None if parsed_args.pod is None else self.pod_id(parsed_args.pod),
            "resource_type": parsed_args.type,
        }
        found = (
            {**each, "pod": names.get(each["pod_id"], each["pod_id"])}
            for each in self.rows(("routings",), "routings", query)
            if not (parsed_args.begun and each["bottom_id"])
        )
        return tuple(COLUMNS), ([each[name] for name in COLUMNS.values()] for each in found)
