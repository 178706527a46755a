"""Starts zones with many hosts as real programs, links them to a tree, and sends them requests.

Always true: the clients of a tree and of a single zone send the same bodies. Processor times are
those of all threads of a zone's process.
"""

from __future__ import annotations

import http.client
import json
import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.clients import ADMIN, TOKEN, compute_headers
from benchmarks.fleet import FLAVOR_ID, Fleet
from benchmarks.running import ALIVE_WITHOUT_AGENT, Started, filled, started
from benchmarks.served import EMPTY_PATH

COMPUTE = "/compute/v2.1"
ALLOCATIONS_PER_HOST = 9
KEY_BYTES = 32
TIMEOUT_S = 300.0
PAGE = 1_000
SETTINGS = {
    **ALIVE_WITHOUT_AGENT,
    "INNKEEPER_ALLOW_ADMIN_API": "true",
    "INNKEEPER_ENABLE_ZONE_ROUTING": "true",
}
ROOT = "root"


@dataclass(slots=True)
class MeasuredZone:
    """One zone that runs, with one connection of a client."""

    name: str
    service: Started
    connection: http.client.HTTPConnection = field(init=False)

    def __post_init__(self) -> None:
        port = self.service.port
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S)

    @property
    def url(self) -> str:
        """The address of its Compute API."""
        return f"http://127.0.0.1:{self.service.port}{COMPUTE}"

    def call(self, method: str, path: str, body: Any = None, token: str = ADMIN) -> Any:
        """Send one request, which must succeed; returns the body of the answer."""
        headers = {**compute_headers(token), "Content-Type": "application/json"}
        text = None if body is None else json.dumps(body)
        self.connection.request(method, path, text, headers)
        answer = self.connection.getresponse()
        content = answer.read()
        if answer.status >= http.client.BAD_REQUEST:
            raise RuntimeError(f"{self.name}: {method} {path}: {answer.status} {content!r}")
        return json.loads(content) if content else None

    def empty(self) -> None:
        """Send the empty request, which passes through the whole service and does nothing."""
        self.call("POST", "/compute" + EMPTY_PATH, {}, TOKEN)

    def select(self, count: int, token: str = TOKEN) -> Any:
        """Ask for offers for servers; returns the answer."""
        answer = self.call("POST", f"{COMPUTE}/zones/select", _wanted(count), token)
        if len(answer["weights"]) != count:
            raise RuntimeError(f"There are {len(answer['weights'])} offers, not {count}.")
        return answer

    def create(self, count: int) -> str:
        """Boot servers; returns the id of their batch."""
        answer = self.call("POST", f"{COMPUTE}/servers", _wanted(count), TOKEN)
        return str(answer["reservation_id"])

    def servers_of(self, batch_id: str) -> list[str]:
        """Return the ids of the servers of a batch, in all zones of the tree."""
        path = f"{COMPUTE}/servers?limit={PAGE}&reservation_id={batch_id}"
        return [str(each["id"]) for each in self.call("GET", path, token=TOKEN)["servers"]]


def _wanted(count: int) -> dict[str, Any]:
    wanted = {
        "name": "bench",
        "flavorRef": FLAVOR_ID,
        "imageRef": "",
        "networks": "none",
        "min_count": count,
        "max_count": count,
        "return_reservation_id": True,
    }
    return {"server": wanted}


@dataclass(frozen=True, slots=True)
class Shape:
    """The zones of a measured tree, with their numbers of hosts and their parents."""

    name: str
    hosts: Mapping[str, int]
    parents: Mapping[str, str]

    @property
    def levels(self) -> int:
        """The number of levels below the root."""
        return max((len(self.above(name)) for name in self.hosts), default=0)

    def above(self, name: str) -> Sequence[str]:
        """Return the zones above a zone. The nearest comes first, and the root last."""
        found = []
        while name in self.parents:
            name = self.parents[name]
            found.append(name)
        return found


def flat(zones: int, hosts: int) -> Shape:
    """Return a single zone with as many hosts as a tree with so many zones."""
    return Shape("flat", {ROOT: zones * hosts}, {})


def tree(zones: int, hosts: int) -> Shape:
    """Return a root without hosts, and so many child zones with hosts."""
    names = [f"zone-{number}" for number in range(1, zones + 1)]
    return Shape("tree", {**dict.fromkeys(names, hosts), ROOT: 0}, dict.fromkeys(names, ROOT))


def chain(zones: int, hosts: int) -> Shape:
    """Return a root and a zone without hosts, and below this zone so many zones with hosts."""
    names = [f"zone-{number}" for number in range(1, zones + 1)]
    parents = {**dict.fromkeys(names, "middle"), "middle": ROOT}
    return Shape("chain", {**dict.fromkeys(names, hosts), "middle": 0, ROOT: 0}, parents)


@contextmanager
def running(
    directory: Path, shape: Shape, extra: Mapping[str, str] | None = None
) -> Iterator[dict[str, MeasuredZone]]:
    """Run the zones of a tree, filled and linked, until the block ends."""
    with ExitStack() as ends:
        zones: dict[str, MeasuredZone] = {}
        for seed, (name, hosts) in enumerate(shape.hosts.items(), start=2026):
            folder = directory / name
            folder.mkdir(parents=True)
            filled(folder, Fleet(hosts, ALLOCATIONS_PER_HOST * hosts, seed))
            own = {
                **SETTINGS,
                "INNKEEPER_ZONE_NAME": name,
                "INNKEEPER_BUILD_PLAN_ENCRYPTION_KEY": secrets.token_hex(KEY_BYTES),
                **(extra or {}),
            }
            zones[name] = MeasuredZone(name, ends.enter_context(started(folder, own)))
        # A zone is linked before the zone above it, which asks for its capabilities.
        for name in sorted(shape.parents, key=lambda each: -len(shape.above(each))):
            _link(zones[name], zones[shape.parents[name]])
        yield zones


def _link(child: MeasuredZone, parent: MeasuredZone) -> None:
    made = child.call("POST", f"{COMPUTE}/zones/parents", {"zone_parent": {"name": parent.name}})
    wanted = {
        "name": child.name,
        "api_url": child.url,
        "username": parent.name,
        "password": made["zone_parent"]["password"],
    }
    parent.call("POST", f"{COMPUTE}/zones", {"zone": wanted})


def is_active(parent: MeasuredZone, name: str) -> bool:
    """Return whether a zone knows that its child answers."""
    found = parent.call("GET", f"{COMPUTE}/zones/detail")["zones"]
    return bool(next(each for each in found if each["name"] == name)["is_active"])


def wait_inactive(parent: MeasuredZone, name: str, within_s: float) -> None:
    """Wait until a zone knows that its child does not answer."""
    until_s = time.perf_counter() + within_s
    while is_active(parent, name):
        if time.perf_counter() > until_s:
            raise RuntimeError(f"{name} is still active.")
        time.sleep(0.05)
