"""Going on with a step of the schema in whose middle a program was killed.

PostgreSQL and SQLite undo a step that did not come to its end. In MariaDB each statement that
makes or alters a table commits by itself, and with it all that was written before, so what a
killed step has made is there when it is begun again.

Always true: a step that is begun again does the same statements, and what is there already is
what they would make.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from alembic.ddl.mysql import MariaDBImpl


class ResumingMariaDB(MariaDBImpl):
    """How Alembic speaks with MariaDB; it takes this one because of its ``__dialect__``."""

    __dialect__ = "mariadb"

    def create_table(self, table: sa.Table, **more: Any) -> None:
        """Make a table unless it is there."""
        super().create_table(table, **{**more, "if_not_exists": True})

    def create_index(self, index: sa.Index, **more: Any) -> None:
        """Make an index unless it is there."""
        super().create_index(index, **{**more, "if_not_exists": True})

    def add_column(self, table_name: str, column: sa.Column[Any], **more: Any) -> None:
        """Add a column unless it is there."""
        super().add_column(table_name, column, **{**more, "if_not_exists": True})

    def bulk_insert(
        self,
        table: sa.TableClause | sa.Table,
        rows: Sequence[dict[str, Any]],
        multiinsert: bool = True,
    ) -> None:
        """Write the rows of a new table unless it has some."""
        assert self.connection is not None
        there = self.connection.execute(sa.select(sa.func.count()).select_from(table)).scalar()
        if not there:
            super().bulk_insert(table, list(rows), multiinsert)
