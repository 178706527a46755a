"""Record how long hosts were in the freepool, and how long reservations had them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from innkeeper.store.migrations.column_types import BIG_ID, MOMENT

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None
compatible_since = "0015"
"""Older programs do not record these periods. So reports have gaps while only older programs
run."""

UUID = sa.String(36)
SHORT = sa.String(255)


def upgrade() -> None:
    """Create the table, with the present hosts and holds. Earlier periods are not known."""
    op.create_table(
        "freepool_runs",
        sa.Column("id", BIG_ID, autoincrement=True, nullable=False),
        sa.Column("host_id", BIG_ID, nullable=False),
        sa.Column("host_name", SHORT, nullable=False),
        sa.Column("reservation_uuid", UUID),
        sa.Column("project_id", SHORT),
        sa.Column("is_whole", sa.Boolean(), nullable=False),
        sa.Column("units", sa.Integer(), nullable=False),
        sa.Column("started_at", MOMENT, nullable=False),
        sa.Column("ended_at", MOMENT),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_freepool_runs")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_freepool_runs_host_id"), "freepool_runs", ["host_id"], unique=False)
    op.create_index(op.f("ix_freepool_runs_ended_at"), "freepool_runs", ["ended_at"], unique=False)
    _fill()


def _fill() -> None:
    columns = (
        *("host_id", "host_name", "reservation_uuid", "project_id", "is_whole", "units"),
        "started_at",
    )
    runs = sa.table("freepool_runs", *(sa.column(name) for name in columns))
    hosts = sa.table("hosts", sa.column("id"), sa.column("name"))
    pool = sa.table("freepool_hosts", sa.column("host_id"), sa.column("created_at"))
    members = sa.select(
        pool.c.host_id,
        hosts.c.name,
        sa.null(),
        sa.null(),
        sa.true(),
        sa.literal(1),
        pool.c.created_at,
    ).join(hosts, hosts.c.id == pool.c.host_id)
    op.execute(runs.insert().from_select(columns, members))
    holds = sa.table(
        "holds", *(sa.column(each) for each in ("host_id", "reservation_id", "units", "is_active"))
    )
    reservations = sa.table(
        "reservations", *(sa.column(each) for each in ("id", "uuid", "lease_id", "unit_amounts"))
    )
    leases = sa.table("leases", *(sa.column(each) for each in ("id", "project_id", "start_at")))
    held = (
        sa.select(
            holds.c.host_id,
            hosts.c.name,
            reservations.c.uuid,
            leases.c.project_id,
            sa.case((reservations.c.unit_amounts.is_(None), sa.true()), else_=sa.false()),
            holds.c.units,
            leases.c.start_at,
        )
        .join(hosts, hosts.c.id == holds.c.host_id)
        .join(reservations, reservations.c.id == holds.c.reservation_id)
        .join(leases, leases.c.id == reservations.c.lease_id)
        .where(holds.c.is_active.is_(sa.true()))
    )
    op.execute(runs.insert().from_select(columns, held))


def downgrade() -> None:
    """Drop the table."""
    for name in ("ended_at", "host_id"):
        op.drop_index(op.f(f"ix_freepool_runs_{name}"), "freepool_runs")
    op.drop_table("freepool_runs")
