"""Disables the check of foreign keys, for tests that plant defects."""

from __future__ import annotations

from innkeeper.store.transactions import Tx


def loosen(tx: Tx) -> None:
    """Disable the check of foreign keys in this transaction."""
    tx.exec_driver_sql(
        {
            "sqlite": "PRAGMA defer_foreign_keys = ON",
            "postgresql": "SET LOCAL session_replication_role = replica",
        }.get(tx.dialect.name, "SET foreign_key_checks = 0")
    )


def tighten(tx: Tx) -> None:
    """Enable the check of foreign keys again, on databases that do not do so at the commit."""
    if tx.dialect.name not in ("sqlite", "postgresql"):
        tx.exec_driver_sql("SET foreign_key_checks = 1")
