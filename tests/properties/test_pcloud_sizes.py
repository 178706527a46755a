"""Whatever servers come and go, a pcloud with a size policy grows or shrinks, and then rests.

Between two acts of users it never does both, so it does not oscillate. When it rests, a host
has room for one more of each of its servers, unless the pcloud may have no further host.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from innkeeper.domain.compute import Booted
from innkeeper.domain.ids import ServerId
from tests.support.sized_pclouds import OWNER, Kept

HOSTS = 4
HAS: dict[str, Any] = {"vcpus": 8, "memory_mb": 8192, "disk_gb": 100}
FLAVORS = {
    "tiny": {"vcpus": 1, "memory_mb": 512, "disk_gb": 5},
    "wide": {"vcpus": 5, "memory_mb": 1024, "disk_gb": 5},
    "deep": {"vcpus": 1, "memory_mb": 5120, "disk_gb": 5},
    "long": {"vcpus": 1, "memory_mb": 512, "disk_gb": 70},
    "giant": HAS,
}


class Act(NamedTuple):
    """A server of a flavor is booted; or, without one, the server with a number is deleted."""

    flavor: str | None
    number: int = 0


acts = st.lists(
    st.one_of(
        st.sampled_from(sorted(FLAVORS)).map(Act),
        st.integers(0, 9).map(lambda number: Act(None, number)),
    ),
    min_size=3,
    max_size=9,
)


@contextmanager
def pcloud(hosts_min: int, vcpus_min: int) -> Iterator[Kept]:
    folder = Path(tempfile.mkdtemp(prefix="innkeeper-sizes-"))
    try:
        kept = Kept(folder, HOSTS, **HAS)
        for name, facts in FLAVORS.items():
            kept.movers.cloud.add_flavor(name, **facts)
        kept.wants(hosts_min, HOSTS, vcpus_min=vcpus_min, idle_s=0)
        yield kept
        kept.movers.judge()
        kept.movers.close()
    finally:
        shutil.rmtree(folder)


def rest(kept: Kept) -> list[int]:
    """Run the size task until nothing changes; return the changes of the number of hosts."""
    changes, before = [], len(kept.hosts())
    while kept.turn():
        now = len(kept.hosts())
        changes.append(now - before)
        before = now
        assert len(changes) <= HOSTS
    return changes


def boot(kept: Kept, flavor: str, servers: dict[ServerId, tuple[str, str]]) -> None:
    """Boot a server; if there was room, note its flavor and its machine."""
    request = kept.movers.cloud.request(
        now=kept.movers.now, project_id=OWNER, flavor_id=flavor, hints={"pcloud": kept.uuid}
    )
    (booted,) = kept.movers.cloud.boot(request)
    assert isinstance(booted, Booted)
    if booted.fault is None:
        (uuid,) = booted.server_ids
        kept.movers.tell("build", uuid)
        servers[uuid] = (flavor, kept.movers.server(uuid).host or "")


def has_room(machine: str, servers: Sequence[tuple[str, str]], vcpus_min: int) -> bool:
    """The rule in plain Python, for one host."""
    there = [FLAVORS[flavor] for flavor, host in servers if host == machine]
    if not there:
        return True
    least = dict.fromkeys(HAS, 0) | {"vcpus": vcpus_min}
    for flavor, _ in servers:
        least = {name: max(amount, FLAVORS[flavor][name]) for name, amount in least.items()}
    return all(
        total - sum(each[name] for each in there) >= least[name] for name, total in HAS.items()
    )


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(acts=acts, hosts_min=st.integers(0, 2), vcpus_min=st.sampled_from((1, 4, 9)))
@example(acts=[Act("deep"), Act("tiny"), Act("wide"), Act(None, 0)], hosts_min=1, vcpus_min=1)
@example(acts=[Act("giant"), Act("giant"), Act(None, 0)], hosts_min=1, vcpus_min=9)
def test_a_pcloud_grows_or_shrinks_and_then_rests(
    acts: list[Act], hosts_min: int, vcpus_min: int
) -> None:
    with pcloud(hosts_min, vcpus_min) as kept:
        servers: dict[ServerId, tuple[str, str]] = {}
        assert rest(kept) == [1] * max(1, hosts_min)
        for act in acts:
            if act.flavor is not None:
                boot(kept, act.flavor, servers)
            elif servers:
                uuid = list(servers)[act.number % len(servers)]
                kept.delete(uuid)
                del servers[uuid]
            changes = rest(kept)
            assert len(set(changes)) <= 1, f"{changes} after {act}"
            machines = [each.hostname for each in kept.hosts()]
            roomy = [each for each in machines if has_room(each, list(servers.values()), vcpus_min)]
            assert roomy or len(machines) == HOSTS
            # Above the minimum, at most one empty host is kept for future servers.
            empty = set(machines) - {host for _, host in servers.values()}
            assert len(empty) <= 1 or len(machines) == hosts_min
