"""The options of ``innkeeper agent``."""

from __future__ import annotations

import argparse
import socket

from innkeeper.entrypoints.agent.drivers.catalogue import DRIVERS

HOSTS_MAX = 1_000_000


def add(command: argparse.ArgumentParser) -> None:
    """Declare them."""
    command.add_argument(
        "--driver", required=True, choices=sorted(DRIVERS), help="what to drive"
    )
    command.add_argument(
        "--url",
        help="address of the Compute API, such as http://127.0.0.1:8780/compute; without it "
        "the service catalog is asked",
    )
    command.add_argument(
        "--name",
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
        help="file with a token, which is read again when the token is refused; for whoever "
        "renews the token by other means",
    )
    command.add_argument("--threads", type=_count, default=16, help="orders at the same time")
    command.add_argument(
        "--with-parent", action="store_true", help="stop when the starting program is gone"
    )
    _add_fake(command.add_argument_group("the fake driver"))


def _add_fake(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--hosts", type=_count, default=1, metavar="N", help="how many hosts")
    group.add_argument("--host-prefix", default="host-", help="host names before their number")
    group.add_argument(
        "--az", type=_names, default=(), help="availability zones, in turn; commas between them"
    )
    group.add_argument("--vcpus", type=_count, default=32, help="virtual processors per host")
    group.add_argument("--memory-mb", type=_count, default=131072, help="memory per host")
    group.add_argument("--disk-gb", type=_count, default=2000, help="disk per host")
    group.add_argument(
        "--traits",
        type=_names,
        default=(),
        help="more traits of all hosts; commas between them",
    )
    group.add_argument(
        "--build-time-s", type=float, default=0.0, help="how long a build pretends to take"
    )
    group.add_argument(
        "--fail-builds-on", metavar="PATTERN", help="hosts whose builds fail, such as 'host-1*'"
    )


def _names(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _count(text: str) -> int:
    number = int(text)
    if not 1 <= number <= HOSTS_MAX:
        raise argparse.ArgumentTypeError(f"must be between 1 and {HOSTS_MAX}")
    return number
