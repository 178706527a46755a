"""The size of tables depends on what exists now, not on all that ever existed."""

from __future__ import annotations

import tracemalloc
from collections.abc import Sequence

from innkeeper.domain.ids import HostIndex, ProviderId, ProviderUuid
from innkeeper.snapshot.audit import differences
from innkeeper.snapshot.columns import HostTable, renumber
from innkeeper.snapshot.providers import ProviderTable
from tests.support.tables import Pool, Sketch, add_pools, table_of

RACK, ROW = "rack", "row"
POOLS = (Pool({"DISK_GB": 50}, frozenset({RACK})), Pool({"DISK_GB": 90}, frozenset({ROW})))


def made_of(sets: Sequence[frozenset[str]]) -> HostTable:
    """Hosts in these aggregates, and two pools."""
    hosts = [Sketch(f"h{n}", {"VCPU": 4}, aggregates=each) for n, each in enumerate(sets)]
    return add_pools(table_of(*hosts), *POOLS)


def test_codes_are_about_as_many_as_sets_of_aggregates_in_use() -> None:
    """After thousands of leases, the table is as large as a new table."""
    sets = [frozenset({RACK}) for _ in range(5)]
    table = made_of(sets)
    for lease in range(2_000):
        host = lease % len(sets)
        near = ((RACK,), (ROW,), (RACK, ROW), ())[lease % 4]
        sets[host] = frozenset({f"lease {lease}", *near})
        table.membership_codes[host] = table.pools.code(sets[host])
        renumber(table.pools, table.membership_codes)
        able = table.pools.able("DISK_GB", 60)
        assert able is not None
        assert able.shape[0] <= 2 * len(sets) + 70
        if lease % 100 == 0:
            assert able[table.membership_codes].tolist() == [ROW in each for each in sets]
            assert differences(table, made_of(sets)) == []


def test_codes_that_hosts_use_are_never_given_up() -> None:
    sets = [frozenset({f"lease {n}", RACK if n % 2 else ROW}) for n in range(300)]
    table = made_of(sets)
    assert differences(table, made_of(list(sets))) == []
    renumber(table.pools, table.membership_codes)
    assert differences(table, made_of(sets)) == []
    assert table.pools.code_count == len(sets) + 1


def test_a_host_without_aggregates_has_no_pool_after_renumbering() -> None:
    table = made_of([frozenset(), frozenset({RACK})])
    for lease in range(100):
        table.pools.code(frozenset({f"lease {lease}"}))
    renumber(table.pools, table.membership_codes)
    assert table.membership_codes.tolist() == [0, 1]
    assert table.pools.code_count == 2


def test_sets_of_traits_are_not_remembered_for_ever() -> None:
    table = ProviderTable()
    table.add([(ProviderId(1), ProviderUuid("one")), (ProviderId(2), ProviderUuid("two"))])
    tracemalloc.start()
    try:
        for number in range(10_000):
            table.set_traits(HostIndex(0), frozenset({f"CUSTOM_{number}", "B"}))
            table.set_traits(HostIndex(1), frozenset({"A", "B"}))
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 200_000
    assert table.trait_names == [("B", "CUSTOM_9999"), ("A", "B")]
