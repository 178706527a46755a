"""The commands ``openstack pod binding ...`` and ``openstack pod explain``.

They show and change which project uses which pod.
"""

from __future__ import annotations

import argparse
from typing import Any, ClassVar

from osc_lib.command import command

from innkeeper.entrypoints.cli.calling import all_of
from innkeeper.entrypoints.cli.commands import LONG, Arguments, One, Table, finite
from innkeeper.entrypoints.cli.pods.calling import PodsCommand, add_pairs, pairs, shown

COLUMNS = {
    "ID": "id",
    "Project": "project_id",
    "Group": "group",
    "Zone": "az_name",
    "Pod": "pod",
    "Active": "is_binding",
    "Started At": "started_at",
    "Ended At": "ended_at",
}
LONG_COLUMNS = {"Pod ID": "pod_id", "Start Reason": "start_reason", "End Reason": "end_reason"}
VERDICT_COLUMNS = {
    "Pod": "pod_name",
    "Chosen": "chosen",
    "Bound": "bound",
    "Passes": "passes",
    "Weight": "weight",
    "Refused By": "refused_by",
    "Reason": "reason",
}
AMOUNTS = {
    "--vcpus": "vcpus",
    "--memory-mb": "memory_mb",
    "--disk-gb": "disk_gb",
    "--volume-gb": "volume_gb",
}
PROJECT: Arguments = {"project": {"metavar": "PROJECT", "help": "ID of the project"}}


class ListBindings(PodsCommand, command.Lister):
    """List bindings of projects to pods, with their history (administrators only)."""

    arguments: ClassVar[Arguments] = {
        **LONG,
        "--project": {"metavar": "PROJECT", "help": "only bindings of this project (its ID)"},
        "--pod": {"metavar": "POD", "help": "only bindings to this pod"},
        "--group": {"metavar": "GROUP", "help": "only bindings of this group of pods"},
    }

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        only = parser.add_mutually_exclusive_group()
        only.add_argument("--active", dest="active", action="store_const", const="true")
        only.add_argument("--ended", dest="active", action="store_const", const="false")

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        """List the bindings, with the names of pods that still exist."""
        columns = {**COLUMNS, **LONG_COLUMNS} if parsed_args.long else COLUMNS
        names = self.pod_names()
        query = {
            "project_id": parsed_args.project,
            "pod_id": None if parsed_args.pod is None else self.pod_id(parsed_args.pod),
            "group": parsed_args.group,
            "is_binding": parsed_args.active,
        }
        found = self.rows(("bindings",), "pod_bindings", query)
        told = ({**each, "pod": names.get(each["pod_id"], each["pod_id"])} for each in found)
        return tuple(columns), ([each[name] for name in columns.values()] for each in told)


class ShowBinding(PodsCommand, command.ShowOne):
    """Show a binding (administrators only)."""

    arguments: ClassVar[Arguments] = {
        "binding": {"metavar": "BINDING", "help": "ID of the binding"}
    }

    def take_action(self, parsed_args: argparse.Namespace) -> One:
        return shown(self.call("GET", "bindings", parsed_args.binding)["pod_binding"])


class CreateBinding(PodsCommand, command.ShowOne):
    """Bind a project to a given pod or a pod that the policy chooses (administrators only)."""

    arguments: ClassVar[Arguments] = {
        **PROJECT,
        "--pod": {"metavar": "POD", "help": "name or ID of the pod"},
    }

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        _add_request(parser)

    def take_action(self, parsed_args: argparse.Namespace) -> One:
        binding = _request(parsed_args)
        if parsed_args.pod is not None:
            binding["pod_id"] = self.pod_id(parsed_args.pod)
        made = self.call("POST", "bindings", body={"pod_binding": binding})
        return shown(made["pod_binding"])


class EndBindings(PodsCommand):
    """End bindings, which stay in the history (administrators only)."""

    arguments: ClassVar[Arguments] = {
        "bindings": {"nargs": "+", "metavar": "BINDING", "help": "ID of a binding"}
    }

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        def end(text: str) -> None:
            self.call("DELETE", "bindings", text)

        all_of(parsed_args.bindings, end, self.log)


class ExplainPods(PodsCommand, command.Lister):
    """Show which pod a project's next request would use, and why (administrators only)."""

    arguments = PROJECT

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        _add_request(parser)

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        """List the policy's result for each pod."""
        body = {"explain": _request(parsed_args)}
        found = self.call("POST", "explain", body=body)["explain"]
        self.log.info("group: %s", found["group"])
        told = (
            {
                **each,
                "chosen": each["pod_id"] == found["chosen"],
                "bound": each["pod_id"] in found["bound"],
            }
            for each in found["pods"]
        )
        rows = ([each[name] for name in VERDICT_COLUMNS.values()] for each in told)
        return tuple(VERDICT_COLUMNS), rows


def _add_request(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--availability-zone", metavar="ZONE", help="availability zone asked for")
    add_pairs(parser, "--property", "extra spec of the flavor or volume type")
    for option, kind in AMOUNTS.items():
        parser.add_argument(option, dest=kind, type=finite, metavar="N", help=f"{kind} asked for")


def _request(parsed_args: argparse.Namespace) -> dict[str, Any]:
    given = {kind: getattr(parsed_args, kind) for kind in AMOUNTS.values()}
    request = {
        "project_id": parsed_args.project,
        "availability_zone": parsed_args.availability_zone,
        "extra_specs": pairs(parsed_args.property, "--property"),
        "amounts": {kind: each for kind, each in given.items() if each is not None} or None,
    }
    return {name: value for name, value in request.items() if value is not None}
