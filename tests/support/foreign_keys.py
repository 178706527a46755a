"""Disables the check of foreign keys, for tests that plant defects."""

from __future__ import annotations

from innkeeper.store.transactions import Tx

LOOSENED = {
    "sqlite": "PRAGMA defer_foreign_keys = ON",
    "postgresql": "SET LOCAL session_replication_role = replica",
    "mariadb": "SET foreign_key_checks = 0",
}
"""How to disable the check, by the name of the backend."""
TIGHTENED = {"sqlite": None, "postgresql": None, "mariadb": "SET foreign_key_checks = 1"}
"""How to enable it again, on databases that do not do so at the commit."""


def loosen(tx: Tx) -> None:
    """Disable the check of foreign keys in this transaction."""
    tx.exec_driver_sql(LOOSENED[tx.dialect.name])


def tighten(tx: Tx) -> None:
    """Enable the check of foreign keys again."""
    statement = TIGHTENED[tx.dialect.name]
    if statement is not None:
        tx.exec_driver_sql(statement)
