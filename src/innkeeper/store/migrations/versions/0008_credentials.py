"""Make room for sealed secrets, and add failed logins and agent credentials."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from innkeeper.store.migrations.column_types import LONG_TEXT, MOMENT

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None
compatible_since = "0006"
"""Older programs do not need the new tables, and can use the wider column."""

SHORT = sa.String(255)


def upgrade() -> None:
    """Widen the column for secrets, and create two tables."""
    with op.batch_alter_table("secrets") as altered:
        altered.alter_column("value", type_=LONG_TEXT, existing_type=SHORT, nullable=False)
    op.create_table(
        "login_failures",
        sa.Column("subject", sa.String(64), nullable=False),
        sa.Column("source", sa.String(64), nullable=False),
        sa.Column("count", sa.Integer(), nullable=False),
        sa.Column("last_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("subject", "source", name=op.f("pk_login_failures")),
    )
    op.create_index(op.f("ix_login_failures_last_at"), "login_failures", ["last_at"], unique=False)
    op.create_table(
        "agent_credentials",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("agent_name", SHORT, nullable=False),
        sa.Column("secret_hash", sa.String(64), nullable=False),
        sa.Column("hosts", sa.JSON(), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("expires_at", MOMENT, nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_agent_credentials")),
    )
    op.create_index(
        op.f("ix_agent_credentials_agent_name"), "agent_credentials", ["agent_name"], unique=False
    )


def downgrade() -> None:
    """Drop the tables, and delete sealed secrets, which are too long for the old column."""
    op.drop_table("agent_credentials")
    op.drop_table("login_failures")
    # An older program cannot open sealed secrets, and creates a new signing key.
    op.execute(sa.text("DELETE FROM secrets WHERE value LIKE 'sealed.%'"))
    with op.batch_alter_table("secrets") as altered:
        altered.alter_column("value", type_=SHORT, existing_type=LONG_TEXT, nullable=False)
