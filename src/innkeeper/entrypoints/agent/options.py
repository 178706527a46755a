"""The options of ``innkeeper agent``."""

from __future__ import annotations

import argparse
import re
import socket
from collections.abc import Callable, Sequence

from innkeeper.domain.amounts import UNIT_MAX
from innkeeper.domain.numerals import number_of
from innkeeper.entrypoints.agent.drivers.catalogue import DRIVERS
from innkeeper.terminal.arguments import http_url, names, whole

HOSTS_MAX = 1_000_000
NAME_MAX = 200
SECONDS_MAX = 366 * 24 * 3600
# The forms of names that the service accepts. Check names at the start, because a rejected report
# would not be noticed.
NAME = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9._-]*")
ZONE = re.compile(r"[^:\s\x00-\x1f]{1,255}")
TRAIT = re.compile(r"[A-Z0-9_]{1,255}")


def add(command: argparse.ArgumentParser) -> None:
    """Declare the options."""
    command.add_argument("--driver", required=True, choices=sorted(DRIVERS), help="driver to use")
    command.add_argument(
        "--url",
        type=http_url,
        help="address of the Compute API, such as http://127.0.0.1:8780/compute; without it "
        "the agent looks it up in the service catalog",
    )
    command.add_argument(
        "--name",
        type=_name,
        default=socket.gethostname(),
        help="the agent's name; keep it when the agent restarts",
    )
    command.add_argument(
        "--state-dir", default="innkeeper-agent", help="folder for state that survives a restart"
    )
    command.add_argument(
        "--token",
        help="token to use, for tests only: others on this machine can see it. "
        "Better: OS_CLOUD, OS_TOKEN or the OS_* password variables in the environment",
    )
    command.add_argument(
        "--token-file",
        help="file with the agent's credential, or with a token; to renew the token, rewrite the "
        "file: it is read again when the service refuses the token",
    )
    command.add_argument(
        "--ca-file",
        help="file with the trusted certificate authorities; default: the file that OS_CACERT "
        "names, or the system's authorities",
    )
    command.add_argument(
        "--cert-file", help="file with the agent's certificate, for services that require one"
    )
    command.add_argument("--key-file", help="file with the private key of that certificate")
    command.add_argument(
        "--threads",
        type=whole(1, HOSTS_MAX),
        default=16,
        help="number of orders carried out at the same time",
    )
    command.add_argument(
        "--with-parent",
        type=whole(1, 2**31 - 1),
        metavar="PID",
        help="stop when the process with this id, which started the agent, is gone",
    )
    _add_fake(command.add_argument_group("the fake driver"))


def _add_fake(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--hosts", type=whole(1, HOSTS_MAX), default=1, metavar="N", help="number of hosts"
    )
    group.add_argument(
        "--host-prefix",
        type=_prefix,
        default="host-",
        help="prefix of host names; a number follows",
    )
    group.add_argument(
        "--az",
        type=_list_of(ZONE, "name of an availability zone"),
        default=(),
        help="availability zones, assigned in turn, separated by commas",
    )
    group.add_argument(
        "--vcpus", type=whole(1, UNIT_MAX), default=32, help="virtual processors per host"
    )
    group.add_argument(
        "--memory-mb", type=whole(1, UNIT_MAX), default=131072, help="memory per host"
    )
    group.add_argument(
        "--disk-gb",
        type=whole(0, UNIT_MAX),
        default=2000,
        help="disk per host; 0 if all disks are in a shared pool",
    )
    group.add_argument(
        "--traits",
        type=_list_of(TRAIT, "trait"),
        default=(),
        help="additional traits of all hosts, separated by commas",
    )
    group.add_argument("--build-time-s", type=_seconds, default=0.0, help="how long a build takes")
    group.add_argument("--move-time-s", type=_seconds, default=0.0, help="how long a move takes")
    group.add_argument(
        "--fail-builds-on", metavar="PATTERN", help="hosts whose builds fail, such as 'host-1*'"
    )


def _name(text: str) -> str:
    if len(text) > NAME_MAX or not NAME.fullmatch(text):
        raise argparse.ArgumentTypeError(
            f"must have at most {NAME_MAX} letters, digits, dots, dashes and underscores, and "
            f"must begin with a letter or digit: {text!r}"
        )
    return text


def _prefix(text: str) -> str:
    # Validate the prefix with the longest number that may follow it.
    _name(f"{text}{HOSTS_MAX}")
    return text


def _list_of(pattern: re.Pattern[str], noun: str) -> Callable[[str], Sequence[str]]:
    def parse(text: str) -> Sequence[str]:
        parts = names(text)
        for part in parts:
            if not pattern.fullmatch(part):
                raise argparse.ArgumentTypeError(f"{part!r} is not a valid {noun}")
        return parts

    return parse


def _seconds(text: str) -> float:
    number = number_of(text)
    if number is None or not 0 <= number <= SECONDS_MAX:
        raise argparse.ArgumentTypeError(f"must be a number between 0 and {SECONDS_MAX}")
    return number
