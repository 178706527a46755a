"""Prepared statements fail as all others do."""

from __future__ import annotations

import pytest
import sqlalchemy as sa

from innkeeper.store.prepared import Prepared
from innkeeper.store.tables.placement import consumers, traits
from innkeeper.store.transactions import Store
from tests.support.clouds import NOW

ADD_TRAITS = Prepared(traits.insert())
TRAIT = {"name": "CUSTOM_TWICE", "created_at": NOW, "updated_at": NOW}


def test_a_broken_rule_is_sqlalchemys_error(store: Store) -> None:
    with pytest.raises(sa.exc.IntegrityError) as raised, store.write() as tx:
        ADD_TRAITS.run(tx, [TRAIT, TRAIT])
    assert "CUSTOM_TWICE" not in str(raised.value)
    with store.read() as tx:
        found = sa.select(sa.func.count()).where(traits.c.name == "CUSTOM_TWICE")
        assert tx.execute(found).scalar() == 0


def test_a_missing_column_is_sqlalchemys_error(store: Store) -> None:
    wrong = Prepared(
        sa.select(sa.literal_column("no_such_column")).where(
            consumers.c.uuid == sa.bindparam("uuid")
        )
    )
    with pytest.raises(sa.exc.DBAPIError), store.engines.reading.connect() as tx, tx.begin():
        wrong.run(tx, [{"uuid": "x"}])


def test_moments_are_written_as_any_other_statement_writes_them(store: Store) -> None:
    with store.write() as tx:
        ADD_TRAITS.run(tx, [TRAIT, {**TRAIT, "name": "CUSTOM_OTHER"}])
    with store.read() as tx:
        found = sa.select(traits.c.created_at).where(traits.c.name.like("CUSTOM%"))
        assert tx.execute(found).scalars().all() == [NOW, NOW]
