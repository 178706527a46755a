"""The hosts of a pool that can be allocated: empty and enabled hosts, among those tried."""

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
from tests.support.pcloud_operator import PcloudOperator

NAMES = ("a1", "a2", "a3", "b1")
ATTEMPTS = 2
"""Free hosts that are tried per allocation."""
FEW = Dedicating(quota_pcloud_units=-1, host_allocation_attempts=ATTEMPTS)
SEEDS = range(16)
"""Enough seeds for the draw to begin with each host at least once."""
Pooled = tuple[PcloudOperator, str]


@pytest.fixture
def pooled(tmp_path: Path) -> Iterator[Pooled]:
    """A pool with four free hosts, and a pcloud without any."""
    operator = PcloudOperator(Movers(tmp_path, *map(reported, NAMES)))
    operator.define("large", 1)
    for name in NAMES:
        operator.switch_service(name, ServiceChange(is_disabled=True))
        operator.pool("large", name, by_aggregate=False)
    yield operator, operator.create("lab", name="p")
    operator.movers.judge()
    operator.movers.close()


def hold(operator: PcloudOperator, *hostnames: str) -> None:
    """Let a consumer hold something of these hosts, as administrators can."""
    providers = [operator.cloud.host(each).provider_id for each in hostnames]

    def act(tx: Tx) -> None:
        vcpu = names.class_ids(tx)["VCPU"]
        uuid = ConsumerUuid(operator.cloud.ids.uuid())
        amounts = {each: {vcpu: 1} for each in providers}
        claims.replace(tx, [ConsumerClaim(uuid, "p", "u", amounts, None)], operator.movers.now)

    operator.cloud.write(act)


def take(pooled: Pooled, name: str = "one", seed: int = 0) -> str:
    """Allocate a host with few attempts; return the machine's name."""
    operator, uuid = pooled
    context = replace(operator.context("lab"), settings=FEW, seed=seed)

    def act(tx: Tx) -> PcloudHost:
        return hosts.allocate(tx, pclouds.get(tx, uuid), HostRequest(name, "large"), context)

    taken: PcloudHost = operator.cloud.write(act)
    return taken.hostname


def free(operator: PcloudOperator) -> int:
    """The reported number of free hosts."""
    context = operator.context()

    def look(tx: Tx) -> int:
        flavor = host_flavors.get(tx, "large")
        counts = host_flavors.free_counts(tx, [flavor], context)
        return sum(counts.get(flavor.id, {}).values())

    count: int = operator.cloud.read(look)
    return count


def test_a_host_that_is_not_empty_is_skipped(pooled: Pooled) -> None:
    operator, uuid = pooled
    hold(operator, "a2")
    told: set[str] = set()
    for seed in SEEDS:
        told.add(take(pooled, seed=seed))
        operator.act_on(uuid, "one", hosts.release)
    assert told == {"a1", "a3", "b1"}


def test_the_number_of_tried_hosts_is_bounded(pooled: Pooled) -> None:
    operator, uuid = pooled
    full = NAMES[:ATTEMPTS]
    hold(operator, *full)
    told: set[str] = set()
    for seed in SEEDS:
        try:
            hostname = take(pooled, seed=seed)
        except Unavailable as refusal:
            told.add(refusal.message)
        else:
            assert hostname not in full
            operator.act_on(uuid, "one", hosts.release)
    # If the draw began with the two hosts that are not empty, the other hosts were not tried.
    assert told == {
        "None of the hosts of host flavor large that were tried could be allocated. "
        "Try again, because other hosts may be free."
    }


@pytest.mark.parametrize(
    "closed", [ServiceChange(is_disabled=True), ServiceChange(is_forced_down=True)]
)
def test_a_disabled_host_is_not_free(pooled: Pooled, closed: ServiceChange) -> None:
    operator, _ = pooled
    assert free(operator) == len(NAMES)
    for name in NAMES[1:]:
        operator.switch_service(name, closed)
    assert free(operator) == 1
    assert take(pooled) == NAMES[0]
    assert free(operator) == 0
    with pytest.raises(Conflict, match="no free host"):
        take(pooled, "two")


def test_a_host_that_is_not_empty_stays_in_its_pool(pooled: Pooled) -> None:
    operator, _ = pooled
    hold(operator, "a1")
    with pytest.raises(Conflict, match="some of its resources are allocated"):
        operator.unpool("large", "a1", by_aggregate=False)
    assert free(operator) == len(NAMES)
    operator.unpool("large", "a2", by_aggregate=False)


def test_replacing_respects_the_quota(pooled: Pooled) -> None:
    operator, uuid = pooled
    operator.set_quota("lab", 3)
    hostname = take(pooled)
    operator.switch_service(hostname, ServiceChange(is_forced_down=True))

    def replace_it() -> int:
        found: PcloudHost = operator.act(
            uuid, lambda tx, pcloud, context: hosts.replace(tx, pcloud, "one", context)
        )
        return found.units

    operator.redefine("large", 4, by_aggregate=False)
    with pytest.raises(QuotaExceeded):
        replace_it()
    # The quota suffices, because the old host's units are returned.
    operator.redefine("large", 3, by_aggregate=False)
    assert replace_it() == 3


@pytest.mark.parametrize("by_aggregate", [False, True])
def test_a_host_declared_down_cannot_join_a_pool(pooled: Pooled, *, by_aggregate: bool) -> None:
    operator, _ = pooled
    operator.unpool("large", "a1", by_aggregate=False)
    operator.switch_service("a1", ServiceChange(is_forced_down=True))
    before = operator.world()
    with pytest.raises(Conflict, match="declared down"):
        operator.pool("large", "a1", by_aggregate=by_aggregate)
    assert operator.world() == before
    operator.switch_service("a1", ServiceChange(is_forced_down=False))
    operator.pool("large", "a1", by_aggregate=by_aggregate)
    assert free(operator) == len(NAMES)


def test_a_host_declared_down_cannot_join_a_pcloud(pooled: Pooled) -> None:
    operator, uuid = pooled
    operator.switch_service("a1", ServiceChange(is_forced_down=True))
    before = operator.world()
    with pytest.raises(Conflict, match="declared down"):
        operator.put_in(operator.row_of(uuid), "a1")
    assert operator.world() == before


def test_a_size_policy_skips_hosts_declared_down(pooled: Pooled) -> None:
    operator, uuid = pooled
    for name in NAMES:
        operator.switch_service(name, ServiceChange(is_forced_down=True))
    operator.update(uuid, size=SizePolicy(1, 1, "large"))
    assert operator.keep_sizes() == 0
    operator.switch_service("a2", ServiceChange(is_forced_down=False))
    assert operator.keep_sizes() == 1
    (taken,) = operator.cloud.read(lambda tx: hosts.page(tx, pclouds.get(tx, uuid)))
    assert taken.hostname == "a2"
