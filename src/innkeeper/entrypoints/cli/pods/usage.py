"""The commands ``openstack pod usage ...``, which show how full pods are, with forecasts."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, ClassVar

from osc_lib.command import command

from innkeeper.entrypoints.cli.commands import Arguments, Table
from innkeeper.entrypoints.cli.pods.calling import POD, PodsCommand

KINDS = {
    "VCPUs": "vcpus",
    "RAM (MB)": "memory_mb",
    "Disk (GB)": "disk_gb",
    "Volumes (GB)": "volume_gb",
}
PROJECTS = {
    "Project": "project_id",
    "Bound": "is_bound",
    "Servers": "servers",
    "Volumes": "volumes",
    "VCPUs": "vcpus",
    "RAM (MB)": "memory_mb",
    "Volumes (GB)": "volume_gb",
    "Begun": "begun",
    "Deleting": "deleting",
}
TOTAL = "total"
COLUMNS = ("Pod", *KINDS, "Full At", "Age (s)", "Old")
KIND_COLUMNS = {
    "Total": "total",
    "Used": "used",
    "Limit": "limit",
    "Used Per Day": "used_per_day",
    "Full At": "full_at",
    "Forecast Error (%)": "forecast_error_percent",
}


class ListProjects(PodsCommand, command.Lister):
    """List the resources that each project has in a pod (administrators only).

    The last row has the sums over all projects.
    """

    arguments = POD

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        """List the projects, and then the total."""
        path = ("pods", self.pod_id(parsed_args.pod), "projects")
        total = self.call("GET", *path, query={"limit": "1"})["total"]
        last = {**total, "project_id": TOTAL, "is_bound": None}
        found = chain(self.rows(path, "projects", {}), [last])
        return tuple(PROJECTS), ([each[name] for name in PROJECTS.values()] for each in found)


class ListUsage(PodsCommand, command.Lister):
    """List the usage and the limits of the pods (administrators only)."""

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        return COLUMNS, map(_row, self.call("GET", "usage")["usage"])


class ShowUsage(PodsCommand, command.Lister):
    """Show the usage of a pod by kind, with a forecast (administrators only)."""

    arguments: ClassVar[Arguments] = {
        **POD,
        "--measure": {"action": "store_true", "help": "measure the pod now"},
    }

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        """Show a row for each kind of amount, and warn about an old measurement."""
        method = "POST" if parsed_args.measure else "GET"
        query = {"limit": "1"}
        told = self.call(method, "usage", self.pod_id(parsed_args.pod), query=query)["usage"]
        if told["measured_at"] is None:
            self.log.warning("The pod was never measured. The policy assumes that it has room.")
        elif told["is_old"]:
            self.log.warning("The measurement is old: it was made at %s.", told["measured_at"])
        return ("Kind", *KIND_COLUMNS), _kinds(told)


def _kinds(told: Mapping[str, Any]) -> Iterator[Sequence[Any]]:
    for kind, each in (told["kinds"] or {}).items():
        yield kind, *(_rounded(each[name]) for name in KIND_COLUMNS.values())


def _row(told: Mapping[str, Any]) -> Sequence[Any]:
    kinds = told["kinds"] or {}
    age_s = None if told["age_s"] is None else round(told["age_s"])
    used = (_used(kinds.get(kind)) for kind in KINDS.values())
    return told["pod_name"], *used, told["full_at"], age_s, told["is_old"]


def _used(each: Mapping[str, Any] | None) -> str | None:
    if each is None:
        return None
    limit = "?" if each["limit"] is None else f"{each['limit']:g}"
    return f"{each['used']:g} / {limit}"


def _rounded(value: Any) -> Any:
    return round(value, 2) if isinstance(value, float) else value
