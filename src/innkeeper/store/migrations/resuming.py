"""Resumes a schema step during which a program was killed.

PostgreSQL and SQLite roll back an unfinished step. In MariaDB, each DDL statement commits
implicitly, so some effects of an interrupted step exist when the step runs again.

Always true: a step runs the same statements again. So if an object exists already, the step created
it. If an object is gone, the step dropped it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from alembic.ddl.mysql import MariaDBImpl


class ResumingMariaDB(MariaDBImpl):
    """Alembic's implementation for MariaDB, registered by its ``__dialect__``."""

    __dialect__ = "mariadb"

    def create_table(self, table: sa.Table, **more: Any) -> None:
        """Create a table unless it exists."""
        super().create_table(table, **{**more, "if_not_exists": True})

    def create_index(self, index: sa.Index, **more: Any) -> None:
        """Create an index unless it exists."""
        super().create_index(index, **{**more, "if_not_exists": True})

    def drop_index(self, index: sa.Index, **more: Any) -> None:
        """Drop an index if it exists."""
        super().drop_index(index, **{**more, "if_exists": True})

    def add_column(self, table_name: str, column: sa.Column[Any], **more: Any) -> None:
        """Add a column unless it exists."""
        super().add_column(table_name, column, **{**more, "if_not_exists": True})

    def bulk_insert(
        self,
        table: sa.TableClause | sa.Table,
        rows: Sequence[dict[str, Any]],
        multiinsert: bool = True,
    ) -> None:
        """Insert the first rows of a table, unless the table already has rows."""
        assert self.connection is not None
        there = self.connection.execute(sa.select(sa.func.count()).select_from(table)).scalar()
        if not there:
            super().bulk_insert(table, list(rows), multiinsert)
