"""The command ``openstack server explain``, which explains placements of servers."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar
from urllib.parse import urlencode

from openstack import exceptions
from osc_lib import exceptions as osc_exceptions
from osc_lib.command import command

from innkeeper.entrypoints.cli.calling import COMPUTE_MICROVERSION
from innkeeper.entrypoints.cli.commands import Arguments, ComputeCommand, One, values_of

_COUNTS = ("hosts", "candidates")


class ExplainServer(ComputeCommand, command.ShowOne):
    """Show where servers would be placed now, or why they could not be placed.

    This claims no capacity. For an existing server, the recorded decision is shown.
    """

    arguments: ClassVar[Arguments] = {
        "server": {"nargs": "?", "metavar": "SERVER", "help": "an existing server (name or ID)"},
        "--flavor": {"help": "flavor of the servers to place"},
        "--image": {"help": "image of the servers"},
        "--availability-zone": {"help": "required availability zone of the servers"},
        "--host": {"help": "required host of the servers (administrators only)"},
        "--min": {"type": int, "default": 1, "help": "minimum number of servers"},
        "--max": {"type": int, "help": "maximum number of servers"},
        "--hint": {
            "action": "append",
            "default": [],
            "metavar": "KEY=VALUE",
            "help": "scheduler hint",
        },
        "--why-not": {
            "metavar": "HOST",
            "help": "show each filter's verdict on this host (administrators only)",
        },
        "--record": {
            "action": "store_true",
            "help": "record the decision, so that it can be replayed (administrators only)",
        },
    }

    def take_action(self, parsed_args: argparse.Namespace) -> One:
        """Ask for the explanation, and format it."""
        compute = self.connection.compute
        if (parsed_args.server is None) == (parsed_args.flavor is None):
            raise osc_exceptions.CommandError(
                "Name an existing server, or the --flavor of servers to place."
            )
        if parsed_args.server is not None:
            found = compute.find_server(parsed_args.server, ignore_missing=False)
            path = f"/servers/{found.id}/os-explain"
            answer = compute.get(path, microversion=COMPUTE_MICROVERSION)
        else:
            options = {"host": parsed_args.why_not, "record": parsed_args.record or None}
            query = urlencode({name: value for name, value in options.items() if value})
            answer = compute.post(
                f"/os-explain?{query}" if query else "/os-explain",
                json=self._body(parsed_args),
                microversion=COMPUTE_MICROVERSION,
            )
        exceptions.raise_from_response(answer)
        return values_of(rows_of(answer.json()["explanation"]))

    def _body(self, parsed_args: argparse.Namespace) -> dict[str, Any]:
        """Return the body of ``server create``, without fields that the scheduler ignores."""
        compute = self.connection.compute
        server: dict[str, Any] = {
            "name": "explained",
            "flavorRef": compute.find_flavor(parsed_args.flavor, ignore_missing=False).id,
            "imageRef": "",
            "networks": "none",
            "min_count": parsed_args.min,
            "max_count": parsed_args.max or parsed_args.min,
        }
        if parsed_args.image:
            images = self.connection.image
            server["imageRef"] = images.find_image(parsed_args.image, ignore_missing=False).id
        if parsed_args.availability_zone:
            server["availability_zone"] = parsed_args.availability_zone
        if parsed_args.host:
            server["host"] = parsed_args.host
        body: dict[str, Any] = {"server": server}
        if parsed_args.hint:
            body["OS-SCH-HNT:scheduler_hints"] = dict(
                hint.partition("=")[::2] for hint in parsed_args.hint
            )
        return body


def rows_of(explanation: Mapping[str, Any]) -> dict[str, Any]:
    """Return the names and values that show an explanation."""
    rows = {name: explanation[name] for name in ("hosts", "candidates", "servers", "fault")}
    rows["removed"] = "\n".join(map(_removal, explanation["removed"]))
    rows["chosen"] = "\n".join(map(_weighed, explanation["chosen"]))
    for name, line in (("nearest", _near_miss), ("best", _weighed)):
        if name in explanation:
            rows[name] = "\n".join(map(line, explanation[name]))
    then = explanation.get("then")
    if then is not None:
        # Only some of the servers found a host. These rows are about the first server without a
        # host.
        rows["room"] = explanation["room"]
        rows["then_removed"] = "\n".join(map(_removal, then["removed"]))
        rows["then_nearest"] = "\n".join(map(_near_miss, then["nearest"]))
    tree = explanation.get("tree")
    if tree is not None:
        rows["servers_in_tree"] = tree["servers"]
        rows["chosen_in_tree"] = "\n".join(map(_on_the_way, tree["chosen"]))
        rows["zones"] = "\n".join(_zones(tree["zones"]))
    if "host" in explanation:
        rows["why_not"] = "\n".join(_verdicts(explanation["host"]))
    if explanation.get("unread_hints"):
        hints = (f"{each['hint']}: {each['reason']}" for each in explanation["unread_hints"])
        rows["unread_hints"] = "\n".join(hints)
    rows["decided_by"] = explanation["decided_by"]["driver"]
    optional = ("decided_at", "recording")
    return rows | {name: explanation[name] for name in optional if name in explanation}


def _removal(each: Mapping[str, Any]) -> str:
    # The cloud may hide the number of dedicated hosts, and fields that would reveal it.
    count = "some" if each["removed"] is None else each["removed"]
    line = f"{count} by {each['filter']}"
    if "reason" not in each:
        return line
    missing = f" ({each['missing']})" if each["missing"] else ""
    more = f"; without it, {each['alone']} more would pass" if each["alone"] else ""
    return f"{line}: {each['reason']}{missing}{more}"


def _near_miss(each: Mapping[str, Any]) -> str:
    why = "; ".join(_objection(one) for one in each["refused_by"])
    return f"{each['host']}: {why}" if "host" in each else why


def _objection(each: Mapping[str, Any]) -> str:
    return f"{each['filter']} ({', '.join(each['lacks']) or each['reason']})"


def _on_the_way(each: Mapping[str, Any]) -> str:
    """Return the zones on the way to a server's host, and the weight of the host.

    Only administrators get the names of the zones.
    """
    if "zones" not in each:
        return f"{each['weight']:.3f}"
    return f"{'/'.join(each['zones']) or 'this zone'} {each['weight']:.3f}"


def _zones(zones: Iterable[Mapping[str, Any]], above: str = "") -> list[str]:
    """Return a line for each zone, followed by the lines of the zones below it."""
    lines = []
    for each in zones:
        name = above + (each.get("zone") or "a zone")
        if "room" not in each:
            lines.append(f"{name}: {each['answer']}")
            continue
        hosts, candidates = ("some" if each[key] is None else each[key] for key in _COUNTS)
        removed = "".join(f"; {_removal(one)}" for one in each["removed"])
        lines.append(f"{name}: {candidates} of {hosts} hosts, room {each['room']}{removed}")
        lines += _zones(each["zones"], f"{name}/")
    return lines


def _verdicts(host: Mapping[str, Any]) -> list[str]:
    lines = [
        f"{each['filter']} {each['verdict']}"
        + (f": {', '.join(each['lacks']) or each['reason']}" if each["reason"] else "")
        for each in host["verdicts"]
    ]
    if host["rank"] is not None:
        lines.append(f"place {host['rank']}: {_weighed(host)}")
    return lines


def _weighed(each: Mapping[str, Any]) -> str:
    given = (each.get("parts") or {}).items()
    parts = ", ".join(f"{name} {part:.3f}" for name, part in given)
    pools = "".join(f", {name} of {pool}" for name, pool in each.get("pools", {}).items())
    host = f"{each['host']} " if "host" in each else ""
    return f"{host}{each['weight']:.3f}" + (f" ({parts})" if parts else "") + pools
