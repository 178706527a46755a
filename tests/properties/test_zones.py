"""Whatever happens: hosts are in one zone, servers stay in their zone, and host tables agree."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from innkeeper.domain.errors import Refusal
from innkeeper.domain.grouping import ZONE_KEY
from innkeeper.domain.hosts import HostReport
from innkeeper.store.queries.compute import servers as server_rows
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.grouping import aggregates
from innkeeper.systems.compute.hosts import hosts
from innkeeper.systems.compute.servers import servers
from innkeeper.systems.placement import aggregates as placement_aggregates
from tests.support.clouds import NOW, Cloud, cloud_in, reported

HOSTS = ("h1", "h2")
ZONES = ("east", "west", "nova")
FIRST = ("east", "east", "west", None)
"""The zones of the aggregates that are there in the beginning."""


class Deed(NamedTuple):
    """One action, with the values drawn for it."""

    verb: str
    host: str
    aggregate: int
    zone: str | None
    is_far: bool


def report(cloud: Cloud, tx: Tx, deed: Deed) -> None:
    """An agent reports its host, and perhaps the host's zone."""
    told: HostReport = reported(deed.host, availability_zone=deed.zone)
    cloud.report_in(tx, told)


def create(cloud: Cloud, tx: Tx, deed: Deed) -> None:
    """An aggregate is created, with a zone or without."""
    uuid = cloud.ids.uuid()
    aggregates.create(tx, uuid, uuid, deed.zone, NOW)


def join(cloud: Cloud, tx: Tx, deed: Deed) -> None:
    """A host is put in."""
    aggregates.add_host(tx, deed.aggregate, deed.host, NOW)


def leave(cloud: Cloud, tx: Tx, deed: Deed) -> None:
    """A host is taken out."""
    aggregates.remove_host(tx, deed.aggregate, deed.host, NOW)


def describe(cloud: Cloud, tx: Tx, deed: Deed) -> None:
    """An aggregate gets a zone, or other metadata."""
    key = {"rack": None} if deed.zone is None else {ZONE_KEY: deed.zone, "rack": deed.host}
    aggregates.set_metadata(tx, deed.aggregate, key, NOW)


def delete(cloud: Cloud, tx: Tx, deed: Deed) -> None:
    """An aggregate is deleted."""
    aggregates.delete(tx, deed.aggregate, NOW)


def vanish(cloud: Cloud, tx: Tx, deed: Deed) -> None:
    """A host is removed."""
    hosts.remove_service(tx, hosts.by_name(tx, deed.host), NOW)


def empty(cloud: Cloud, tx: Tx, deed: Deed) -> None:
    """The servers of a host are deleted."""
    there = [uuid for uuid, _ in hosts.servers_on(tx, [deed.host]).get(deed.host, ())]
    servers.finish_deletes(tx, [each.uuid for each in server_rows.alive(tx, there)], NOW)


DOERS = (report, create, join, leave, describe, delete, vanish, empty)
WRITES: dict[str, Callable[[Cloud, Tx, Deed], None]] = {each.__name__: each for each in DOERS}
BOOT = "boot"
DEEDS = st.builds(
    Deed,
    # These actions are frequent, because the others need their results.
    verb=st.sampled_from([*WRITES, BOOT, BOOT, "join", "join", "describe", "leave"]),
    host=st.sampled_from(HOSTS),
    aggregate=st.integers(1, len(FIRST)),
    zone=st.sampled_from([None, *ZONES]),
    is_far=st.booleans(),
)


def carry_out(cloud: Cloud, deed: Deed) -> None:
    """A refusal is no unexpected error, and changes nothing."""
    if deed.verb == BOOT:
        cloud.boot(cloud.request(availability_zone=deed.zone))
        return
    with suppress(Refusal):
        cloud.write(lambda tx: WRITES[deed.verb](cloud, tx, deed))


def places(cloud: Cloud) -> dict[str, tuple[str, str]]:
    """Every server's host and zone, and the zone that the host's agent reported."""

    def look(tx: Tx) -> dict[str, tuple[str, str]]:
        found = {each.name: each for each in hosts.page(tx)}
        on_them = hosts.servers_on(tx, found)
        return {
            uuid: (found[name].availability_zone, found[name].reported_zone)
            for name, there in on_them.items()
            for uuid, _ in there
        }

    seen: dict[str, tuple[str, str]] = cloud.read(look)
    return seen


def demand_mirrored(cloud: Cloud) -> None:
    """Placement has exactly the memberships that the aggregates have."""

    def look(tx: Tx) -> None:
        for host in hosts.page(tx):
            named = {each.uuid for each in aggregates.listing(tx) if host.name in each.hosts}
            assert set(placement_aggregates.of_provider(tx, host.provider_uuid).aggregates) == named

    cloud.read(look)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(DEEDS, min_size=5, max_size=20))
def test_zones_are_right_whatever_happens(deeds: list[Deed]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        near = cloud_in(Path(folder), *(reported(name) for name in HOSTS))
        for zone in FIRST:
            carry_out(near, Deed("create", "", 0, zone, is_far=False))
        far = near.beside()
        for deed in deeds:
            before = places(near)
            carry_out(far if deed.is_far else near, deed)
            after = places(near)
            for uuid in before.keys() & after.keys():
                # Only the agent may move a host with servers to another zone.
                is_agents_word = before[uuid][1] != after[uuid][1]
                assert before[uuid][0] == after[uuid][0] or is_agents_word
            demand_mirrored(near)
        for cloud in (near, far):
            cloud.reread()
            cloud.judge()
            cloud.close()
