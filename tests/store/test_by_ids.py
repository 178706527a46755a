"""Queries for many ids: more ids than one statement accepts, no ids, and each group once."""

from __future__ import annotations

import pytest
import sqlalchemy as sa

from innkeeper.store import by_ids
from innkeeper.store.by_ids import IDS, IDS_PER_QUERY
from innkeeper.store.prepared import PreparedForIds
from innkeeper.store.queries.placement import names
from innkeeper.store.tables.placement import traits
from innkeeper.store.transactions import Store

FOUND = sa.select(traits.c.id).where(traits.c.id.in_(IDS))


def test_more_ids_than_fit_into_a_statement(store: Store) -> None:
    with store.read() as tx:
        there = set(names.trait_ids(tx).values())
        found = by_ids.rows(tx, FOUND, range(5 * IDS_PER_QUERY))
        assert len(found) == len(there)
        assert {row_id for (row_id,) in found} == there


def test_no_ids_need_no_query(store: Store) -> None:
    with store.read() as tx:
        assert by_ids.rows(tx, FOUND, []) == []
        assert names.trait_ids(tx, []) == {}


@pytest.mark.parametrize("more", [-1, 0, 1])
def test_every_id_is_in_one_group(more: int) -> None:
    count = 2 * IDS_PER_QUERY + more
    groups = list(by_ids.parts(iter(range(count))))
    assert [each for group in groups for each in group] == list(range(count))
    assert max(map(len, groups)) == IDS_PER_QUERY
    assert min(map(len, groups)) > 0


@pytest.mark.parametrize("count", [0, 1, 2, 3, 5, 8, 100, IDS_PER_QUERY + 3])
def test_a_prepared_query_finds_the_same(store: Store, count: int) -> None:
    prepared = PreparedForIds(FOUND)
    with store.read() as tx:
        for ids in (range(count), range(40, 40 + count)):
            assert prepared.rows(tx, ids) == by_ids.rows(tx, FOUND, ids)


def test_a_prepared_query_counts_nothing_twice(store: Store) -> None:
    """Lists are padded with ids that they already contain."""
    count = PreparedForIds(sa.select(sa.func.count()).where(traits.c.id.in_(IDS)))
    with store.read() as tx:
        assert count.rows(tx, [1, 2, 3]) == [(3,)]
