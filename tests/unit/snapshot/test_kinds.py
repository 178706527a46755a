"""Kinds of hosts: a changed table has the same kinds as a new table with the same content."""

from __future__ import annotations

import numpy as np

from innkeeper.domain.ids import ProviderId
from innkeeper.snapshot.columns import HostTable
from innkeeper.snapshot.kinds import Kinds
from tests.support.tables import host, table_of

ALL = slice(None)
NOTHING: frozenset[str] = frozenset()


def there() -> HostTable:
    return table_of(host("a"), host("b", traits=("FAST",)), host("c"))


def is_fresh(table: HostTable) -> bool:
    """Whether a table's kinds equal those of a new computation."""
    mine, new = table.kinds(), Kinds(table)
    return all(
        np.array_equal(mine.unused(asked, ALL), new.unused(asked, ALL))
        for asked in (NOTHING, frozenset({"FAST"}), frozenset({"VCPU", "MEMORY_MB"}))
    )


def test_what_few_have_is_dear_and_what_all_have_is_nothing() -> None:
    assert there().kinds().unused(NOTHING, ALL).tolist() == [0.0, 2 / 3, 0.0]
    assert there().kinds().unused(frozenset({"FAST"}), ALL).tolist() == [0.0, 0.0, 0.0]


def test_edits_are_seen_and_move_the_version_only_if_a_kind_does() -> None:
    table = there()
    before = table.kinds().version
    assert table.kinds().version == before
    table.free["VCPU"][0] -= 1
    table.used["VCPU"][0] += 1
    table.note(0)
    assert table.kinds().version == before
    table.traits["FAST"][0] = True
    table.note(0)
    assert table.kinds().version > before
    assert is_fresh(table)
    table.ensure_trait("NEW")
    table.traits["NEW"][2] = True
    table.note(2)
    assert is_fresh(table)
    table.remove_row(ProviderId(int(table.provider_ids[0])))
    assert is_fresh(table)


def test_each_table_has_its_own() -> None:
    one, other = there(), table_of(host("a", traits=("FAST",)), host("b"))
    assert one.kinds() is one.kinds()
    assert one.kinds() is not other.kinds()
    assert other.kinds().unused(NOTHING, ALL).tolist() == [0.5, 0.0]
    assert is_fresh(one)
    assert is_fresh(other)
