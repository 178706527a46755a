"""The commands ``openstack pod ...``, for the pods behind a service."""

from __future__ import annotations

import argparse
from typing import Any, ClassVar

from osc_lib import exceptions as osc_exceptions
from osc_lib import utils
from osc_lib.command import command

from innkeeper.entrypoints.cli.calling import all_of
from innkeeper.entrypoints.cli.commands import LONG, Arguments, One, Table, changes_of, finite
from innkeeper.entrypoints.cli.passwords import add_password, given_password
from innkeeper.entrypoints.cli.pods.calling import (
    POD,
    PodsCommand,
    add_pairs,
    amounts,
    pairs,
    shown,
)

COLUMNS = {
    "ID": "pod_id",
    "Name": "pod_name",
    "Zone": "az_name",
    "Group": "group",
    "State": "state",
    "Maintenance": "maintenance",
}
LONG_COLUMNS = {
    "Data Center": "dc_name",
    "Weight": "weight",
    "Cost": "cost",
    "Threshold (%)": "threshold_percent",
    "Auth URL": "auth_url",
    "Latency (ms)": "latency_ms",
    "Last Seen At": "last_seen_at",
    "Last Error": "last_error",
}
TEXTS = {
    "--pod-availability-zone": ("pod_az_name", "ZONE", "availability zone inside the pod"),
    "--data-center": ("dc_name", "NAME", "data center of the pod"),
    "--region": ("region_name", "REGION", "region of the pod's catalog"),
    "--user-domain": ("user_domain_name", "DOMAIN", "domain of the user (default: Default)"),
    "--project-domain": ("project_domain_name", "DOMAIN", "domain of the project"),
}
LOGIN = {
    "--availability-zone": ("az_name", "ZONE", "availability zone that users see"),
    "--auth-url": ("auth_url", "URL", "address of the pod's Identity API"),
    "--username": ("username", "NAME", "user of this service in the pod"),
    "--project": ("project_name", "NAME", "project of this user"),
}
WHOSE = "of this user in the pod"
"""Completes the help of the options for the password."""
NUMBERS = {
    "--weight": ("weight", "number; pods with a higher weight are preferred"),
    "--cost": ("cost", "number; the weigher cost prefers pods with a lower cost"),
    "--threshold": ("threshold_percent", "percentage of the capacity at which the pod is full"),
}
"""The field in the API and the help of each option with a number."""


class ListPods(PodsCommand, command.Lister):
    """List the pods (administrators only)."""

    arguments = LONG

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        columns = {**COLUMNS, **LONG_COLUMNS} if parsed_args.long else COLUMNS
        found = self.rows(("pods",), "pods", {})
        return tuple(columns), ([each[name] for name in columns.values()] for each in found)


class ShowPod(PodsCommand, command.ShowOne):
    """Show a pod (administrators only)."""

    arguments = POD

    def take_action(self, parsed_args: argparse.Namespace) -> One:
        return shown(self.call("GET", "pods", self.pod_id(parsed_args.pod))["pod"])


class CreatePod(PodsCommand, command.ShowOne):
    """Add a pod (administrators only). The service first contacts the pod."""

    arguments: ClassVar[Arguments] = {"name": {"metavar": "NAME", "help": "name of the pod"}}

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        for option, (field, metavar, text) in LOGIN.items():
            parser.add_argument(option, dest=field, metavar=metavar, required=True, help=text)
        add_password(parser, f"{WHOSE}; default: the command asks for it")
        _add_options(parser)

    def take_action(self, parsed_args: argparse.Namespace) -> One:
        """Add the pod, with the password from an option, a file or the terminal."""
        password = given_password(parsed_args)
        if password is None:
            prompt = "Password in the pod:"
            password = utils.get_password(self.app.stdin, prompt, confirm=False)
        pod = {"pod_name": parsed_args.name, "password": password, **_given(parsed_args)}
        return shown(self.call("POST", "pods", body={"pod": pod})["pod"])


class SetPod(PodsCommand):
    """Change a pod (administrators only). The service first tries a new address or login."""

    arguments: ClassVar[Arguments] = {**POD, "--name": {"help": "its new name"}}

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        for option, (field, metavar, text) in LOGIN.items():
            parser.add_argument(option, dest=field, metavar=metavar, help=text)
        add_password(parser, WHOSE)
        _add_options(parser)

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        given = {"pod_name": parsed_args.name, "password": given_password(parsed_args)}
        changes = changes_of(given, _given(parsed_args))
        self.call("PUT", "pods", self.pod_id(parsed_args.pod), body={"pod": changes})


class DeletePods(PodsCommand):
    """Remove pods without active bindings and routings (administrators only)."""

    arguments: ClassVar[Arguments] = {
        "pods": {"nargs": "+", "metavar": "POD", "help": "name or ID of a pod"}
    }

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        def delete(text: str) -> None:
            self.call("DELETE", "pods", self.pod_id(text))

        all_of(parsed_args.pods, delete, self.log)


def _add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options that are optional for all commands."""
    for option, (field, metavar, text) in TEXTS.items():
        parser.add_argument(option, dest=field, metavar=metavar, help=text)
    add_policy(parser)
    add_pairs(parser, "--tag", "affinity tag of the pod; the tags replace all earlier ones")
    parser.add_argument("--no-tag", action="store_true", help="the pod has no tags")
    add_pairs(parser, "--endpoint", "address that overrides the pod's catalog", "TYPE=URL")


def add_policy(parser: argparse.ArgumentParser) -> None:
    """Declare the options for the fields that the policy reads, and that a dry run can change."""
    for option, (field, text) in NUMBERS.items():
        parser.add_argument(option, dest=field, metavar="NUMBER", type=finite, help=text)
    add_pairs(parser, "--headroom", "amount that must stay free, by kind", "KIND=AMOUNT")
    add_pairs(parser, "--ratio", "allocation ratio, by kind", "KIND=NUMBER")
    switch = parser.add_mutually_exclusive_group()
    for option, value, text in (
        ("--maintenance", "store_true", "send new work to other pods"),
        ("--no-maintenance", "store_false", "send new work to this pod again"),
    ):
        switch.add_argument(option, dest="maintenance", action=value, default=None, help=text)


def _given(parsed_args: argparse.Namespace) -> dict[str, Any]:
    """Return the fields of a pod that options set."""
    if parsed_args.no_tag and parsed_args.tag:
        raise osc_exceptions.CommandError("Give --tag or --no-tag, not both.")
    fields = [each[0] for each in (*TEXTS.values(), *LOGIN.values())]
    found = {field: getattr(parsed_args, field) for field in fields}
    found["resource_affinity_tag"] = {} if parsed_args.no_tag else pairs(parsed_args.tag, "--tag")
    found["endpoints"] = pairs(parsed_args.endpoint, "--endpoint")
    given = {name: value for name, value in found.items() if value is not None}
    return {**given, **policy_of(parsed_args)}


def policy_of(parsed_args: argparse.Namespace) -> dict[str, Any]:
    """Return the fields of a pod that the options of :func:`add_policy` set."""
    fields = [*(field for field, _ in NUMBERS.values()), "maintenance"]
    found = {field: getattr(parsed_args, field) for field in fields}
    found["headroom"] = amounts(parsed_args.headroom, "--headroom")
    found["allocation_ratios"] = amounts(parsed_args.ratio, "--ratio")
    return {name: value for name, value in found.items() if value is not None}
