"""Find hosts in pools in order, and have no policy of a pcloud be nothing to the database."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None
compatible_since = "0006"
"""Older programs go on. Where there is nothing they may write JSON's own kind of nothing again,
which newer ones read as they read none."""

POOL = "pool_hosts"
IN_ORDER = "ix_pool_hosts_host_flavor_id_host_id"
OF_FLAVOR = "ix_pool_hosts_host_flavor_id"
NOTHING = "null"
"""As a text of JSON."""


def upgrade() -> None:
    """Make one index of the other, and write nothing where there is nothing."""
    # The new one first: MariaDB keeps no foreign key without an index.
    op.create_index(IN_ORDER, POOL, ["host_flavor_id", "host_id"], unique=False)
    op.drop_index(OF_FLAVOR, POOL, if_exists=True)
    for table, column in (("pclouds", "size"), ("hosts", "kept_ratios")):
        rows = sa.table(table, sa.column(column))
        has_nothing = sa.cast(rows.c[column], sa.Text()) == NOTHING
        op.execute(rows.update().where(has_nothing).values({column: sa.null()}))


def downgrade() -> None:
    """Make the index as it was; what is nothing stays so, as older programs read it too."""
    op.create_index(OF_FLAVOR, POOL, ["host_flavor_id"], unique=False)
    op.drop_index(IN_ORDER, POOL, if_exists=True)
