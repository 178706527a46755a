"""The command ``openstack pod dry run``, which shows what a change of pods or policy would move."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, ClassVar

from osc_lib import exceptions as osc_exceptions
from osc_lib.command import command

from innkeeper.entrypoints.cli.commands import Arguments, Table
from innkeeper.entrypoints.cli.pods.calling import PodsCommand, add_pairs, amounts, pairs
from innkeeper.entrypoints.cli.pods.pods import add_policy, policy_of

COLUMNS = ("Project", "Group", "Zone", "From", "To", "Reason", "Servers Left", "Volumes Left")
NEW_PROJECTS = "new projects"
GIVE = "Give --pod and at least one option to change, or --add and --availability-zone."


class TryPods(PodsCommand, command.Lister):
    """List the bindings that would move if a pod or the policy changed (administrators only).

    The rows of new projects show where their first requests would go. Nothing is changed.
    """

    arguments: ClassVar[Arguments] = {
        "--availability-zone": {"metavar": "ZONE", "help": "zone of the pod that would be added"},
        "--filter": {
            "action": "append",
            "dest": "filters",
            "metavar": "NAME",
            "help": "filter to use instead of the filters in the settings (repeatable)",
        },
    }

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        which = parser.add_mutually_exclusive_group()
        which.add_argument("--pod", metavar="POD", help="name or ID of the pod that would change")
        which.add_argument("--add", metavar="NAME", help="name of the pod that would be added")
        add_pairs(parser, "--tag", "affinity tag of the pod that would be added")
        add_pairs(parser, "--capacity", "capacity of the pod that would be added", "KIND=AMOUNT")
        add_pairs(
            parser,
            "--weigher",
            "weigher to use instead of the weighers in the settings",
            "NAME=NUMBER",
        )
        add_policy(parser)

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        """List the moves. Then list new projects whose pod would change."""
        wanted: dict[str, Any] = {
            **self._pods(parsed_args),
            "filters": parsed_args.filters,
            "weighers": amounts(parsed_args.weigher, "--weigher"),
        }
        body = {name: value for name, value in wanted.items() if value is not None}
        found = self.call("POST", "dry-run", body={"dry_run": body})["dry_run"]
        self.log.info(
            "%s bindings would move, and %s would stay.", found["moving"], found["staying"]
        )
        new = (each for each in found["new_projects"] if each["before"] != each["after"])
        return COLUMNS, chain(map(_move, found["moves"]), map(_new_projects, new))

    def _pods(self, parsed_args: argparse.Namespace) -> dict[str, Any]:
        """Return the part of the body with the pod that would change or be added."""
        fields = policy_of(parsed_args)
        added = {
            "az_name": parsed_args.availability_zone,
            "resource_affinity_tag": pairs(parsed_args.tag, "--tag"),
            "capacity": amounts(parsed_args.capacity, "--capacity"),
        }
        added = {name: value for name, value in added.items() if value is not None}
        if parsed_args.add is not None:
            if "az_name" not in added:
                raise osc_exceptions.CommandError(GIVE)
            return {"added_pods": [{"pod_name": parsed_args.add, **added, **fields}]}
        if added or bool(fields) != (parsed_args.pod is not None):
            raise osc_exceptions.CommandError(GIVE)
        return {"pods": {self.pod_id(parsed_args.pod): fields}} if fields else {}


def _move(told: Mapping[str, Any]) -> Sequence[Any]:
    binding = told["binding"]
    return (
        *(binding[name] for name in ("project_id", "group", "az_name")),
        *(told[name] for name in ("from", "to", "reason", "servers", "volumes")),
    )


def _new_projects(told: Mapping[str, Any]) -> Sequence[Any]:
    pods = (told["before"], told["after"])
    return NEW_PROJECTS, told["group"], told["az_name"], *pods, None, None, None
