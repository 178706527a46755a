"""Several services on one database: one leads, and the others forward their writes to it."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.databases import DATABASES
from tests.support.service_processes import UNLIMITED, Started, serve_all

WITHIN_S = 30.0
LOOKS_AGAIN_S = 0.05
FLAVORS = "/compute/v2.1/flavors"
FORWARDED = re.compile(
    r'^innkeeper_forwarded_total{outcome="(?P<outcome>\w+)"} (?P<count>\S+)$', re.MULTILINE
)


@dataclass(slots=True)
class Led:
    """The leader, and the processes that follow it."""

    leader: Started
    followers: list[Started]

    @property
    def follower(self) -> Started:
        """The first of the followers."""
        return self.followers[0]


def forwards(service: Started) -> dict[str, int]:
    """How many of its writes a process has forwarded or kept, by outcome."""
    return {
        each["outcome"]: int(float(each["count"])) for each in FORWARDED.finditer(service.metrics())
    }


def eventually(is_so: Callable[[], bool], within_s: float = WITHIN_S) -> None:
    """Wait until ``is_so`` returns true; fail after ``within_s``."""
    deadline_s = time.monotonic() + within_s
    while not is_so():
        assert time.monotonic() < deadline_s
        time.sleep(LOOKS_AGAIN_S)


def flavor(name: str) -> dict[str, Any]:
    """The body of a small write."""
    return {"flavor": {"name": name, "id": name, "ram": 64, "vcpus": 1, "disk": 1}}


def made(service: Started, name: str) -> int:
    """Make a flavor at a process; returns the status."""
    return int(service.call("POST", FLAVORS, json=flavor(name)).status_code)


def is_forwarding(service: Started) -> bool:
    """Whether the next write of a process is forwarded to the leader."""
    before = forwards(service)["answered"]
    made(service, f"probe-{time.monotonic_ns()}")
    return forwards(service)["answered"] > before


@contextmanager
def led(
    folder: Path, kind: str, settings: Mapping[str, str] | None = None, count: int = 2
) -> Iterator[Led]:
    """Run services on one database until the block ends. All followers forward by then."""
    folder.mkdir(exist_ok=True)
    shared = {"auth": "none", "database_is_shared": "true", **UNLIMITED}
    shared["database_url"] = DATABASES[kind](folder)
    with serve_all(folder, count, {**shared, **(settings or {})}) as services:
        eventually(lambda: any(each.leads() for each in services))
        (leader,) = [each for each in services if each.leads()]
        found = Led(leader, [each for each in services if each is not leader])
        for each in found.followers:
            eventually(lambda each=each: is_forwarding(each))  # type: ignore[misc]
        yield found
