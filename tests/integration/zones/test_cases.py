"""Cases that a tree of zones must get right.

The numbers are those of a list of the original design's faults. The cases:

- 1: ``test_selects.py``: offers of all zones in order, with only a weight and an entry.
- 2: ``test_selects.py``: offset and scale; with the numbers of the list: here.
- 3: ``test_selects.py``: two levels make 67 of 7.
- 4: ``test_entries.py``, ``test_hostile_parents.py``; bytes: ``tests/properties/test_sealing.py``.
- 5: here: random keys.
- 6: ``test_boundaries.py``: all bytes that cross a boundary; ``test_selects.py``: entries.
- 7: ``test_creates.py``: all, or as many as fit, with one reservation id.
- 8: ``test_creates.py``: counts and quotas; more at least than at most is refused.
- 9: ``test_creates.py``: lists by reservation id, for the project only.
- 10: ``test_creates.py``: reservation ids that clients choose.
- 11: ``test_dead_children.py``; polls: ``tests/integration/test_zone_upkeep.py``.
- 12: ``test_creates.py``: one child is asked; ``test_dead_children.py``: 503 and 404.
- 13: ``test_selects.py``: ids that name nothing, and bodies of the wrong form.
- 14: ``test_selects.py``: a cycle and a diamond.
- 15: here: hosts that are silent, seen from the parent.
- 16: ``test_dead_children.py``: a restarted zone; ``tests/integration/test_capabilities.py``.
- 17: here: hosts of two zones are filled, or used evenly; ``tests/unit/scheduling`` has one zone.
- 18: ``tests/unit/scheduling/test_preference_weighers.py``: 1.5, 2.5, 1.5; unknown names:
  ``tests/unit/systems/compute/boot/test_drivers.py``.
- 19: ``tests/scenarios/compute/choosing.yaml``, ``tests/unit/systems/compute/grouping``.
- 20: ``test_creates.py``: the full body reaches the grandchild.
- 21: ``test_entries.py``: two parents and the last places; ``test_creates.py``: parallel boots.
- 22: ``test_selects.py``: offset 0, and scales that are refused.
- 23: ``test_entries.py``: keys of the parent and of the child change.
- 24: ``test_selects.py``: no password in an answer, and only administrators;
  ``tests/scenarios/zones/child_zones.yaml``.
- 25: ``test_selects.py``: one request for a thousand servers.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from innkeeper.domain import key_rings
from innkeeper.domain.ids import ServerId
from innkeeper.domain.key_rings import KEY_BYTES, NONCE_BYTES
from innkeeper.domain.zone_tree import ChildZone
from innkeeper.domain.zones import Destination, EntryScope
from innkeeper.systems.zones import merging, sealing
from innkeeper.systems.zones.sealing import FORM, HEAD_BYTES, NotOurs, Sealer
from innkeeper.wiring import now
from tests.support.running import Running, running

pytestmark = pytest.mark.timeout(300)

COMPUTE = "/compute/v2.1"
VERSION = {"openstack-api-version": "compute 2.100"}
PLENTY = 1_000_000
GB = 1024
FLAVOR = {"id": "gb", "name": "gb", "ram": GB, "vcpus": 1, "disk": 1}
SIZES = {"root": {"middling": 20}, "kid": {"small": 10, "large": 30}}
"""The memory of the hosts of each zone, in GB."""
DOWN_S = 20.0
"""Hosts count as down so soon because the clocks of two zones may differ by half a minute."""
KEYS_TRIED = 100_000


@dataclass(slots=True)
class Clock:
    """The clock of a zone. A test may move it."""

    moved: timedelta = field(default_factory=timedelta)

    def __call__(self) -> datetime:
        return now() + self.moved


@dataclass(slots=True)
class Pair:
    """A root and its child."""

    root: Running
    kid: Running
    agents: Mapping[str, str]

    def plan(self, count: int) -> list[float]:
        """Return the weights of a plan at the root."""
        answer = ask(self.root, "POST", "/zones/select", {"server": wanted(count)})
        return [each["weight"] for each in answer["weights"]]

    def counts(self, count: int) -> Counter[str]:
        """Boot servers at the root, and return how many each host got."""
        found: Counter[str] = Counter()
        ask(self.root, "POST", "/servers", {"server": wanted(count)})
        for zone in (self.root, self.kid):
            for name in SIZES["root"] | SIZES["kid"]:
                shown = ask(zone, "GET", f"/servers/detail?all_tenants=1&host={name}")
                found[name] += len(shown["servers"])
        return +found


def ask(zone: Running, method: str, path: str, body: Any = None) -> Any:
    """Send a request that must succeed."""
    more = {} if body is None else {"json": body}
    answer = zone.call(method, COMPUTE + path, "admin", headers=VERSION, **more)
    assert answer.is_success, answer.text
    return answer.json() if answer.content else None


def wanted(count: int) -> dict[str, Any]:
    """Return the fields of servers."""
    some = {"name": "s", "flavorRef": "gb", "networks": "none", "imageRef": ""}
    return {**some, "min_count": count, "max_count": count}


def report(zone: Running, hosts: Mapping[str, int]) -> str:
    """Report hosts with this memory. Return the id of their agent."""
    agent = ask(zone, "POST", "/os-agents", {"agent": {"name": "rack", "driver": "fake"}})
    uuid = str(agent["agent"]["id"])
    rows = [
        {
            "name": name,
            "inventories": {
                "VCPU": {"total": PLENTY},
                "MEMORY_MB": {"total": size * GB},
                "DISK_GB": {"total": PLENTY},
            },
        }
        for name, size in hosts.items()
    ]
    ask(zone, "PUT", f"/os-agents/{uuid}/hosts", {"hosts": rows})
    return uuid


@contextmanager
def pair(folder: Path, clock: Clock | None = None, *, spread: bool) -> Iterator[Pair]:
    """Run a root and its child, which fill hosts or spread servers, until the block ends."""
    settings = {
        "allow_admin_api": True,
        "enable_zone_routing": True,
        "zone_poll_interval_s": 3600,
        "quota_ram": -1,
        "quota_cores": -1,
        "quota_instances": -1,
        "default_host_weighers": ["FillFirstWeigher"],
        "weigher_multipliers": {"FillFirstWeigher": -1.0 if spread else 1.0},
    }
    (folder / "root").mkdir()
    (folder / "kid").mkdir()
    of_root = {"zone_name": "root", "build_plan_encryption_key": ["ab" * 16], **settings}
    of_kid = {"zone_name": "kid", "build_plan_encryption_key": ["cd" * 16], **settings}
    if clock is not None:
        of_kid |= {"clock": clock, "service_down_time_s": DOWN_S}
    with running(folder / "root", **of_root) as root, running(folder / "kid", **of_kid) as kid:
        agents = {"root": report(root, SIZES["root"]), "kid": report(kid, SIZES["kid"])}
        made = ask(kid, "POST", "/zones/parents", {"zone_parent": {"name": "up"}})["zone_parent"]
        zone = {"name": "kid", "api_url": kid.url + COMPUTE, "username": "up"}
        ask(root, "POST", "/zones", {"zone": {**zone, "password": made["password"]}})
        ask(root, "POST", "/flavors", {"flavor": FLAVOR})
        yield Pair(root, kid, agents)


CHILD = ChildZone(1, "", "kid", "", "", 0.0, 1.0, True, False, now(), now())
TOLD = {
    (0.0, 1.0): (1, 111, 112, 113),
    (1000.0, 1.0): (120, 2, 122, 123),
    (0.0, 1000.0): (130, 131, 132, 3),
}
"""The weights that children with these offsets and scales answer, not sorted."""
MERGED = [1, 111, 112, 113, 1002, 1120, 1122, 1123, 3000, 130_000, 131_000, 132_000]


def test_case_2_offset_and_scale_put_children_in_order() -> None:
    drawn = random.Random(2)  # noqa: S311
    sealer = Sealer("kid", [drawn.randbytes(KEY_BYTES)], 60.0)
    lists = []
    for (offset, scale), told in TOLD.items():
        child = replace(CHILD, weight_offset=offset, weight_scale=scale)
        rows = [
            {"weight": weight, "blob": sealed(sealer, drawn), "item": f"{offset}-{scale}-{weight}"}
            for weight in sorted(told)
        ]
        answer = msgspec.json.encode({"weights": rows})
        lists.append(merging.offers_of_child(child, answer, len(rows), 0)[0])
    assert [-each.weight for each in merging.merged([], lists, len(MERGED))] == MERGED


SCOPE = EntryScope("project", "digest")


def sealed(sealer: Sealer, drawn: random.Random) -> str:
    """Return an entry of a plan."""
    place = Destination(ServerId("4c2b1d7e-0000-4000-8000-000000000001"), "host-1", "p")
    return sealer.seal(place, SCOPE, drawn.randbytes(NONCE_BYTES), now())


def test_case_5_no_random_key_opens_an_entry() -> None:
    """The entry names each tried key, because another key's id is refused earlier."""
    drawn = random.Random(5)  # noqa: S311
    right = drawn.randbytes(KEY_BYTES)
    entry = sealed(Sealer("east", [right], 60.0), drawn)
    box = key_rings.unpadded_bytes_of(entry)[HEAD_BYTES:]
    opened = []
    for key in (right, *(drawn.randbytes(KEY_BYTES) for _ in range(KEYS_TRIED))):
        named = key_rings.unpadded_text_of(FORM + sealing.key_id(key) + box)
        with suppress(NotOurs):
            Sealer("east", [key], 60.0).open(named, SCOPE)
            opened.append(key)
    assert opened == [right]


def test_case_15_silent_hosts_of_a_child_are_not_chosen_nor_told(tmp_path: Path) -> None:
    own, below = (sum(SIZES[name].values()) for name in ("root", "kid"))
    clock = Clock()
    with pair(tmp_path, clock, spread=False) as made:
        assert len(made.plan(own + below)) == own + below
        assert hosts_of(made.kid) == len(SIZES["kid"])
        # No request reaches the child in the meantime.
        clock.moved = timedelta(seconds=DOWN_S + 1)
        assert len(made.plan(own + below)) == own
        assert hosts_of(made.kid) == 0
        ask(made.kid, "POST", f"/os-agents/{made.agents['kid']}/heartbeat")
        assert len(made.plan(own + below)) == own + below
        assert hosts_of(made.kid) == len(SIZES["kid"])


def hosts_of(zone: Running) -> int:
    """Return the number of hosts that a zone tells its parents."""
    return int(ask(zone, "GET", "/zones/info")["zone"]["capabilities"]["hosts"])


def test_case_17_servers_fill_one_host_of_the_tree(tmp_path: Path) -> None:
    with pair(tmp_path, spread=False) as made:
        assert len(made.plan(4)) == 4
        assert made.counts(4) == {"small": 4}
        assert made.counts(8) == {"small": 10, "middling": 2}


def test_case_17_servers_spread_over_the_hosts_of_the_tree(tmp_path: Path) -> None:
    with pair(tmp_path, spread=True) as made:
        assert made.counts(1) == {"large": 1}
        assert made.counts(2) == {"large": 2, "middling": 1}
        assert made.counts(3) == {"large": 3, "middling": 2, "small": 1}
