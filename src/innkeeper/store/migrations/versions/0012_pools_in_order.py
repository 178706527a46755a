"""Index the hosts of pools in order, and replace the JSON value null with NULL."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None
compatible_since = "0006"
"""Older programs may run. Such programs may write the JSON value null, which newer programs read as
NULL."""

POOL = "pool_hosts"
IN_ORDER = "ix_pool_hosts_host_flavor_id_host_id"
OF_FLAVOR = "ix_pool_hosts_host_flavor_id"
NOTHING = "null"
"""The text of the JSON value null."""


def upgrade() -> None:
    """Replace the index, and write NULL for the JSON value null."""
    # Create the new index first, since MariaDB requires an index for the foreign key.
    op.create_index(IN_ORDER, POOL, ["host_flavor_id", "host_id"], unique=False)
    op.drop_index(OF_FLAVOR, POOL, if_exists=True)
    for table, column in (("pclouds", "size"), ("hosts", "kept_ratios")):
        rows = sa.table(table, sa.column(column))
        has_nothing = sa.cast(rows.c[column], sa.Text()) == NOTHING
        op.execute(rows.update().where(has_nothing).values({column: sa.null()}))


def downgrade() -> None:
    """Restore the index. NULL is kept, since older programs can read it too."""
    op.create_index(OF_FLAVOR, POOL, ["host_flavor_id"], unique=False)
    op.drop_index(IN_ORDER, POOL, if_exists=True)
