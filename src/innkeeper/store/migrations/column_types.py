"""Column types of migrations, under names that they share.

A migration says what the schema was made of on its day, so nothing here ever changes; a new
need is a new name.
"""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.dialects import mysql

# MariaDB cuts a plain DATETIME to whole seconds.
MOMENT = sa.DateTime().with_variant(mysql.DATETIME(fsp=6), "mysql", "mariadb")
# MariaDB's TEXT ends at 64 kB.
LONG_TEXT = sa.Text().with_variant(mysql.MEDIUMTEXT(), "mysql", "mariadb")
# SQLite numbers rows by itself only in a column of the type INTEGER.
BIG_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
