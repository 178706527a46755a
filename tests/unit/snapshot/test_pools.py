"""The pool table: lending, amounts, and reported differences."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from innkeeper.domain.ids import HostIndex, ProviderId, ProviderUuid
from innkeeper.snapshot.audit import differences
from innkeeper.snapshot.columns import HostTable
from tests.support.tables import POOL_IDS, Pool, Sketch, add_pools, host, table_of

A, B = frozenset("a"), frozenset("b")
ALL = slice(None)


def table() -> HostTable:
    """Hosts with disks of their own, with one pool, with two, and with none; and two pools."""
    hosts = (
        host("own", aggregates=A | B),
        Sketch("one", {"VCPU": 4}, aggregates=A),
        Sketch("two", {"VCPU": 4}, aggregates=A | B),
        Sketch("none", {"VCPU": 4}),
        Sketch("closed", {"VCPU": 4, "DISK_GB": -10}, used={"DISK_GB": 10}, aggregates=A),
    )
    pools = (
        Pool({"DISK_GB": 50}, A),
        Pool({"DISK_GB": 100, "CUSTOM_GOLD": 2}, B, units={"DISK_GB": (20, 100, 20)}),
    )
    return add_pools(table_of(*hosts), *pools)


def where(made: HostTable, name: str, amount: int) -> set[str]:
    """The hosts to which a pool can give this amount."""
    mask = made.lent(name, amount, ALL)
    assert mask is not None
    return {host for host, lends in zip(made.names, mask, strict=True) if lends}


def test_pools_lend_to_hosts_of_their_aggregates_that_have_none_themselves() -> None:
    assert where(table(), "DISK_GB", 40) == {"one", "two", "closed"}
    assert where(table(), "DISK_GB", 60) == {"two"}
    assert where(table(), "DISK_GB", 101) == set()
    # The second pool has a step of 20.
    assert where(table(), "DISK_GB", 51) == set()
    assert where(table(), "CUSTOM_GOLD", 2) == {"own", "two"}


def test_a_class_without_a_pool_is_ignored() -> None:
    assert table().lent("VCPU", 1, ALL) is None
    assert table().lent("CUSTOM_NONE", 1, ALL) is None
    assert table_of(host("h", aggregates=A)).lent("DISK_GB", 1, ALL) is None


def test_what_is_left_is_what_the_next_server_can_have() -> None:
    assert table().left("DISK_GB", ALL).tolist() == [500.0, 50.0, 100.0, 0.0, 50.0]
    assert table().left("VCPU", slice(1, 2)).tolist() == [4.0]


def test_the_pool_that_has_most_left_is_the_best_of_those_that_give_the_amount() -> None:
    made = table()
    both = int(made.membership_codes[2])
    assert made.pools.best("DISK_GB", 40, both) == [1]
    assert made.pools.best("DISK_GB", 41, both) == [0]
    assert made.pools.best("DISK_GB", 99, both) == []
    made.pools.take(HostIndex(1), {"DISK_GB": 50})
    assert made.pools.best("DISK_GB", 40, both) == [0, 1]
    assert made.pools.best("DISK_GB", 40, 0) == []


def test_a_set_of_aggregates_that_comes_later_is_served_as_well() -> None:
    made = table()
    assert where(made, "CUSTOM_GOLD", 1) == {"own", "two"}
    made.membership_codes[3] = made.pools.code(frozenset("bc"))
    assert where(made, "CUSTOM_GOLD", 1) == {"own", "two", "none"}


def test_a_pool_that_goes_leaves_the_other_where_it_is() -> None:
    made = table()
    assert where(made, "DISK_GB", 40) == {"one", "two", "closed"}
    made.pools.remove_row(ProviderId(POOL_IDS))
    made.pools.regroup()
    assert where(made, "DISK_GB", 40) == {"two"}
    assert made.pools.serving(int(made.membership_codes[0])) == {ProviderId(POOL_IDS + 1)}


def test_claims_move_hosts_and_pools() -> None:
    made = table()
    seen = [ProviderId(1), ProviderId(POOL_IDS)]
    made.expect_claim(seen)
    assert made.shows(ProviderId(POOL_IDS), 2)
    assert not made.shows(ProviderId(POOL_IDS), 3)
    assert not made.shows(ProviderId(77), 0)
    made.expect_no_claim(seen)
    assert not made.shows(ProviderId(1), 2)
    assert differences(made, table()) == []


CHANGES: list[tuple[Callable[[HostTable], object], str]] = [
    (lambda t: t.pools.generations.__setitem__(0, 5), "Pool 1000: "),
    (lambda t: t.pools.free["DISK_GB"].__setitem__(0, 5), "Pool 1000: "),
    (lambda t: t.pools.used["CUSTOM_GOLD"].__setitem__(1, 5), "Pool 1001: "),
    (lambda t: t.pools.step_sizes["DISK_GB"].__setitem__(1, 5), "Pool 1001: "),
    (lambda t: t.pools.uuids.__setitem__(0, ProviderUuid("x")), "Pool 1000: "),
    (lambda t: t.pools.remove_row(ProviderId(1001)), "Pool 1001: {}, not {"),
    (lambda t: t.membership_codes.__setitem__(1, 0), "one: is served by [], not [1000]."),
    (
        lambda t: t.membership_codes.__setitem__(3, t.pools.code(B)),
        "none: is served by [1001], not [].",
    ),
]


@pytest.mark.parametrize(("change", "told"), CHANGES)
def test_every_difference_is_reported(change: Callable[[HostTable], object], told: str) -> None:
    mine = table()
    change(mine)
    found = differences(mine, table())
    assert [line for line in found if line.startswith(told)]


def test_codes_that_mean_the_same_are_the_same() -> None:
    """Aggregates without pools make no difference, and neither does the order of codes."""
    mine = table()
    mine.membership_codes[1] = mine.pools.code(frozenset("az"))
    assert differences(mine, table()) == []
