"""``openstack pod dry run``: what would move if pods or the policy changed."""

from __future__ import annotations

import argparse
from typing import Any, ClassVar

from osc_lib import exceptions as osc_exceptions
from osc_lib.command import command

from innkeeper.entrypoints.cli.pclouds.about import Arguments, Table
from innkeeper.entrypoints.cli.pods.calling import PodsCommand, add_pairs, amounts
from innkeeper.entrypoints.cli.pods.pods import add_policy, policy_of

COLUMNS = ("Project", "Group", "Zone", "From", "To", "Reason")


class TryPods(PodsCommand, command.Lister):
    """List the bindings that would move if a pod or the policy changed (administrators only).

    Nothing is changed.
    """

    arguments: ClassVar[Arguments] = {
        "--pod": {"metavar": "POD", "help": "name or ID of the pod that would change"},
        "--filter": {
            "action": "append",
            "dest": "filters",
            "metavar": "NAME",
            "help": "filter in place of those of the settings (repeatable)",
        },
    }

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add_pairs(parser, "--weigher", "weigher in place of those of the settings", "NAME=NUMBER")
        add_policy(parser)

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        """List the moves, and tell how many bindings would stay."""
        fields = policy_of(parsed_args)
        if bool(fields) != (parsed_args.pod is not None):
            raise osc_exceptions.CommandError("Give --pod together with what would change.")
        wanted: dict[str, Any] = {
            "pods": {self.pod_id(parsed_args.pod): fields} if fields else None,
            "filters": parsed_args.filters,
            "weighers": amounts(parsed_args.weigher, "--weigher"),
        }
        body = {name: value for name, value in wanted.items() if value is not None}
        found = self.call("POST", "dry-run", body={"dry_run": body})["dry_run"]
        self.log.warning("%s would move, and %s would stay.", found["moving"], found["staying"])
        return COLUMNS, (
            (
                each["binding"]["project_id"],
                each["binding"]["group"],
                each["binding"]["az_name"],
                each["from"],
                each["to"],
                each["reason"],
            )
            for each in found["moves"]
        )
