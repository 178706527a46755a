"""The options of ``innkeeper replay``."""

from __future__ import annotations

import argparse
from pathlib import Path

from innkeeper.domain.numerals import number_of, whole_of
from innkeeper.domain.slices import MANY_MAX

DESCRIPTION = """\
Decide again what was recorded, by the same means, compare, and explain. With other filters,
weighers, drivers or seeds: see what they would have made of the same moment. Nothing else is
read than the file, and nothing is written."""
STATUSES = """\
exit status: 0 the same hosts in the same order as recorded; 1 others; 2 it could not be done:
wrong use, a file that is no recording or is damaged, a name that is none"""
SEED_MAX = 2**63 - 1


def add(command: argparse.ArgumentParser) -> None:
    """Declare them."""
    command.description = DESCRIPTION
    command.epilog = STATUSES
    command.formatter_class = argparse.RawDescriptionHelpFormatter
    command.add_argument("file", type=Path, metavar="FILE", help="the recording")
    command.add_argument("--driver", metavar="NAME", help="another driver")
    command.add_argument(
        "--filters", type=_names, metavar="NAME,...", help="other host filters, in this order"
    )
    command.add_argument(
        "--weighers",
        type=_weighers,
        metavar="NAME[=FACTOR],...",
        help="other weighers or sets of them, with their multipliers",
    )
    command.add_argument("--seed", type=_seed, metavar="N", help="another seed")
    command.add_argument(
        "--subset-size", type=_count, metavar="N", help="draw among so many of the best hosts"
    )
    command.add_argument("--host", metavar="NAME", help="tell what every filter says of this host")
    command.add_argument("--json", action="store_true", help="tell all of it as JSON")


def _names(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _weighers(text: str) -> dict[str, float | None]:
    return dict(_weigher(part) for part in _names(text))


def _weigher(text: str) -> tuple[str, float | None]:
    name, sign, factor = text.partition("=")
    if not sign:
        return name.strip(), None
    number = number_of(factor)
    if number is None:
        raise argparse.ArgumentTypeError(f"{factor!r} behind {name!r} is no number")
    return name.strip(), number


def _seed(text: str) -> int:
    return _whole(text, 0, SEED_MAX)


def _count(text: str) -> int:
    return _whole(text, 1, MANY_MAX)


def _whole(text: str, least: int, most: int) -> int:
    number = whole_of(text)
    if number is None or not least <= number <= most:
        raise argparse.ArgumentTypeError(f"must be a whole number from {least} to {most}")
    return number
