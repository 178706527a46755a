"""Weighers that compute one host's number return the same number as for all hosts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from innkeeper.domain.errors import PluginFailed
from innkeeper.domain.ids import HostIndex, ProviderId
from innkeeper.domain.placing import RequestSpec
from innkeeper.scheduling.memory import Memories
from innkeeper.scheduling.pipeline import ALL_ROWS, Pipeline, weigh
from innkeeper.scheduling.weighers.free_amounts import FREE_DISK, FREE_MEMORY, FREE_VCPUS
from innkeeper.snapshot.columns import HostTable
from innkeeper.systems.compute.boot.plugins import Guarded

FREE = {"VCPU": [4.0, 7.0, 0.3], "MEMORY_MB": [1024.0, 3.0, 9.0], "DISK_GB": [0.1, 0.0, 2.0]}
WEIGHERS = ((FREE_MEMORY, 1.0), (FREE_VCPUS, -0.7), (FREE_DISK, 0.1))
SPEC = RequestSpec(
    amounts={"VCPU": 1}, project_id="p", user_id="u", now_s=0.0, silence_max_s=1.0, seed=1
)


def table(*, with_pool: bool = False) -> HostTable:
    hosts = HostTable()
    for name in FREE:
        hosts.ensure_class(name)
    hosts.ensure_rows((ProviderId(n + 1), f"h{n}") for n in range(3))
    for name, free in FREE.items():
        hosts.free[name][:] = free
    if with_pool:
        pools = hosts.pools
        pools.add_rows([ProviderId(9)])
        pools.ensure_class("DISK_GB")
        pools.set_capacity("DISK_GB", slice(None), np.array([50.0]))
        pools.aggregates[:] = [frozenset({"rack"})]
        hosts.membership_codes[:] = pools.code(frozenset({"rack"}))
    return hosts


@pytest.mark.parametrize("with_pool", [False, True])
@pytest.mark.parametrize("weigher", [each for each, _ in WEIGHERS])
def test_the_number_of_one_host_is_the_one_in_the_column(weigher: Any, with_pool: bool) -> None:
    hosts = table(with_pool=with_pool)
    column = weigher.column(hosts, SPEC, ALL_ROWS).tolist()
    assert [weigher.number(hosts, SPEC, HostIndex(n)) for n in range(3)] == column


def test_a_host_that_was_edited_alone_has_the_weight_of_a_whole_evaluation() -> None:
    hosts, memories = table(), Memories(Pipeline((), WEIGHERS))
    memories.recall(hosts, SPEC)
    hosts.take(HostIndex(1), {"VCPU": 2, "MEMORY_MB": 1})
    known = memories.recall(hosts, SPEC).weights.tolist()
    afresh = weigh(WEIGHERS, hosts, SPEC, ALL_ROWS)
    assert afresh is not None
    assert known == afresh.tolist()


def test_a_wrong_number_of_a_plug_in_is_its_failure() -> None:
    class Odd:
        NAME, READS, AGGREGATE_KEY = "Odd", (), "odd"

        def number(self, hosts: HostTable, spec: RequestSpec, index: int) -> Any:
            return "many"

    guarded: Any = Guarded("weigher", Odd())
    with pytest.raises(PluginFailed) as raised:
        guarded.number(table(), SPEC, HostIndex(0))
    assert "number returned str" in raised.value.why
