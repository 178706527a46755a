"""An agent for a started service, with simulated hosts whose moves take some time."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.compat.openstack_command import Started, environment
from tests.support import forked
from tests.support.forked import SOURCE

WITHIN_S = 90.0
PAUSE_S = 0.2


@contextmanager
def agent(service: Started, state_dir: Path, *options: str) -> Iterator[set[str]]:
    """Run an agent until the block ends; yields the names of its hosts when they are up.

    Afterwards, the hosts are disabled: a silent host counts as up for a while, and could be chosen.
    """
    login = {"OS_CLIENT_CONFIG_FILE": str(service.login_file), "OS_CLOUD": "innkeeper"}
    before, found = hosts(service), set[str]()
    with open(os.devnull, "wb") as nowhere:
        program = forked.start(
            ["agent", "--driver", "fake", "--state-dir", str(state_dir), *options],
            stdout=nowhere,
            stderr=nowhere,
            env=environment(PYTHONPATH=str(SOURCE), **login),
        )
    try:
        deadline_s = time.monotonic() + WITHIN_S
        while not found:
            found = hosts(service) - before
            assert time.monotonic() < deadline_s, "The agent's hosts did not come."
            time.sleep(PAUSE_S)
        yield found
    finally:
        program.terminate()
        program.wait(WITHIN_S)
        for host in sorted(found):
            service.do("compute", "service", "set", "--disable", host, "nova-compute")


def hosts(service: Started) -> set[str]:
    """The names of all hosts."""
    return {each["Hypervisor Hostname"] for each in service.ask("hypervisor", "list")}
