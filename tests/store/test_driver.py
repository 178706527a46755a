"""Statements that go directly to the driver fail as all other statements do."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import sqlalchemy as sa

from innkeeper.store import driver
from innkeeper.store.transactions import Store


def test_values_reach_the_driver_in_its_own_form(store: Store) -> None:
    mark = "?" if store.backend.name == "sqlite" else "%s"
    with store.write() as tx:
        found = driver.execute(tx, f"SELECT {mark}", ("x",)).fetchall()
        assert [tuple(each) for each in found] == [("x",)]
        assert [tuple(each) for each in driver.execute(tx, "SELECT 1").fetchall()] == [(1,)]


def error_of(store: Store, work: Callable[[sa.Connection], object]) -> sa.exc.DBAPIError:
    with store.engines.reading.connect() as tx, pytest.raises(sa.exc.DBAPIError) as raised:
        work(tx)
    return raised.value


def test_an_error_of_the_driver_is_sqlalchemys_error(store: Store) -> None:
    mine = error_of(store, lambda tx: driver.execute(tx, "SELECT nothing FROM nowhere"))
    usual = error_of(store, lambda tx: tx.exec_driver_sql("SELECT nothing FROM nowhere"))
    assert type(mine) is type(usual)
    assert type(mine.orig) is type(usual.orig)
    assert mine.statement == usual.statement
