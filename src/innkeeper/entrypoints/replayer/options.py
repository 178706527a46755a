"""The options of ``innkeeper replay``."""

from __future__ import annotations

import argparse
from pathlib import Path

from innkeeper.domain.numerals import number_of
from innkeeper.domain.setting_types import MANY_MAX
from innkeeper.terminal.arguments import describe, names, seed, whole

DESCRIPTION = """\
Repeat a recorded decision with the same code, compare the result, and explain it. Other
filters, weighers, drivers or seeds show what they would have decided at that moment. The
command reads only the file, and writes nothing."""
STATUSES = """\
exit status: 0 the same hosts in the same order as recorded; 1 different hosts; 2 the command
failed: wrong usage, a file that is damaged or not a recording, an unknown name"""


def add(command: argparse.ArgumentParser) -> None:
    """Declare the options."""
    describe(command, DESCRIPTION, STATUSES)
    command.add_argument("file", type=Path, metavar="FILE", help="the recording")
    command.add_argument("--driver", metavar="NAME", help="another driver")
    command.add_argument(
        "--filters", type=names, metavar="NAME,...", help="other host filters, in this order"
    )
    command.add_argument(
        "--weighers",
        type=_weighers,
        metavar="NAME[=FACTOR],...",
        help="other weighers or sets of them, with their multipliers",
    )
    command.add_argument("--seed", type=seed, metavar="N", help="another seed")
    command.add_argument(
        "--subset-size",
        type=whole(1, MANY_MAX),
        metavar="N",
        help="choose at random among this many of the best hosts",
    )
    command.add_argument("--host", metavar="NAME", help="show each filter's verdict on this host")
    command.add_argument("--json", action="store_true", help="print everything as JSON")


def _weighers(text: str) -> dict[str, float | None]:
    return dict(_weigher(part) for part in names(text))


def _weigher(text: str) -> tuple[str, float | None]:
    name, sign, factor = text.partition("=")
    if not sign:
        return name.strip(), None
    number = number_of(factor)
    if number is None:
        raise argparse.ArgumentTypeError(f"the multiplier {factor!r} of {name!r} is not a number")
    return name.strip(), number
