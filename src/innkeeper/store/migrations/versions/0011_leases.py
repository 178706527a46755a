"""Add the freepool, and leases that hold its hosts."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from innkeeper.store.migrations.column_types import BIG_ID, MOMENT

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None
compatible_since = "0006"
"""Older programs may run. Programs that know pclouds place no server on a host with an unknown
dedication, but earlier programs would. No host is dedicated to leases before an operator dedicates
it with a newer program."""

UUID = sa.String(36)
SHORT = sa.String(255)
WORD = sa.String(16)


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "freepool_hosts",
        sa.Column("host_id", BIG_ID, autoincrement=False, nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.ForeignKeyConstraint(["host_id"], ["hosts.id"], name=op.f("fk_freepool_hosts_host_id")),
        sa.PrimaryKeyConstraint("host_id", name=op.f("pk_freepool_hosts")),
    )
    _make_leases()
    _make_reservations()
    _make_events()


def _make_leases() -> None:
    op.create_table(
        "leases",
        sa.Column("id", BIG_ID, autoincrement=True, nullable=False),
        sa.Column("uuid", UUID, nullable=False),
        sa.Column("name", SHORT, nullable=False),
        sa.Column("project_id", SHORT, nullable=False),
        sa.Column("user_id", SHORT, nullable=False),
        sa.Column("start_at", MOMENT, nullable=False),
        sa.Column("end_at", MOMENT, nullable=False),
        sa.Column("ended_at", MOMENT, nullable=True),
        sa.Column("is_deleted", sa.Boolean(), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("updated_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_leases")),
        sa.UniqueConstraint("uuid", name=op.f("uq_leases_uuid")),
        sqlite_autoincrement=True,
    )
    for column in ("project_id", "end_at"):
        op.create_index(op.f(f"ix_leases_{column}"), "leases", [column], unique=False)


def _make_reservations() -> None:
    op.create_table(
        "reservations",
        sa.Column("id", BIG_ID, autoincrement=True, nullable=False),
        sa.Column("uuid", UUID, nullable=False),
        sa.Column("lease_id", BIG_ID, nullable=False),
        sa.Column("hosts_min", sa.Integer(), nullable=False),
        sa.Column("hosts_max", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["lease_id"], ["leases.id"], name=op.f("fk_reservations_lease_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_reservations")),
        sa.UniqueConstraint("uuid", name=op.f("uq_reservations_uuid")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_reservations_lease_id"), "reservations", ["lease_id"], unique=False)
    op.create_table(
        "holds",
        sa.Column("reservation_id", BIG_ID, autoincrement=False, nullable=False),
        sa.Column("host_id", BIG_ID, autoincrement=False, nullable=False),
        sa.ForeignKeyConstraint(
            ["reservation_id"], ["reservations.id"], name=op.f("fk_holds_reservation_id")
        ),
        sa.ForeignKeyConstraint(
            ["host_id"], ["freepool_hosts.host_id"], name=op.f("fk_holds_host_id")
        ),
        sa.PrimaryKeyConstraint("reservation_id", "host_id", name=op.f("pk_holds")),
    )
    op.create_index(op.f("ix_holds_host_id"), "holds", ["host_id"], unique=False)


def _make_events() -> None:
    op.create_table(
        "lease_events",
        sa.Column("id", BIG_ID, autoincrement=True, nullable=False),
        sa.Column("uuid", UUID, nullable=False),
        sa.Column("lease_id", BIG_ID, nullable=False),
        sa.Column("kind", WORD, nullable=False),
        sa.Column("state", WORD, nullable=False),
        sa.Column("due_at", MOMENT, nullable=False),
        sa.Column("updated_at", MOMENT, nullable=False),
        sa.ForeignKeyConstraint(["lease_id"], ["leases.id"], name=op.f("fk_lease_events_lease_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_lease_events")),
        sa.UniqueConstraint("uuid", name=op.f("uq_lease_events_uuid")),
        sa.UniqueConstraint("lease_id", "kind", name=op.f("uq_lease_events_lease_id_kind")),
        sqlite_autoincrement=True,
    )
    op.create_index(
        op.f("ix_lease_events_state_due_at"), "lease_events", ["state", "due_at"], unique=False
    )


def downgrade() -> None:
    """Drop the tables. Hosts of leases are open to all projects again."""
    for table in ("lease_events", "holds", "reservations", "leases", "freepool_hosts"):
        op.drop_table(table)
    hosts = sa.table("hosts", sa.column("dedication", WORD), sa.column("dedicated_to", UUID))
    kept = hosts.c.dedication.in_(["freepool", "leased", "ended"])
    op.execute(hosts.update().where(kept).values(dedication=None, dedicated_to=None))
