"""What an owner says of a pcloud, as options: its ratios, its size, whether it is used unasked.

Always true: what no option names is not sent, so it stays as it is.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping
from typing import Any

from osc_lib import exceptions as osc_exceptions

RATIOS = ("cpu_allocation_ratio", "ram_allocation_ratio")
SIZES = {
    "min_hosts": "min_hosts",
    "max_hosts": "max_hosts",
    "size_host_flavor": "host_flavor",
    "size_zone": "availability_zone",
    "release_after_idle": "release_after_idle_s",
    "min_free_vcpus": "min_free_vcpus",
}
"""Options of the size policy, and the API's words for them."""
NEEDED = ("max_hosts", "host_flavor")
"""Without these, a size policy says nothing."""


def add(parser: argparse.ArgumentParser) -> None:
    """Have a command take these options."""
    for amount, what in (("cpu", "processors"), ("ram", "memory")):
        word = f"{amount}_allocation_ratio"
        ratio = parser.add_mutually_exclusive_group()
        ratio.add_argument(
            f"--{amount}-ratio",
            dest=word,
            type=_ratio,
            metavar="RATIO",
            # What was not said is not there at all: "none" is something that can be said.
            default=argparse.SUPPRESS,
            help=f"how many times its hosts give out the {what} they have",
        )
        ratio.add_argument(
            f"--no-{amount}-ratio",
            dest=word,
            action="store_const",
            const=None,
            default=argparse.SUPPRESS,
            help=f"leave the {what} to the hosts' own ratios",
        )
    unasked = parser.add_mutually_exclusive_group()
    unasked.add_argument(
        "--auto-placement",
        action="store_true",
        default=None,
        help="let servers that name no pcloud come to it as well",
    )
    unasked.add_argument(
        "--no-auto-placement",
        dest="auto_placement",
        action="store_false",
        default=None,
        help="let only those come that name it",
    )
    _add_size(parser)


def _ratio(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    # Infinity and "nan" are numbers to Python, and cannot be written in JSON.
    if not math.isfinite(number):
        raise argparse.ArgumentTypeError(f"must be a number, not {text!r}")
    return number


def _add_size(parser: argparse.ArgumentParser) -> None:
    size = parser.add_argument_group(
        "size policy", "Have the pcloud take and release hosts by itself."
    )
    size.add_argument("--min-hosts", type=int, metavar="N", help="fewest hosts it keeps")
    size.add_argument("--max-hosts", type=int, metavar="N", help="most hosts it grows to")
    size.add_argument("--size-host-flavor", metavar="FLAVOR", help="host flavor of those it takes")
    size.add_argument("--size-zone", metavar="ZONE", help="their availability zone")
    size.add_argument(
        "--release-after-idle",
        type=int,
        metavar="SECONDS",
        help="release a host that was empty for so long; without it, none is released",
    )
    size.add_argument(
        "--min-free-vcpus",
        type=int,
        metavar="N",
        help="a host with fewer processors left is full (default: 1)",
    )
    size.add_argument(
        "--no-size-policy",
        action="store_true",
        help="keep the hosts it has; with other options of the policy, begin a new one",
    )


def said(parsed_args: argparse.Namespace, present: Mapping[str, Any] | None) -> dict[str, Any]:
    """What the options say, in the API's words; ``present`` is the size policy there is."""
    wanted: dict[str, Any] = {}
    for name in RATIOS:
        if hasattr(parsed_args, name):
            wanted[name] = getattr(parsed_args, name)
    if parsed_args.auto_placement is not None:
        wanted["auto_placement"] = parsed_args.auto_placement
    told = {word: getattr(parsed_args, name) for name, word in SIZES.items()}
    told = {word: value for word, value in told.items() if value is not None}
    if told:
        wanted["size_policy"] = _size(told, {} if parsed_args.no_size_policy else present)
    elif parsed_args.no_size_policy:
        wanted["size_policy"] = None
    return wanted


def _size(told: Mapping[str, Any], present: Mapping[str, Any] | None) -> dict[str, Any]:
    # The API takes a policy whole, and people change one thing at a time.
    whole = {**(present or {}), **told}
    if not all(word in whole for word in NEEDED):
        raise osc_exceptions.CommandError("A size policy needs --max-hosts and --size-host-flavor.")
    return whole
