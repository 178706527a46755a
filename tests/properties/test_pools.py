"""Whatever happens to pools, hosts and servers, no pool is oversold, and the table is right."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from innkeeper.domain.amounts import Inventory
from innkeeper.domain.errors import Busy, NotFound, Refusal
from innkeeper.domain.hosts import HostReport
from innkeeper.domain.ids import ClassId, ConsumerUuid, ProviderUuid
from innkeeper.domain.placement import SHARES, ConsumerClaim
from innkeeper.engine import batches
from innkeeper.snapshot import loader
from innkeeper.snapshot.audit import differences
from innkeeper.store.queries.compute import hosts as host_rows
from innkeeper.store.queries.compute import quota_usages
from innkeeper.store.queries.placement import allocations, capacity, names
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute import audit as compute_audit
from innkeeper.systems.compute.hosts import hosts
from innkeeper.systems.compute.servers.servers import Failed, fail_builds, finish_deletes
from innkeeper.systems.placement import audit as placement_audit
from innkeeper.systems.placement import claims, inventories, providers, traits
from tests.support.clouds import NOW, Cloud, cloud_in, steps_of
from tests.support.clouds import inventories as inventories_of
from tests.support.failing_commits import FailingCommits
from tests.support.pools import RACK, ROW, add_pool, join, pool_uuid, resize

HOSTS, POOLS = 3, 2
CHILD = "45000000-0000-4000-8000-000000000000"
OTHER = ConsumerUuid("70000000-0000-4000-8000-000000000000")


class Poison(Exception):
    """An unexpected error in the middle of a step."""


class Deed(NamedTuple):
    """One action, with the values drawn for it."""

    verb: str
    which: int
    aggregates: frozenset[str]
    flag: bool
    number: int


class Batch(NamedTuple):
    """Some deeds in one commit of one of the two processes, and the commit's fate."""

    is_far: bool
    deeds: list[Deed]
    fate: str = "fine"


def host_uuid(number: int) -> ProviderUuid:
    """The uuid of a host's provider."""
    return ProviderUuid(f"40000000-0000-4000-8000-{number % HOSTS:012}")


def someone(deed: Deed) -> str:
    """A provider: a host, a pool, or the one that is put below or above hosts."""
    everybody = (*map(host_uuid, range(HOSTS)), *map(pool_uuid, range(POOLS)), CHILD)
    return everybody[(deed.which + deed.number) % len(everybody)]


def report(cloud: Cloud, tx: Tx, deed: Deed) -> None:
    """A host appears or changes: with disks of its own, or without."""
    has = {"VCPU": 8, "MEMORY_MB": 8192, **({"DISK_GB": 10 * deed.number} if deed.flag else {})}
    totals = {name: total for name, total in has.items() if total}
    name = f"h{deed.which % HOSTS}"
    made = HostReport(name, inventories_of(**totals), provider_uuid=host_uuid(deed.which))
    cloud.report_in(tx, made)


def remove(_: Cloud, tx: Tx, deed: Deed) -> None:
    """A host is removed."""
    hosts.remove_service(tx, hosts.by_name(tx, f"h{deed.which % HOSTS}"), NOW)


def come(_: Cloud, tx: Tx, deed: Deed) -> None:
    """A pool is added."""
    has = {"DISK_GB": Inventory(10 * deed.number + 10, step_size=1 + 4 * deed.flag)}
    add_pool(tx, deed.which % POOLS, has, deed.aggregates)


def go(_: Cloud, tx: Tx, deed: Deed) -> None:
    """A provider is deleted."""
    providers.delete(tx, someone(deed), NOW)


def share(_: Cloud, tx: Tx, deed: Deed) -> None:
    """A provider begins or ceases to share; hosts may have the trait, too."""
    traits.replace(tx, someone(deed), None, {SHARES} if deed.flag else set(), NOW)


def gather(_: Cloud, tx: Tx, deed: Deed) -> None:
    """A provider gets other aggregates."""
    join(tx, someone(deed), *deed.aggregates)


def grow(_: Cloud, tx: Tx, deed: Deed) -> None:
    """A pool grows, or gets another step size; it never shrinks."""
    uuid = pool_uuid(deed.which % POOLS)
    (line,) = inventories.get(tx, uuid, "DISK_GB").lines
    has = Inventory(line.inventory.total + deed.number, step_size=1 + 4 * deed.flag)
    resize(tx, uuid, DISK_GB=has)


def hang(_: Cloud, tx: Tx, deed: Deed) -> None:
    """A further provider is put below a host, or a host below that provider."""
    try:
        providers.get(tx, CHILD)
    except NotFound:
        providers.create(tx, CHILD, "child", None, now=NOW)
    if deed.flag:
        providers.hang(tx, CHILD, host_uuid(deed.which) if deed.number else None, NOW)
    else:
        providers.hang(tx, host_uuid(deed.which), CHILD if deed.number else None, NOW)


def nest(_: Cloud, tx: Tx, deed: Deed) -> None:
    """A host is put below another host, or becomes a root."""
    above = host_uuid(deed.which + 1 + deed.number % (HOSTS - 1))
    providers.hang(tx, host_uuid(deed.which), above if deed.flag else None, NOW)


def hold(_: Cloud, tx: Tx, deed: Deed) -> None:
    """A consumer that is no server claims an amount of a pool."""
    present = allocations.consumers_by_uuid(tx, [OTHER]).get(OTHER)
    class_id = ClassId(names.class_ids(tx)["DISK_GB"])
    pool = providers.get(tx, pool_uuid(deed.which % POOLS)).id
    amounts = {pool: {class_id: deed.number}} if deed.number else {}
    seen = None if present is None else present.generation
    claims.replace(tx, [ConsumerClaim(OTHER, "project", "user", amounts, seen)], NOW)


def end(_: Cloud, tx: Tx, deed: Deed) -> None:
    """Servers are deleted, or their builds fail."""
    name = f"h{deed.which % HOSTS}"
    ending = [row.uuid for row in host_rows.servers_on(tx, [name])][: deed.number]
    if deed.flag:
        finish_deletes(tx, ending, NOW)
    else:
        fail_builds(tx, [Failed(uuid, name, "It did not work.") for uuid in ending], NOW)


WRITES: Mapping[str, Callable[[Cloud, Tx, Deed], None]] = {
    each.__name__: each
    for each in (report, remove, come, go, share, gather, grow, hang, nest, hold, end)
}
VERBS = ("boot", "boot", "boot", "boot_there", "explain", *WRITES)
DEEDS = st.builds(
    Deed,
    verb=st.sampled_from(VERBS),
    which=st.integers(0, HOSTS * POOLS - 1),
    aggregates=st.sampled_from([(RACK,), (RACK,), (ROW,), (RACK, ROW), ()]).map(frozenset),
    flag=st.booleans(),
    number=st.integers(0, 6),
)
BATCHES = st.builds(
    Batch,
    is_far=st.booleans(),
    deeds=st.lists(DEEDS, min_size=1, max_size=4),
    fate=st.sampled_from(["fine", "fine", "fine", "lost", "poison"]),
)


def step_of(cloud: Cloud, deed: Deed) -> tuple[str, Any]:
    """A deed as a step of the writer thread."""
    if deed.verb in WRITES:
        return "write", lambda tx: WRITES[deed.verb](cloud, tx, deed)
    host_request: dict[str, Any] = {}
    if deed.verb == "boot_there":
        host_request = {"forced_host": f"h{deed.which % HOSTS}", "is_admin": True}
    request = cloud.request(1 + deed.number // 2, 1 + deed.number, **host_request)
    return ("explain" if deed.verb == "explain" else "boot"), request


def break_off(tx: Tx) -> None:
    """A step that writes a little and then fails with an unexpected error."""
    quota_usages.add_usage(tx, "poisoned", 1, 1, 1)
    raise Poison


def carry_out(cloud: Cloud, batch: Batch) -> None:
    """Carry out a batch; only refusals and the planted error may result."""
    steps = [step_of(cloud, each) for each in batch.deeds]
    if batch.fate == "lost":
        # The table is not reread, so the next batch begins with what this batch left in it.
        lost = steps_of(steps)
        answers = batches.carry_out(FailingCommits(cloud.store), cloud.executor, lost)
        assert all(isinstance(each, Busy) for each in answers)
        return
    accident = [("write", break_off)] if batch.fate == "poison" else []
    answers = cloud.carry_out(*steps, *accident)
    for answer in answers[: len(steps)]:
        assert not isinstance(answer, Exception) or isinstance(answer, Refusal), answer
    cloud.reread()


def sold_once(cloud: Cloud) -> None:
    """Check that no pool is over capacity, because no pool ever shrank."""
    with cloud.store.read() as tx:
        ids = {}
        for number in range(POOLS):
            try:
                ids[number] = providers.get(tx, pool_uuid(number)).id
            except NotFound:
                continue
        for view in capacity.views(tx, list(ids.values())).values():
            for class_id, held in view.used.items():
                assert held <= view.inventories[class_id].capacity_units


def judge(cloud: Cloud) -> None:
    """Judge like :meth:`Cloud.judge`, but allow hosts that lost disks in use.

    The audit recognizes such a loss by its time, but here everything happens at one moment.
    """
    with cloud.store.read() as tx:
        assert differences(cloud.table, loader.load_all(tx)) == []
        found = [*placement_audit.findings(tx), *compute_audit.findings(tx)]
    assert [
        each
        for each in found
        if each.rule != "the allocations of a provider do not exceed its capacity"
    ] == []


def start(cloud: Cloud) -> None:
    """Three hosts and two pools, in one aggregate."""

    def make(tx: Tx) -> None:
        for number in range(HOSTS):
            report(cloud, tx, Deed("report", number, frozenset(), False, 0))
            join(tx, host_uuid(number), RACK)
        for number in range(POOLS):
            add_pool(tx, number, {"DISK_GB": Inventory(40)})

    cloud.write(make)


NOWHERE: frozenset[str] = frozenset()
"""The aggregates of a provider that is in none."""


def deed(verb: str, which: int = 0, **more: Any) -> Deed:
    """A deed for an example."""
    drawn: dict[str, Any] = {"aggregates": frozenset({RACK}), "flag": False, "number": 0}
    return Deed(verb, which, **(drawn | more))


# Hypothesis shrinks a failure before it shows it, which takes longer than finding it.
@pytest.mark.timeout(600)
@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(st.lists(BATCHES, min_size=2, max_size=8))
@example(
    [
        Batch(False, [deed("boot", number=6), deed("boot", number=6)]),
        Batch(True, [deed("boot", number=6), deed("end", 1, number=6, flag=True)]),
        Batch(False, [deed("boot", number=6)], "poison"),
    ]
)
@example(
    [
        Batch(False, [deed("hang", 1, number=1), deed("go", 2, number=3)]),
        Batch(True, [deed("share", 3), deed("boot", number=2)]),
        Batch(False, [deed("share", 4), deed("boot_there", 1)]),
        Batch(True, [deed("share", 3, flag=True), deed("boot", number=6)]),
    ]
)
# Hosts below hosts: if any provider of a tree joins or leaves an aggregate, all its hosts do.
@example(
    [
        Batch(False, [deed("nest", 1, number=1, flag=True)]),
        Batch(False, [deed("gather", each, aggregates=NOWHERE) for each in (0, 1)]),
        Batch(True, [deed("gather", 0)]),
    ]
)
@example(
    [
        Batch(False, [deed("nest", 1, number=1, flag=True)]),
        Batch(False, [deed("gather", each, aggregates=NOWHERE) for each in (0, 1)]),
        Batch(True, [deed("gather", 1)]),
    ]
)
@example(
    [
        Batch(False, [deed("nest", 1, number=1, flag=True)]),
        Batch(False, [deed("gather", 0, aggregates=NOWHERE)]),
        Batch(True, [deed("gather", 1, aggregates=NOWHERE)]),
    ]
)
@example(
    [
        Batch(False, [deed("gather", each, aggregates=NOWHERE) for each in (1, 2)]),
        Batch(False, [deed("nest", 1, number=1, flag=True)]),
        Batch(True, [deed("nest", 2, number=1, flag=True), deed("nest", 1)]),
    ]
)
def test_no_pool_is_oversold_and_the_table_is_what_the_store_is(batches: list[Batch]) -> None:
    with tempfile.TemporaryDirectory() as folder, capture_logs():
        near = cloud_in(Path(folder))
        start(near)
        far = near.beside()
        try:
            for batch in batches:
                cloud = far if batch.is_far else near
                carry_out(cloud, batch)
                sold_once(cloud)
            for cloud in (near, far):
                cloud.boot(cloud.request())
                cloud.reread()
                judge(cloud)
        finally:
            near.close()
            far.close()
