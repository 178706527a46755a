"""The options for a pcloud's ratios, size policy and automatic placement.

Always true: properties without an option are not sent, so they keep their values.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from osc_lib import exceptions as osc_exceptions

from innkeeper.entrypoints.cli.commands import finite

RATIOS = ("cpu_allocation_ratio", "ram_allocation_ratio")
SIZES = {
    "min_hosts": "min_hosts",
    "max_hosts": "max_hosts",
    "size_host_flavor": "host_flavor",
    "size_zone": "availability_zone",
    "release_after_idle": "release_after_idle_s",
    "min_free_vcpus": "min_free_vcpus",
}
"""Options of the size policy, and their names in the API."""
NEEDED = ("max_hosts", "host_flavor")
"""The required fields of a size policy."""


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options for the properties of a pcloud."""
    for amount, what in (("cpu", "processors"), ("ram", "memory")):
        word = f"{amount}_allocation_ratio"
        ratio = parser.add_mutually_exclusive_group()
        ratio.add_argument(
            f"--{amount}-ratio",
            dest=word,
            type=finite,
            metavar="RATIO",
            # An omitted option has no attribute, because None is a valid value.
            default=argparse.SUPPRESS,
            help=f"allocation ratio of its hosts' {what}",
        )
        ratio.add_argument(
            f"--no-{amount}-ratio",
            dest=word,
            action="store_const",
            const=None,
            default=argparse.SUPPRESS,
            help=f"use the hosts' own allocation ratios of {what}",
        )
    automatic = parser.add_mutually_exclusive_group()
    automatic.add_argument(
        "--auto-placement",
        action="store_true",
        default=None,
        help="let servers that name no pcloud be placed on it",
    )
    automatic.add_argument(
        "--no-auto-placement",
        dest="auto_placement",
        action="store_false",
        default=None,
        help="let only servers that name it be placed on it",
    )
    _add_size(parser)


def _add_size(parser: argparse.ArgumentParser) -> None:
    size = parser.add_argument_group(
        "size policy", "Let the pcloud allocate and release hosts automatically."
    )
    size.add_argument("--min-hosts", type=int, metavar="N", help="minimum number of hosts")
    size.add_argument("--max-hosts", type=int, metavar="N", help="maximum number of hosts")
    size.add_argument("--size-host-flavor", metavar="FLAVOR", help="flavor of new hosts")
    size.add_argument("--size-zone", metavar="ZONE", help="zone of new hosts")
    size.add_argument(
        "--release-after-idle",
        type=int,
        metavar="SECONDS",
        help="release hosts that were empty for this long; default: never",
    )
    size.add_argument(
        "--min-free-vcpus",
        type=int,
        metavar="N",
        help="a host with fewer free processors counts as full (default: 1)",
    )
    size.add_argument(
        "--no-size-policy",
        action="store_true",
        help="remove the policy and keep the hosts; with other policy options, replace the policy",
    )


def given(parsed_args: argparse.Namespace, present: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the given properties by their names in the API.

    ``present`` is the current size policy.
    """
    properties: dict[str, Any] = {}
    for name in RATIOS:
        if hasattr(parsed_args, name):
            properties[name] = getattr(parsed_args, name)
    if parsed_args.auto_placement is not None:
        properties["auto_placement"] = parsed_args.auto_placement
    size = {word: getattr(parsed_args, name) for name, word in SIZES.items()}
    size = {word: value for word, value in size.items() if value is not None}
    if size:
        # The API expects a whole policy, but the options may change a single field.
        size = {**({} if parsed_args.no_size_policy else present or {}), **size}
        if not all(word in size for word in NEEDED):
            raise osc_exceptions.CommandError(
                "A size policy needs --max-hosts and --size-host-flavor."
            )
        properties["size_policy"] = size
    elif parsed_args.no_size_policy:
        properties["size_policy"] = None
    return properties
