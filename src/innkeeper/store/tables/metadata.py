"""The metadata of all tables, and column types that behave the same on every database."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.dialects import mysql

NAMING = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "fk": "fk_%(table_name)s_%(column_0_name)s",
    "pk": "pk_%(table_name)s",
}
"""Constraints have names, so that a later migration can change them on every database."""

METADATA = sa.MetaData(naming_convention=NAMING)

Uuid = sa.String(36)
Name = sa.String(255)
# MariaDB truncates a plain DATETIME to whole seconds, which loses the order of events.
Moment = sa.DateTime().with_variant(mysql.DATETIME(fsp=6), "mysql", "mariadb")
# MariaDB's TEXT is limited to 64 kB, but user data and capabilities may be longer.
LongText = sa.Text().with_variant(mysql.MEDIUMTEXT(), "mysql", "mariadb")
BigId = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
"""SQLite generates ids only in a column of the type INTEGER."""


def numbered_table(name: str, *parts: sa.schema.SchemaItem) -> sa.Table:
    """Return a table whose rows have a generated ``id``, which is never reused.

    The change feed, the snapshot and paging rely on unique ids.
    """
    number = sa.Column("id", BigId, primary_key=True, autoincrement=True)
    return sa.Table(name, METADATA, number, *parts, sqlite_autoincrement=True)
