"""Prepared statements write, read and fail as all other statements do."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pytest
import sqlalchemy as sa

from innkeeper.store.by_ids import IDS
from innkeeper.store.prepared import FEW, Prepared, PreparedForIds
from innkeeper.store.tables.compute import flavors
from innkeeper.store.tables.placement import consumers, traits
from innkeeper.store.transactions import Store
from tests.support.clouds import NOW

ADD_TRAITS = Prepared(traits.insert())
TRAIT = {"name": "CUSTOM_TWICE", "created_at": NOW, "updated_at": NOW}
FLAVOR = {
    "flavor_id": "1",
    "name": "a",
    "vcpus": 1,
    "memory_mb": 1,
    "disk_gb": 1,
    "ephemeral_gb": 0,
    "swap_mb": 0,
    "rxtx_factor": 1.0,
    "is_public": True,
    "is_disabled": False,
    "extra_specs": {"hw:cpu": "1"},
    "created_at": NOW,
    "updated_at": NOW,
}


def test_a_constraint_violation_is_sqlalchemys_error(store: Store) -> None:
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


def test_a_statement_may_have_constants(store: Store) -> None:
    either = sa.or_(traits.c.name == "CUSTOM_TWICE", traits.c.name == "CUSTOM_OTHER")
    until = traits.c.created_at <= sa.bindparam("now")
    prepared = Prepared(sa.select(traits.c.name).where(either, until).order_by(traits.c.name))
    with store.write() as tx:
        ADD_TRAITS.run(tx, [TRAIT, {**TRAIT, "name": "CUSTOM_OTHER"}])
        found = [tuple(row) for row in prepared.rows(tx, {"now": NOW})]
    assert found == [("CUSTOM_OTHER",), ("CUSTOM_TWICE",)]


def test_values_are_read_as_any_other_statement_reads_them(store: Store) -> None:
    query = sa.select(
        flavors.c.name, flavors.c.is_public, flavors.c.extra_specs, flavors.c.created_at
    )
    with store.write() as tx:
        Prepared(flavors.insert()).run(tx, [FLAVOR, {**FLAVOR, "flavor_id": "2", "name": "b"}])
    with store.read() as tx:
        plain = [tuple(row) for row in tx.execute(query.where(flavors.c.name == "a"))]
        assert plain == [("a", True, {"hw:cpu": "1"}, NOW)]
        one = Prepared(query.where(flavors.c.name == sa.bindparam("wanted")))
        assert one.rows(tx, {"wanted": "a"}) == plain
        many = PreparedForIds(query.where(flavors.c.name.in_(IDS)))
        assert [row for row in many.rows(tx, ["a", "b", "c"]) if row[0] == "a"] == plain


@pytest.mark.parametrize("nothing", [None, {}, [], {"a": None}, [[]], False, 0, ""])
def test_empty_json_is_written_as_any_other_statement_writes_it(store: Store, nothing: Any) -> None:
    with store.write() as tx:
        Prepared(flavors.insert()).run(tx, [{**FLAVOR, "extra_specs": nothing}])
        other = {**FLAVOR, "flavor_id": "2", "name": "b", "extra_specs": nothing}
        tx.execute(flavors.insert(), other)
    with store.read() as tx:
        text = sa.select(sa.cast(flavors.c.extra_specs, sa.Text))
        prepared, plain = tx.execute(text).scalars()
        assert prepared == plain


def test_few_rows_and_many_are_converted_alike(store: Store) -> None:
    rows = [
        {**FLAVOR, "flavor_id": str(n), "name": f"f{n}", "extra_specs": {"n": str(n)}}
        for n in range(FEW + 3)
    ]
    query = sa.select(flavors.c.extra_specs, flavors.c.created_at, flavors.c.is_public)
    of_name = PreparedForIds(query.where(flavors.c.name.in_(IDS)))
    with store.write() as tx:
        Prepared(flavors.insert()).run(tx, rows[:1])
        Prepared(flavors.insert()).run(tx, rows[1:])
        found = [row for each in rows for row in of_name.rows(tx, [each["name"]])]
        together = of_name.rows(tx, [each["name"] for each in rows])
    expected = [(each["extra_specs"], NOW, True) for each in rows]
    assert found == expected
    assert sorted(together, key=str)[: FEW + 3] == sorted(expected, key=str)


@dataclass(frozen=True)
class NewTrait:
    name: str
    created_at: datetime
    updated_at: datetime


def test_records_are_written_as_mappings_with_their_fields_are(store: Store) -> None:
    names = [f"CUSTOM_{number}" for number in range(FEW + 1)]
    add = Prepared(traits.insert())
    with store.write() as tx:
        assert add.run_records(tx, [NewTrait(names[0], NOW, NOW)]) == 1
        add.run_records(tx, [NewTrait(each, NOW, NOW) for each in names[1:]])
        add.run(tx, [TRAIT])
    with store.read() as tx:
        found = sa.select(traits.c.name, traits.c.updated_at).where(traits.c.name.like("CUSTOM%"))
        written = sorted(tx.execute(found).all())
    assert written == sorted((each, NOW) for each in (*names, TRAIT["name"]))
