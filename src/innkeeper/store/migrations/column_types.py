"""Column types that migrations share.

A migration describes the schema of its time, so these types never change. Add new types instead.
"""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.dialects import mysql

# MariaDB truncates a plain DATETIME to whole seconds.
MOMENT = sa.DateTime().with_variant(mysql.DATETIME(fsp=6), "mysql", "mariadb")
# MariaDB's TEXT is limited to 64 kB.
LONG_TEXT = sa.Text().with_variant(mysql.MEDIUMTEXT(), "mysql", "mariadb")
# SQLite generates ids only in a column of the type INTEGER.
BIG_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
