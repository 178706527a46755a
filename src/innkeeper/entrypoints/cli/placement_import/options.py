"""The options of ``innkeeper placement-import``."""

from __future__ import annotations

import argparse

from innkeeper.domain.numerals import number_of
from innkeeper.entrypoints.cli.placement_import.objections import Others
from innkeeper.terminal.arguments import describe, http_url, whole

JOBS_MAX = 64
TIMEOUT_S_MAX = 3600.0
FROM_TOKEN = "PLACEMENT_FROM_TOKEN"  # noqa: S105 - the name of a variable
TO_TOKEN = "PLACEMENT_TO_TOKEN"  # noqa: S105 - the name of a variable
DESCRIPTION = """\
Copy the content of a running Placement service into this one, through both APIs, and compare.
The command can be repeated at any time: it writes only what differs."""
STATUSES = """\
exit status: 0 both sides are equal (with --dry-run: nothing would be written); 1 they differ;
2 failure: wrong usage, a service that does not answer or refuses, an objection"""


def add(command: argparse.ArgumentParser) -> None:
    """Declare the options."""
    describe(command, DESCRIPTION, STATUSES)
    for side, noun, variable in (("from", "source", FROM_TOKEN), ("to", "target", TO_TOKEN)):
        group = command.add_argument_group(f"the {noun}")
        group.add_argument(f"--{side}-cloud", metavar="NAME", help="its cloud in clouds.yaml")
        group.add_argument(
            f"--{side}-url",
            type=_url,
            metavar="URL",
            help="address of its Placement API; default: from the cloud's catalog",
        )
        group.add_argument(
            f"--{side}-token",
            metavar="TOKEN",
            help="token to use without a cloud; others on this machine can see it, unlike the "
            f"variable {variable}",
        )
    command.add_argument(
        "--others",
        choices=[each.value for each in Others],
        default=Others.REFUSE.value,
        help="what to do with providers and consumers that only the target has: refuse to start "
        "(the default), keep them, or remove them",
    )
    act = command.add_mutually_exclusive_group()
    act.add_argument(
        "--dry-run", action="store_true", help="read both sides and count what would be written"
    )
    act.add_argument(
        "--verify-only", action="store_true", help="read both sides and list the differences"
    )
    command.add_argument(
        "--jobs",
        type=whole(1, JOBS_MAX),
        default=8,
        metavar="N",
        help=f"concurrent requests to a service, at most {JOBS_MAX} (default: %(default)s)",
    )
    command.add_argument(
        "--timeout",
        type=_timeout,
        default=60.0,
        metavar="SECONDS",
        help="timeout of one request (default: %(default)s)",
    )
    command.add_argument(
        "--cacert",
        metavar="FILE",
        help="certificates to trust if the cloud names none; default: OS_CACERT, or the system's",
    )


def _url(text: str) -> str:
    # Paths are appended to the URL, and messages repeat it, so it must not contain a login.
    if any(char in text for char in "?#@"):
        raise argparse.ArgumentTypeError(f"must be an http or https address, not {text!r}")
    return http_url(text)


def _timeout(text: str) -> float:
    number = number_of(text)
    if number is None or not 0 < number <= TIMEOUT_S_MAX:
        raise argparse.ArgumentTypeError(f"must be a number of at most {TIMEOUT_S_MAX:g}")
    return number
