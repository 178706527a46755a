"""The table equals the store after any writes of any process, committed or rolled back."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from innkeeper.domain.amounts import Inventory
from innkeeper.domain.errors import Busy, Refusal
from innkeeper.domain.hosts import HostReport
from innkeeper.domain.ids import ClassId, ConsumerUuid, ProviderUuid, ServerId
from innkeeper.domain.placement import ConsumerClaim
from innkeeper.domain.slices import Scheduling
from innkeeper.engine import batches
from innkeeper.snapshot import loader
from innkeeper.snapshot.audit import differences
from innkeeper.snapshot.columns import HostTable
from innkeeper.store.queries.compute import hosts as host_rows
from innkeeper.store.queries.compute import quota_usages
from innkeeper.store.queries.placement import allocations, names
from innkeeper.store.queries.placement.names import NameKind
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.grouping import aggregates as compute_aggregates
from innkeeper.systems.compute.hosts import hosts
from innkeeper.systems.compute.hosts.hosts import ServiceChange
from innkeeper.systems.compute.servers.servers import (
    Failed,
    fail_builds,
    finish_builds,
    finish_deletes,
)
from innkeeper.systems.placement import (
    aggregates,
    claims,
    classes,
    feed,
    inventories,
    providers,
    reshape,
    traits,
)
from innkeeper.systems.placement.allocations import (
    AllocationUpdate,
    AllocationUpdates,
    write_together,
)
from innkeeper.systems.placement.reshape import ProviderShape
from tests.support.clouds import NOW, Cloud, cloud_in, reported, steps_of
from tests.support.clouds import inventories as inventories_of
from tests.support.failing_commits import FailingCommits

HOSTS = 4
SETS = 2
PLAIN = Scheduling()
COUNTING = Scheduling(default_host_filters=(*PLAIN.default_host_filters, "NumInstancesFilter"))
"""With these settings, the table counts servers, and so rereads everything that other processes
claim. With other settings, it takes over their claims from the feed."""
SET_ID = "80000000-0000-4000-8000-00000000000"
CLASSES = ("VCPU", "MEMORY_MB", "CUSTOM_GOLD")
TRAITS = ("HW_CPU_X86_AVX", "CUSTOM_A")
AGGREGATES = tuple(f"60000000-0000-4000-8000-00000000000{n}" for n in range(2))
CONSUMERS = tuple(ConsumerUuid(f"70000000-0000-4000-8000-00000000000{n}") for n in range(3))
YEAR_LATER = NOW.replace(year=NOW.year + 1)
ORPHAN = "INSERT INTO flavor_projects (flavor_id, project_id) VALUES (987654, 'x')"


class Poison(Exception):
    """An unexpected error in the middle of a step."""


class Deed(NamedTuple):
    """One action, with the values drawn for it."""

    verb: str
    host: int
    amounts: dict[str, int]
    marks: frozenset[str]
    flag: bool
    number: int


class Batch(NamedTuple):
    """Some deeds in one commit of one of the two processes, and the commit's fate."""

    is_far: bool
    deeds: list[Deed]
    fate: str


def provider_uuid(number: int) -> ProviderUuid:
    """The uuid of the provider of the host with this number, which need not exist."""
    return ProviderUuid(f"40000000-0000-4000-8000-00000000000{number}")


def report(cloud: Cloud, tx: Tx, deed: Deed) -> None:
    """An agent reports a new or changed host."""
    made = reported(
        f"h{deed.host}",
        vcpus=4 + deed.number,
        provider_uuid=provider_uuid(deed.host),
        traits=deed.marks & set(TRAITS),
        availability_zone="north" if deed.flag else None,
        capabilities={"cores": deed.number} if deed.number else {},
        inventories=inventories_of(CUSTOM_GOLD=3),
    )
    cloud.report_in(tx, made)


def close(_: Cloud, tx: Tx, deed: Deed) -> None:
    """An operator disables a host, forces it down, or opens it again."""
    change = ServiceChange(is_disabled=deed.flag, is_forced_down=deed.number > 4)
    hosts.change_service(tx, hosts.by_name(tx, f"h{deed.host}"), change, NOW)


def remove(_: Cloud, tx: Tx, deed: Deed) -> None:
    """A host is removed; its provider stays."""
    hosts.remove_service(tx, hosts.by_name(tx, f"h{deed.host}"), NOW)


def delete_provider(_: Cloud, tx: Tx, deed: Deed) -> None:
    """A provider is deleted if it belongs to no host."""
    providers.delete(tx, provider_uuid(deed.host), NOW)


def rename(_: Cloud, tx: Tx, deed: Deed) -> None:
    """A provider gets another name; its host keeps its own."""
    providers.rename(tx, provider_uuid(deed.host), f"p{deed.number}", NOW)


def resize(_: Cloud, tx: Tx, deed: Deed) -> None:
    """An operator changes a provider's inventory: more, less, other unit rules, or none."""
    uuid = provider_uuid(deed.host)
    seen = inventories.listing(tx, uuid).generation
    has = {
        name: Inventory(total, step_size=1 + deed.flag, allocation_ratio=1.5)
        for name, total in deed.amounts.items()
    }
    inventories.replace(tx, uuid, seen, has, NOW)


def mark(_: Cloud, tx: Tx, deed: Deed) -> None:
    """An operator changes traits and memberships."""
    uuid = provider_uuid(deed.host)
    traits.replace(tx, uuid, None, deed.marks & set(TRAITS), NOW)
    seen = providers.get(tx, uuid).generation if deed.flag else None
    aggregates.replace(tx, uuid, seen, deed.marks & set(AGGREGATES), NOW)


def hold(_: Cloud, tx: Tx, deed: Deed) -> None:
    """A consumer that is no server claims amounts of one or two providers."""
    consumer = CONSUMERS[deed.number % len(CONSUMERS)]
    present = allocations.consumers_by_uuid(tx, [consumer]).get(consumer)
    ids = {row.name: ClassId(row.id) for row in names.listing(tx, NameKind.CLASS)}
    amounts = {ids[name]: n for name, n in deed.amounts.items() if name in ids}
    of = {deed.host, (deed.host + 1) % HOSTS} if deed.flag else {deed.host}
    wanted = ConsumerClaim(
        uuid=consumer,
        project_id="project",
        user_id="user",
        amounts={providers.get(tx, provider_uuid(each)).id: amounts for each in of},
        seen=None if present is None else present.generation,
    )
    claims.replace(tx, [wanted], NOW)


def rebuild(_: Cloud, tx: Tx, deed: Deed) -> None:
    """A reshape: a host shrinks or grows, and a consumer's allocations move to the next host."""
    near, far = (provider_uuid(each % HOSTS) for each in (deed.host, deed.host + 1))
    shapes: dict[str, ProviderShape] = {}
    for uuid in [near] if deed.flag else [far, near]:
        found = inventories.listing(tx, uuid)
        has = {line.class_name: line.inventory for line in found.lines}
        has |= {name: Inventory(n + deed.number) for name, n in deed.amounts.items()}
        shapes[uuid] = ProviderShape(found.generation, has)
    update = update_of(deed._replace(host=(deed.host + 1) % HOSTS, flag=False))
    reshape.replace(tx, shapes, [update], NOW)


def update_of(deed: Deed) -> AllocationUpdate:
    """The allocations that a consumer asks for."""
    resources: dict[str, Any] = {} if deed.flag else {provider_uuid(deed.host): deed.amounts}
    return AllocationUpdate(
        CONSUMERS[deed.number % len(CONSUMERS)], resources, asks_no_generation=True
    )


def release(_: Cloud, tx: Tx, deed: Deed) -> None:
    """A consumer releases everything."""
    claims.release(tx, [CONSUMERS[deed.number % len(CONSUMERS)]], NOW)


def end_server(_: Cloud, tx: Tx, deed: Deed) -> None:
    """A server is deleted, or its build fails."""
    name = f"h{deed.host}"
    there = sorted(ServerId(row.uuid) for row in host_rows.servers_on(tx, [name]))
    ending = there[: 1 + deed.number]
    if deed.flag:
        finish_deletes(tx, ending, NOW)
    else:
        fail_builds(tx, [Failed(uuid, name, "It did not work.") for uuid in ending], NOW)


def finish_server(_: Cloud, tx: Tx, deed: Deed) -> None:
    """Builds are finished; nothing else changes on their hosts."""
    name = f"h{deed.host}"
    there = host_rows.servers_on(tx, [name])
    finish_builds(tx, {ServerId(row.uuid): name for row in there}, NOW)


def gather(_: Cloud, tx: Tx, deed: Deed) -> None:
    """A host enters or leaves an aggregate."""
    move = compute_aggregates.remove_host if deed.flag else compute_aggregates.add_host
    move(tx, 1 + deed.number % SETS, f"h{deed.host}", NOW)


def describe(_: Cloud, tx: Tx, deed: Deed) -> None:
    """An aggregate gets other metadata, such as an availability zone."""
    wanted = {"key": str(deed.number)}
    if deed.flag:
        wanted["availability_zone"] = "south"
    compute_aggregates.set_metadata(tx, 1 + deed.number % SETS, wanted, NOW)


def rename_class(_: Cloud, tx: Tx, deed: Deed) -> None:
    """A custom class is renamed, or gets its old name back."""
    gold, silver = (
        ("CUSTOM_SILVER", "CUSTOM_GOLD") if deed.flag else ("CUSTOM_GOLD", "CUSTOM_SILVER")
    )
    classes.rename(tx, gold, silver, NOW)


def cut(_: Cloud, tx: Tx, deed: Deed) -> None:
    """The worker prunes old changes of the feed, and sometimes all changes."""
    feed.prune(tx, YEAR_LATER if deed.flag else NOW)


WRITES: dict[str, Callable[[Cloud, Tx, Deed], None]] = {
    each.__name__: each
    for each in (
        report,
        close,
        remove,
        delete_provider,
        rename,
        resize,
        mark,
        hold,
        rebuild,
        release,
        end_server,
        finish_server,
        gather,
        describe,
        rename_class,
        cut,
    )
}
BOOTS = ("boot", "boot_there", "explain")
DEEDS = st.builds(
    Deed,
    verb=st.sampled_from([*WRITES, *BOOTS, "replace", "replace"]),
    host=st.integers(0, HOSTS - 1),
    amounts=st.dictionaries(st.sampled_from(CLASSES), st.integers(1, 6), min_size=1),
    marks=st.frozensets(st.sampled_from([*TRAITS, *AGGREGATES])),
    flag=st.booleans(),
    number=st.integers(0, 8),
)
BATCHES = st.builds(
    Batch,
    is_far=st.booleans(),
    deeds=st.lists(DEEDS, min_size=1, max_size=5),
    fate=st.sampled_from(["fine", "fine", "lost", "lost", "poison", "orphan"]),
)


def step_of(cloud: Cloud, deed: Deed) -> tuple[str, Any]:
    """A deed as a step of the writer thread."""
    if deed.verb in WRITES:
        return "write", lambda tx: WRITES[deed.verb](cloud, tx, deed)
    if deed.verb == "replace":
        return "together", (write_together, AllocationUpdates([update_of(deed)], NOW))
    more: dict[str, Any] = {"availability_zone": "north"} if deed.flag else {}
    if deed.verb == "boot_there":
        more = {"forced_host": f"h{deed.host}", "is_admin": True}
    request = cloud.request(1 + deed.number // 3, 1 + deed.number, **more)
    return ("explain" if deed.verb == "explain" else "boot"), request


def break_off(tx: Tx) -> None:
    """A step that writes a little and then fails with an unexpected error."""
    quota_usages.add_usage(tx, "poisoned", 1, 1, 1)
    raise Poison


def break_the_commit(tx: Tx) -> None:
    """A step whose commit is rejected after everything was written."""
    tx.exec_driver_sql("PRAGMA defer_foreign_keys=ON")
    tx.exec_driver_sql(ORPHAN)


FATES: dict[str, list[tuple[str, Any]]] = {
    "fine": [],
    "poison": [("write", break_off)],
    "orphan": [("write", break_the_commit)],
}


def carry_out(cloud: Cloud, batch: Batch) -> None:
    """Carry out a batch; the table is right at once, or after a reread if a step failed."""
    steps = [step_of(cloud, each) for each in batch.deeds]
    if batch.fate == "lost":
        lose(cloud, steps)
        return
    broken = FATES[batch.fate]
    answers = cloud.carry_out(*steps, *broken)
    for answer in answers[: len(steps)]:
        assert not isinstance(answer, Exception) or isinstance(answer, Refusal)
    for answer in answers[len(steps) :]:
        assert isinstance(answer, Exception)
        # The failed step was repeated last and alone, and its changes stay in the table until then.
        cloud.reread()
    with cloud.store.read() as tx:
        assert differences(cloud.table, _anew(cloud, tx)) == []


def _anew(cloud: Cloud, tx: Tx) -> HostTable:
    return loader.load_all(tx, with_servers=cloud.table.knows_servers)


def lose(cloud: Cloud, steps: list[tuple[str, Any]]) -> None:
    """Carry out a batch whose commit fails, and do not read the table yet: the next batch begins
    with what this batch left in the table."""
    batch = steps_of(steps)
    answers = batches.carry_out(FailingCommits(cloud.store), cloud.executor, batch)
    assert all(isinstance(each, Busy) for each in answers)


def _make_set(number: int, tx: Tx) -> None:
    compute_aggregates.create(tx, f"{SET_ID}{number}", f"set-{number}", None, NOW)


def cloud_with_sets(folder: Path, *reports: HostReport, scheduling: Scheduling) -> Cloud:
    """A cloud with some empty aggregates."""
    cloud = cloud_in(folder, *reports, scheduling=scheduling)
    for number in range(SETS):
        cloud.write(partial(_make_set, number))
    return cloud


def deed(verb: str, host: int = 0, **more: Any) -> Deed:
    """A deed for an example."""
    drawn: dict[str, Any] = {
        "amounts": {"VCPU": 1},
        "marks": frozenset(),
        "flag": False,
        "number": 0,
        **more,
    }
    return Deed(verb, host, **drawn)


# Hypothesis shrinks a failure before it shows it, which takes longer than finding it.
@pytest.mark.timeout(600)
@settings(max_examples=80, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(st.sampled_from([PLAIN, COUNTING]), st.lists(BATCHES, min_size=2, max_size=10))
@example(
    COUNTING,
    [Batch(False, [deed("boot_there", number=2)], "orphan"), Batch(True, [deed("boot")], "fine")],
)
@example(
    COUNTING,
    [
        Batch(False, [deed("report", number=3), deed("report", 1)], "fine"),
        Batch(True, [deed("report", number=5), deed("cut", flag=True)], "orphan"),
        Batch(True, [deed("boot", number=8)], "fine"),
    ],
)
@example(
    COUNTING,
    [
        Batch(False, [deed("remove"), deed("delete_provider"), deed("report")], "poison"),
        Batch(True, [deed("boot_there", 0), deed("remove", 1), deed("report", 3)], "fine"),
        Batch(False, [deed("mark", marks=frozenset(AGGREGATES)), deed("explain")], "fine"),
    ],
)
@example(
    PLAIN,
    [
        Batch(False, [deed("hold"), deed("rebuild", number=3), deed("boot")], "fine"),
        Batch(True, [deed("rebuild", flag=True), deed("boot_there", 1)], "fine"),
        Batch(False, [deed("rebuild", 1, number=6), deed("boot")], "lost"),
    ],
)
# The table takes over others' claims, loses them with a failed commit, and takes them over again.
@example(
    PLAIN,
    [
        Batch(False, [deed("boot_there", number=2), deed("hold", number=1)], "fine"),
        Batch(True, [deed("boot_there", number=2), deed("hold")], "orphan"),
        Batch(False, [deed("hold", number=1, amounts={"VCPU": 2}), deed("boot")], "fine"),
        Batch(True, [deed("boot")], "fine"),
    ],
)
def test_the_table_is_what_the_store_is(scheduling: Scheduling, batches: list[Batch]) -> None:
    with tempfile.TemporaryDirectory() as folder, capture_logs():
        near = cloud_with_sets(Path(folder), scheduling=scheduling)
        near.carry_out(*(step_of(near, deed("report", n)) for n in range(HOSTS - 1)))
        near.write(lambda tx: traits.ensure(tx, "CUSTOM_A", NOW))
        far = near.beside()
        try:
            for batch in batches:
                carry_out(far if batch.is_far else near, batch)
            near.reread()
            far.reread()
            with near.store.read() as tx:
                now = _anew(near, tx)
            assert differences(near.table, now) == []
            assert differences(far.table, now) == []
        finally:
            near.close()
            far.close()


BEFORE: dict[str, list[Deed]] = {
    "remove": [deed("end_server", flag=True)],
    # The provider stays when its host is removed, because a consumer still holds something of it.
    "delete_provider": [deed("hold"), deed("remove"), deed("release")],
    "rebuild": [deed("report", 1)],
}


@pytest.mark.parametrize("verb", WRITES)
def test_every_deed_can_succeed(verb: str, tmp_path: Path) -> None:
    """Otherwise the property above could hold only because no deed succeeds."""
    cloud = cloud_with_sets(
        tmp_path, reported("h0", provider_uuid=provider_uuid(0)), scheduling=COUNTING
    )
    cloud.write(lambda tx: classes.ensure(tx, "CUSTOM_GOLD", NOW))
    if verb in ("remove", "end_server", "finish_server"):
        cloud.boot(cloud.request())
    amounts = {"VCPU": 4, "MEMORY_MB": 4096, "DISK_GB": 99, "CUSTOM_GOLD": 5}
    last = deed(verb, amounts=amounts if verb == "resize" else {"VCPU": 1})
    for each in (*BEFORE.get(verb, ()), last):
        (answer,) = cloud.carry_out(step_of(cloud, each))
        assert answer is None
    with cloud.store.read() as tx:
        assert differences(cloud.table, _anew(cloud, tx)) == []
    cloud.close()
