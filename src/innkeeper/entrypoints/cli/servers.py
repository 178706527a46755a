"""``openstack server explain``: where servers would go, or why nowhere, without booting any.

And what was decided about a server that there is.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from openstack import exceptions
from osc_lib import exceptions as osc_exceptions
from osc_lib.command import command

MICROVERSION = "2.100"


class ExplainServer(command.ShowOne):
    """Tell where servers would be placed now, or why nowhere; nothing is claimed. Or tell how
    it was decided about a server that there is."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Take what ``server create`` takes, as far as it decides about hosts."""
        parser: argparse.ArgumentParser = super().get_parser(prog_name)
        parser.add_argument(
            "server", nargs="?", metavar="SERVER", help="a server that there is (name or ID)"
        )
        parser.add_argument("--flavor", help="flavor of the servers that are asked about")
        parser.add_argument("--image", help="image of the servers")
        parser.add_argument("--availability-zone", help="zone they must be in")
        parser.add_argument("--host", help="host they must be on (administrators only)")
        parser.add_argument("--min", type=int, default=1, help="fewest servers of use")
        parser.add_argument("--max", type=int, help="most servers wanted")
        parser.add_argument(
            "--hint", action="append", default=[], metavar="KEY=VALUE", help="scheduler hint"
        )
        parser.add_argument(
            "--why-not",
            metavar="HOST",
            help="tell what every filter says of this host (administrators only)",
        )
        parser.add_argument(
            "--record",
            action="store_true",
            help="have the decision recorded, to be replayed (administrators only)",
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[Sequence[str], Sequence[Any]]:
        """Ask the service and lay its answer out."""
        compute = self.app.client_manager.sdk_connection.compute
        if (parsed_args.server is None) == (parsed_args.flavor is None):
            raise osc_exceptions.CommandError(
                "Name a server that there is, or the --flavor of servers to ask about."
            )
        if parsed_args.server is not None:
            found = compute.find_server(parsed_args.server, ignore_missing=False)
            path = f"/servers/{found.id}/os-explain"
            answer = compute.get(path, microversion=MICROVERSION)
        else:
            asked = {"host": parsed_args.why_not, "record": parsed_args.record or None}
            query = urlencode({name: value for name, value in asked.items() if value})
            answer = compute.post(
                f"/os-explain?{query}" if query else "/os-explain",
                json=self._body(parsed_args),
                microversion=MICROVERSION,
            )
        exceptions.raise_from_response(answer)
        rows = _rows(answer.json()["explanation"])
        return tuple(rows), tuple(rows.values())

    def _body(self, parsed_args: argparse.Namespace) -> dict[str, Any]:
        """What ``server create`` would send, but for what decides nothing."""
        compute = self.app.client_manager.sdk_connection.compute
        server: dict[str, Any] = {
            "name": "explained",
            "flavorRef": compute.find_flavor(parsed_args.flavor, ignore_missing=False).id,
            "imageRef": "",
            "networks": "none",
            "min_count": parsed_args.min,
            "max_count": parsed_args.max or parsed_args.min,
        }
        if parsed_args.image:
            images = self.app.client_manager.sdk_connection.image
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


def _rows(told: Mapping[str, Any]) -> dict[str, Any]:
    rows: dict[str, Any] = {
        "hosts": told["hosts"],
        "candidates": told["candidates"],
        "servers": told["servers"],
        "fault": told["fault"],
        "removed": "\n".join(_removal(each) for each in told["removed"]),
        "chosen": "\n".join(_weighed(each) for each in told["chosen"]),
    }
    for name, line in (("nearest", _near_miss), ("best", _weighed)):
        if name in told:
            rows[name] = "\n".join(line(each) for each in told[name])
    if told.get("then") is not None:
        # Some of several would find a place; these are about the first that would not.
        rows["room"] = told["room"]
        rows["then_removed"] = "\n".join(_removal(each) for each in told["then"]["removed"])
        rows["then_nearest"] = "\n".join(_near_miss(each) for each in told["then"]["nearest"])
    if "host" in told:
        rows["why_not"] = "\n".join(_verdicts(told["host"]))
    if told.get("unread_hints"):
        hints = (f"{each['hint']}: {each['reason']}" for each in told["unread_hints"])
        rows["unread_hints"] = "\n".join(hints)
    rows["decided_by"] = told["decided_by"]["driver"]
    rows |= {name: told[name] for name in ("decided_at", "recording") if name in told}
    return rows


def _removal(each: Mapping[str, Any]) -> str:
    # How many are dedicated, the cloud may keep secret, and what would give it away as well.
    count = "some" if each["removed"] is None else each["removed"]
    line = f"{count} by {each['filter']}"
    if "reason" not in each:
        return line
    missing = f" ({each['missing']})" if each["missing"] else ""
    more = f"; without it, {each['alone']} more would do" if each["alone"] else ""
    return f"{line}: {each['reason']}{missing}{more}"


def _near_miss(each: Mapping[str, Any]) -> str:
    why = "; ".join(_objection(one) for one in each["refused_by"])
    return f"{each['host']}: {why}" if "host" in each else why


def _objection(each: Mapping[str, Any]) -> str:
    return f"{each['filter']} ({', '.join(each['lacks']) or each['reason']})"


def _verdicts(told: Mapping[str, Any]) -> list[str]:
    lines = [
        f"{each['filter']} {each['verdict']}"
        + (f": {', '.join(each['lacks']) or each['reason']}" if each["reason"] else "")
        for each in told["verdicts"]
    ]
    if told["rank"] is not None:
        lines.append(f"place {told['rank']}: {_weighed(told)}")
    return lines


def _weighed(each: Mapping[str, Any]) -> str:
    given = (each.get("parts") or {}).items()
    parts = ", ".join(f"{name} {part:.3f}" for name, part in given)
    pools = "".join(f", {name} of {pool}" for name, pool in each.get("pools", {}).items())
    host = f"{each['host']} " if "host" in each else ""
    return f"{host}{each['weight']:.3f}" + (f" ({parts})" if parts else "") + pools
