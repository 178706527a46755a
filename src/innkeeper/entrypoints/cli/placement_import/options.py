"""The options of ``innkeeper placement-import``."""

from __future__ import annotations

import argparse

from innkeeper.clients.addresses import is_http
from innkeeper.entrypoints.cli.placement_import.objections import Others

JOBS_MAX = 64
TIMEOUT_S_MAX = 3600.0
FROM_TOKEN = "PLACEMENT_FROM_TOKEN"  # noqa: S105 - the name of a variable
TO_TOKEN = "PLACEMENT_TO_TOKEN"  # noqa: S105 - the name of a variable
DESCRIPTION = """\
Copy what a running Placement service holds into this one, over the APIs of both, and compare.
May be run again at any time: only what differs is written."""
STATUSES = """\
exit status: 0 both sides are equal (with --dry-run: nothing would be written); 1 they differ;
2 it could not be done: wrong use, a side that does not answer or refuses, an objection"""


def add(command: argparse.ArgumentParser) -> None:
    """Declare them."""
    command.description = DESCRIPTION
    command.epilog = STATUSES
    command.formatter_class = argparse.RawDescriptionHelpFormatter
    for side, noun, variable in (("from", "source", FROM_TOKEN), ("to", "target", TO_TOKEN)):
        group = command.add_argument_group(f"the {noun}")
        group.add_argument(f"--{side}-cloud", metavar="NAME", help="its name in clouds.yaml")
        group.add_argument(
            f"--{side}-url",
            type=_url,
            metavar="URL",
            help="address of its Placement API; without it the cloud's catalog is asked",
        )
        group.add_argument(
            f"--{side}-token",
            metavar="TOKEN",
            help="token to use, where there is no cloud; others on this machine can see it "
            f"there, and cannot in the variable {variable}",
        )
    command.add_argument(
        "--others",
        choices=[each.value for each in Others],
        default=Others.REFUSE.value,
        help="what to do if the target has providers or consumers that the source has not: "
        "refuse to begin (the default), keep them, or remove them",
    )
    act = command.add_mutually_exclusive_group()
    act.add_argument(
        "--dry-run", action="store_true", help="read both sides and count what would be written"
    )
    act.add_argument(
        "--verify-only", action="store_true", help="read both sides and list where they differ"
    )
    command.add_argument(
        "--jobs",
        type=_jobs,
        default=8,
        metavar="N",
        help=f"requests under way to a service at the same time, at most {JOBS_MAX} "
        "(default: %(default)s)",
    )
    command.add_argument(
        "--timeout",
        type=_timeout,
        default=60.0,
        metavar="SECONDS",
        help="how long to wait for one answer (default: %(default)s)",
    )
    command.add_argument(
        "--cacert",
        metavar="FILE",
        help="certificates to trust, where there is no cloud that names some; otherwise those "
        "in OS_CACERT, or the system's",
    )


def _url(text: str) -> str:
    # Paths are put behind it, and a login in it would show in every message.
    if not is_http(text) or any(char in text for char in "?#@"):
        raise argparse.ArgumentTypeError(f"must be an http or https address, not {text!r}")
    return text


def _jobs(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        number = 0
    if not 1 <= number <= JOBS_MAX:
        raise argparse.ArgumentTypeError(f"must be a number between 1 and {JOBS_MAX}")
    return number


def _timeout(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    # Written so that "nan", which is neither more nor less than anything, is refused.
    if not 0 < number <= TIMEOUT_S_MAX:
        raise argparse.ArgumentTypeError(f"must be a number of at most {TIMEOUT_S_MAX:g}")
    return number
