"""The errors of failed transactions."""

from __future__ import annotations

import pytest
import sqlalchemy as sa

from innkeeper.domain.errors import Conflict, Unavailable
from innkeeper.store.queries.identity import identity
from innkeeper.store.transactions import Store, note, step
from tests.support.stores import NOW


def test_permanent_errors_of_the_database_are_raised_unchanged(store: Store) -> None:
    with store.write() as tx:
        identity.add_secret(tx, "signing", "x", NOW)
    with pytest.raises(sa.exc.IntegrityError) as caught, store.write() as tx:
        identity.add_secret(tx, "signing", "y", NOW)
    assert caught.value.__cause__ is caught.value.orig, "the driver's, and not itself"


OUT_OF_ORDER = {
    "sqlite": "SELECT nothing FROM nowhere",
    "postgresql": "SELECT pg_terminate_backend(pg_backend_pid())",
    "mariadb": "KILL CONNECTION_ID()",
}


def test_temporary_errors_have_their_reason(store: Store) -> None:
    with pytest.raises(Unavailable) as caught, store.write() as tx:
        tx.exec_driver_sql(OUT_OF_ORDER[store.backend.name])
    assert isinstance(caught.value.__cause__, sa.exc.OperationalError)


def test_notes_of_a_step_go_with_it(store: Store) -> None:
    heard: dict[str, frozenset[str]] = {}
    store.listen(heard.__setitem__)
    with store.write() as tx:
        note(tx, "topic", ["first"])
        with pytest.raises(Conflict), step(tx):
            note(tx, "topic", ["undone"])
            raise Conflict("It is not to be.")
        with step(tx):
            note(tx, "topic", ["second"])
            note(tx, "other", ["third"])
    assert heard == {"topic": frozenset({"first", "second"}), "other": frozenset({"third"})}
