"""The options of ``innkeeper agent``."""

from __future__ import annotations

import argparse
import re
import socket
from collections.abc import Callable, Sequence

from innkeeper.clients.addresses import is_http
from innkeeper.domain.amounts import UNIT_MAX
from innkeeper.entrypoints.agent.drivers.catalogue import DRIVERS

HOSTS_MAX = 1_000_000
NAME_MAX = 200
SECONDS_MAX = 366 * 24 * 3600
# What the service takes. It would refuse others again and again, and nobody might look.
NAME = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9._-]*")
ZONE = re.compile(r"[^:\s\x00-\x1f]{1,255}")
TRAIT = re.compile(r"[A-Z0-9_]{1,255}")


def add(command: argparse.ArgumentParser) -> None:
    """Declare them."""
    command.add_argument("--driver", required=True, choices=sorted(DRIVERS), help="what to drive")
    command.add_argument(
        "--url",
        type=_url,
        help="address of the Compute API, such as http://127.0.0.1:8780/compute; without it "
        "the service catalog is asked",
    )
    command.add_argument(
        "--name",
        type=_name,
        default=socket.gethostname(),
        help="the agent's name; one that is known already is the same agent again",
    )
    command.add_argument(
        "--state-dir", default="innkeeper-agent", help="folder for what must survive a restart"
    )
    command.add_argument(
        "--token",
        help="token to use; others on this machine can see it, so only for trying out. "
        "Better: OS_CLOUD, OS_TOKEN or the OS_* password variables in the environment",
    )
    command.add_argument(
        "--token-file",
        help="file with the agent's credential, or with a token; it is read again when that is "
        "refused, so whoever renews it writes the new one there",
    )
    command.add_argument(
        "--ca-file",
        help="file with the authorities whose certificates are believed; without it OS_CACERT "
        "names it, or the machine's own are believed",
    )
    command.add_argument(
        "--cert-file", help="file with the agent's own certificate, for services that ask"
    )
    command.add_argument("--key-file", help="file with the key of that certificate")
    command.add_argument("--threads", type=_count, default=16, help="orders at the same time")
    command.add_argument(
        "--with-parent",
        type=_process,
        metavar="PID",
        help="stop when the starting program, whose process id this is, is gone",
    )
    _add_fake(command.add_argument_group("the fake driver"))


def _add_fake(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--hosts", type=_count, default=1, metavar="N", help="how many hosts")
    group.add_argument(
        "--host-prefix", type=_prefix, default="host-", help="host names before their number"
    )
    group.add_argument(
        "--az", type=_zones, default=(), help="availability zones, in turn; commas between them"
    )
    group.add_argument("--vcpus", type=_amount, default=32, help="virtual processors per host")
    group.add_argument("--memory-mb", type=_amount, default=131072, help="memory per host")
    group.add_argument(
        "--disk-gb",
        type=_amount_or_none,
        default=2000,
        help="disk per host; 0 for none, where all disks are in a shared pool",
    )
    group.add_argument(
        "--traits", type=_traits, default=(), help="more traits of all hosts; commas between them"
    )
    group.add_argument(
        "--build-time-s", type=_seconds, default=0.0, help="how long a build pretends to take"
    )
    group.add_argument(
        "--move-time-s", type=_seconds, default=0.0, help="how long a move pretends to take"
    )
    group.add_argument(
        "--fail-builds-on", metavar="PATTERN", help="hosts whose builds fail, such as 'host-1*'"
    )


def _url(text: str) -> str:
    if not is_http(text):
        raise argparse.ArgumentTypeError(f"must be an http or https address, not {text!r}")
    return text


def _name(text: str) -> str:
    if len(text) > NAME_MAX or not NAME.fullmatch(text):
        raise argparse.ArgumentTypeError(
            f"must be at most {NAME_MAX} letters, digits, dots, dashes and underscores, and "
            f"begin with a letter or digit, not {text!r}"
        )
    return text


def _prefix(text: str) -> str:
    # Judged with the longest number that may follow.
    _name(f"{text}{HOSTS_MAX}")
    return text


def _parts(text: str, pattern: re.Pattern[str], noun: str) -> Sequence[str]:
    parts = tuple(part.strip() for part in text.split(",") if part.strip())
    for part in parts:
        if not pattern.fullmatch(part):
            raise argparse.ArgumentTypeError(f"{part!r} is no {noun}")
    return parts


def _zones(text: str) -> Sequence[str]:
    return _parts(text, ZONE, "name of an availability zone")


def _traits(text: str) -> Sequence[str]:
    return _parts(text, TRAIT, "trait")


def _whole(text: str, least: int, most: int) -> int:
    try:
        number = int(text)
    except ValueError:
        number = least - 1
    if not least <= number <= most:
        raise argparse.ArgumentTypeError(f"must be a number between {least} and {most}")
    return number


def _up_to(most: int, least: int = 1) -> Callable[[str], int]:
    return lambda text: _whole(text, least, most)


_count = _up_to(HOSTS_MAX)
_amount = _up_to(UNIT_MAX)
_amount_or_none = _up_to(UNIT_MAX, least=0)
_process = _up_to(2**31 - 1)


def _seconds(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    # Written so that "nan", which is neither more nor less than anything, is refused.
    if not 0 <= number <= SECONDS_MAX:
        raise argparse.ArgumentTypeError(f"must be a number between 0 and {SECONDS_MAX}")
    return number
