"""``openstack server explain``: where servers would go, or why nowhere, without booting any."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

from openstack import exceptions
from osc_lib.command import command

MICROVERSION = "2.100"


class Explain(command.ShowOne):
    """Tell where servers would be placed now, or why nowhere; nothing is claimed."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Take what ``server create`` takes, as far as it decides about hosts."""
        parser: argparse.ArgumentParser = super().get_parser(prog_name)
        parser.add_argument("--flavor", required=True, help="flavor of the servers")
        parser.add_argument("--image", help="image of the servers")
        parser.add_argument("--availability-zone", help="zone they must be in")
        parser.add_argument("--host", help="host they must be on (administrators only)")
        parser.add_argument("--min", type=int, default=1, help="fewest servers of use")
        parser.add_argument("--max", type=int, help="most servers wanted")
        parser.add_argument(
            "--hint", action="append", default=[], metavar="KEY=VALUE", help="scheduler hint"
        )
        return parser

    def take_action(
        self, parsed_args: argparse.Namespace
    ) -> tuple[Sequence[str], Sequence[Any]]:
        """Ask the service and lay its answer out."""
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
        answer = compute.post("/os-explain", json=body, microversion=MICROVERSION)
        exceptions.raise_from_response(answer)
        told = answer.json()["explanation"]
        rows = _rows(told)
        return tuple(rows), tuple(rows.values())


def _rows(told: Mapping[str, Any]) -> dict[str, Any]:
    rows: dict[str, Any] = {
        "hosts": told["hosts"],
        "servers": told["servers"],
        "fault": told["fault"],
        "removed": "\n".join(_removal(each) for each in told["removed"]),
    }
    if "chosen" in told:
        rows["chosen"] = "\n".join(_weighed(each) for each in told["chosen"])
        rows["best"] = "\n".join(_weighed(each) for each in told["best"])
    return rows


def _removal(each: Mapping[str, Any]) -> str:
    missing = f" ({each['missing']})" if each["missing"] else ""
    return f"{each['removed']} by {each['filter']}: {each['reason']}{missing}"


def _weighed(each: Mapping[str, Any]) -> str:
    parts = ", ".join(f"{name} {part:.3f}" for name, part in each.get("parts", {}).items())
    pools = "".join(f", {name} of {pool}" for name, pool in each.get("pools", {}).items())
    return f"{each['host']} {each['weight']:.3f}" + (f" ({parts})" if parts else "") + pools
