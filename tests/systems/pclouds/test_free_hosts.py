"""Which hosts of a pool can be had: empty ones that nobody has closed, if they are tried."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from innkeeper.domain.errors import Conflict, QuotaExceeded, Unavailable
from innkeeper.domain.ids import ConsumerUuid
from innkeeper.domain.pclouds import PcloudHost, SizePolicy
from innkeeper.domain.placement import ConsumerClaim
from innkeeper.domain.slices import Dedicating
from innkeeper.store.queries.placement import names
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.hosts.hosts import ServiceChange
from innkeeper.systems.pclouds import host_flavors, hosts, pclouds
from innkeeper.systems.pclouds.hosts import HostRequest
from innkeeper.systems.placement import claims
from tests.support.clouds import reported
from tests.support.moves import Movers
from tests.support.pcloud_operations import Landlord

NAMES = ("a1", "a2", "a3", "b1")
ATTEMPTS = 2
"""Free hosts that are tried for one that is wanted."""
FEW = Dedicating(quota_pcloud_units=-1, host_allocation_attempts=ATTEMPTS)
SEEDS = range(16)
"""Draws enough to begin with each of the hosts."""
Pooled = tuple[Landlord, str]


@pytest.fixture
def pooled(tmp_path: Path) -> Iterator[Pooled]:
    """A pool with four free hosts, and a pcloud without any."""
    landlord = Landlord(Movers(tmp_path, *map(reported, NAMES)))
    landlord.define("large", 1)
    for name in NAMES:
        landlord.switch_service(name, ServiceChange(is_disabled=True))
        landlord.pool("large", name, by_aggregate=False)
    yield landlord, landlord.create("lab", name="p")
    landlord.movers.judge()
    landlord.movers.close()


def hold(landlord: Landlord, *hostnames: str) -> None:
    """Have somebody hold something of these hosts, as administrators can."""
    providers = [landlord.cloud.host(each).provider_id for each in hostnames]

    def act(tx: Tx) -> None:
        vcpu = names.class_ids(tx)["VCPU"]
        uuid = ConsumerUuid(landlord.cloud.ids.uuid())
        amounts = {each: {vcpu: 1} for each in providers}
        claims.replace(tx, [ConsumerClaim(uuid, "p", "u", amounts, None)], landlord.movers.now)

    landlord.cloud.write(act)


def take(pooled: Pooled, name: str = "one", seed: int = 0) -> str:
    """Take a host, of which few are tried; gives the machine's name."""
    landlord, uuid = pooled
    terms = replace(landlord.terms("lab"), settings=FEW, seed=seed)

    def act(tx: Tx) -> PcloudHost:
        return hosts.allocate(tx, pclouds.get(tx, uuid), HostRequest(name, "large"), terms)

    taken: PcloudHost = landlord.cloud.write(act)
    return taken.hostname


def free(landlord: Landlord) -> int:
    """How many hosts are said to be free."""
    terms = landlord.terms()

    def look(tx: Tx) -> int:
        flavor = host_flavors.get(tx, "large")
        counts = host_flavors.free_counts(tx, [flavor], terms)
        return sum(counts.get(flavor.id, {}).values())

    count: int = landlord.cloud.read(look)
    return count


def test_the_next_one_is_taken_where_one_is_not_empty(pooled: Pooled) -> None:
    landlord, uuid = pooled
    hold(landlord, "a2")
    told: set[str] = set()
    for seed in SEEDS:
        told.add(take(pooled, seed=seed))
        landlord.act_on(uuid, "one", hosts.release)
    assert told == {"a1", "a3", "b1"}


def test_so_many_are_tried_and_no_more(pooled: Pooled) -> None:
    landlord, uuid = pooled
    full = NAMES[:ATTEMPTS]
    hold(landlord, *full)
    told: set[str] = set()
    for seed in SEEDS:
        try:
            hostname = take(pooled, seed=seed)
        except Unavailable as refusal:
            told.add(refusal.message)
        else:
            assert hostname not in full
            landlord.act_on(uuid, "one", hosts.release)
    # Where the draw began with the two that are not empty, the others were not looked at.
    assert told == {
        "None of the hosts of host flavor large that were tried could be taken; "
        "others may be free."
    }


@pytest.mark.parametrize(
    "closed", [ServiceChange(is_disabled=True), ServiceChange(is_forced_down=True)]
)
def test_what_an_administrator_closed_is_not_free(
    pooled: Pooled, closed: ServiceChange
) -> None:
    landlord, _ = pooled
    assert free(landlord) == len(NAMES)
    for name in NAMES[1:]:
        landlord.switch_service(name, closed)
    assert free(landlord) == 1
    assert take(pooled) == NAMES[0]
    assert free(landlord) == 0
    with pytest.raises(Conflict, match="no free host"):
        take(pooled, "two")


def test_one_that_is_not_empty_stays_in_its_pool(pooled: Pooled) -> None:
    landlord, _ = pooled
    hold(landlord, "a1")
    with pytest.raises(Conflict, match="somebody holds some of its resources"):
        landlord.unpool("large", "a1", by_aggregate=False)
    assert free(landlord) == len(NAMES)
    landlord.unpool("large", "a2", by_aggregate=False)


def test_replacing_keeps_to_the_quota(pooled: Pooled) -> None:
    landlord, uuid = pooled
    landlord.set_quota("lab", 3)
    hostname = take(pooled)
    landlord.switch_service(hostname, ServiceChange(is_forced_down=True))

    def replace_it() -> int:
        found: PcloudHost = landlord.act(
            uuid, lambda tx, pcloud, terms: hosts.replace(tx, pcloud, "one", terms)
        )
        return found.units

    landlord.redefine("large", 4, by_aggregate=False)
    with pytest.raises(QuotaExceeded):
        replace_it()
    # As much as the whole quota: the old one's units come back.
    landlord.redefine("large", 3, by_aggregate=False)
    assert replace_it() == 3


@pytest.mark.parametrize("by_aggregate", [False, True])
def test_what_is_declared_down_comes_into_no_pool(
    pooled: Pooled, *, by_aggregate: bool
) -> None:
    landlord, _ = pooled
    landlord.unpool("large", "a1", by_aggregate=False)
    landlord.switch_service("a1", ServiceChange(is_forced_down=True))
    before = landlord.world()
    with pytest.raises(Conflict, match="declared down"):
        landlord.pool("large", "a1", by_aggregate=by_aggregate)
    assert landlord.world() == before
    landlord.switch_service("a1", ServiceChange(is_forced_down=False))
    landlord.pool("large", "a1", by_aggregate=by_aggregate)
    assert free(landlord) == len(NAMES)


def test_what_is_declared_down_is_put_into_no_pcloud(pooled: Pooled) -> None:
    landlord, uuid = pooled
    landlord.switch_service("a1", ServiceChange(is_forced_down=True))
    before = landlord.world()
    with pytest.raises(Conflict, match="declared down"):
        landlord.put_in(landlord.row_of(uuid), "a1")
    assert landlord.world() == before


def test_no_size_policy_takes_what_is_declared_down(pooled: Pooled) -> None:
    landlord, uuid = pooled
    for name in NAMES:
        landlord.switch_service(name, ServiceChange(is_forced_down=True))
    landlord.update(uuid, size=SizePolicy(1, 1, "large"))
    assert landlord.keep_sizes() == 0
    landlord.switch_service("a2", ServiceChange(is_forced_down=False))
    assert landlord.keep_sizes() == 1
    (taken,) = landlord.cloud.read(lambda tx: hosts.page(tx, pclouds.get(tx, uuid)))
    assert taken.hostname == "a2"
