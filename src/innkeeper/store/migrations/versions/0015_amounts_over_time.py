"""Let leases hold amounts, and add shared leases, series, notifications and quotas."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

from innkeeper.store.migrations.column_types import BIG_ID, MOMENT

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None
compatible_since = "0015"
"""Older programs do not fill the new columns of reservations, holds and events."""

UUID = sa.String(36)
SHORT = sa.String(255)
WORD = sa.String(16)
LONG_TEXT = sa.Text().with_variant(mysql.MEDIUMTEXT(), "mysql", "mariadb")


def upgrade() -> None:
    """Add the columns and tables. All present reservations are of whole hosts."""
    _change_freepool()
    _change_leases()
    _change_reservations()
    _change_events()
    _make_tables()


def _change_freepool() -> None:
    for column in (
        sa.Column("slots_uuid", UUID),
        sa.Column("capabilities", sa.JSON(), server_default="{}", nullable=False),
        sa.Column("leaves_at", MOMENT),
        sa.Column("updated_at", MOMENT),
    ):
        op.add_column("freepool_hosts", column)


def _change_leases() -> None:
    for column in (
        sa.Column("series_uuid", UUID),
        sa.Column("idle_grace_s", sa.Integer()),
        sa.Column("idle_since", MOMENT),
        sa.Column("offered_to", SHORT),
    ):
        op.add_column("leases", column)
    for name in ("series_uuid", "offered_to"):
        op.create_index(op.f(f"ix_leases_{name}"), "leases", [name], unique=False)


def _change_reservations() -> None:
    moments = [
        sa.Column(name, MOMENT, server_default="1970-01-01 00:00:00", nullable=False)
        for name in ("created_at", "updated_at")
    ]
    columns: tuple[sa.Column[Any], ...] = (
        sa.Column("resource_type", SHORT, server_default="physical:host", nullable=False),
        sa.Column("state", WORD, server_default="pending", nullable=False),
        sa.Column("unit_amounts", sa.JSON(none_as_null=True)),
        sa.Column("affinity", sa.Boolean()),
        sa.Column("parameters", sa.JSON(), server_default="{}", nullable=False),
        sa.Column("is_missing", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("is_changed", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("aggregate_id", BIG_ID),
        sa.Column("group_uuid", UUID),
        *moments,
    )
    for column in columns:
        op.add_column("reservations", column)
    op.add_column("holds", sa.Column("units", sa.Integer(), server_default="1", nullable=False))
    op.add_column(
        "holds", sa.Column("is_active", sa.Boolean(), server_default=sa.false(), nullable=False)
    )
    _fill_reservations()


def _fill_reservations() -> None:
    leases = sa.table(
        "leases", sa.column("id"), sa.column("created_at"), sa.column("ended_at"), sa.column("uuid")
    )
    reservations = sa.table(
        "reservations",
        *(sa.column(name) for name in ("id", "uuid", "lease_id", "state")),
        *(sa.column(name) for name in ("created_at", "updated_at")),
    )
    events = sa.table("lease_events", *(sa.column(each) for each in ("lease_id", "kind", "state")))
    hosts = sa.table("hosts", sa.column("id"), sa.column("dedicated_to"))
    holds = sa.table(
        "holds", sa.column("reservation_id"), sa.column("host_id"), sa.column("is_active")
    )
    made = sa.select(leases.c.created_at).where(leases.c.id == reservations.c.lease_id)
    made_at = made.scalar_subquery()
    op.execute(reservations.update().values(created_at=made_at, updated_at=made_at))
    done = sa.select(events.c.lease_id).where(events.c.state == "done")
    over = sa.select(leases.c.id).where(leases.c.ended_at.is_not(None))
    for state, of_leases in (
        ("active", done.where(events.c.kind == "start")),
        ("ending", over),
        ("deleted", done.where(events.c.kind == "end")),
    ):
        op.execute(
            reservations.update().where(reservations.c.lease_id.in_(of_leases)).values(state=state)
        )
    handed_over = sa.exists().where(
        reservations.c.id == holds.c.reservation_id,
        hosts.c.id == holds.c.host_id,
        hosts.c.dedicated_to == reservations.c.uuid,
    )
    op.execute(holds.update().where(handed_over).values(is_active=sa.true()))


def _change_events() -> None:
    op.add_column("lease_events", sa.Column("name", SHORT))
    op.add_column(
        "lease_events", sa.Column("failures", sa.Integer(), server_default="0", nullable=False)
    )


def _make_tables() -> None:
    op.create_table(
        "lease_projects",
        sa.Column("lease_id", BIG_ID, autoincrement=False, nullable=False),
        sa.Column("project_id", SHORT, nullable=False),
        sa.ForeignKeyConstraint(
            ["lease_id"], ["leases.id"], name=op.f("fk_lease_projects_lease_id")
        ),
        sa.PrimaryKeyConstraint("lease_id", "project_id", name=op.f("pk_lease_projects")),
    )
    op.create_index(
        op.f("ix_lease_projects_project_id"), "lease_projects", ["project_id"], unique=False
    )
    op.create_table(
        "resource_properties",
        sa.Column("id", BIG_ID, autoincrement=True, nullable=False),
        sa.Column("uuid", UUID, nullable=False),
        sa.Column("name", SHORT, nullable=False),
        sa.Column("is_private", sa.Boolean(), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("updated_at", MOMENT),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_resource_properties")),
        sa.UniqueConstraint("uuid", name=op.f("uq_resource_properties_uuid")),
        sa.UniqueConstraint("name", name=op.f("uq_resource_properties_name")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "lease_notifications",
        sa.Column("id", BIG_ID, autoincrement=True, nullable=False),
        sa.Column("uuid", UUID, nullable=False),
        sa.Column("event_type", SHORT, nullable=False),
        sa.Column("payload", LONG_TEXT, nullable=False),
        sa.Column("failures", sa.Integer(), server_default="0", nullable=False),
        sa.Column("due_at", MOMENT, nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_lease_notifications")),
        sa.UniqueConstraint("uuid", name=op.f("uq_lease_notifications_uuid")),
        sqlite_autoincrement=True,
    )
    op.create_index(
        op.f("ix_lease_notifications_due_at"), "lease_notifications", ["due_at"], unique=False
    )
    op.create_table(
        "lease_quotas",
        sa.Column("project_id", SHORT, nullable=False),
        sa.Column("limits", sa.JSON(), nullable=False),
        sa.Column("updated_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("project_id", name=op.f("pk_lease_quotas")),
    )


def downgrade() -> None:
    """Drop the new columns and tables. Reservations of slots, and events of users, are deleted."""
    reservations = sa.table("reservations", sa.column("id"), sa.column("resource_type"))
    holds = sa.table("holds", sa.column("reservation_id"))
    events = sa.table("lease_events", sa.column("kind"))
    others = reservations.c.resource_type != "physical:host"
    op.execute(
        holds.delete().where(holds.c.reservation_id.in_(sa.select(reservations.c.id).where(others)))
    )
    op.execute(reservations.delete().where(others))
    op.execute(events.delete().where(events.c.kind.not_in(["start", "end"])))
    for table in ("lease_quotas", "lease_notifications", "resource_properties", "lease_projects"):
        op.drop_table(table)
    for name in ("series_uuid", "offered_to"):
        op.drop_index(op.f(f"ix_leases_{name}"), "leases")
    for table, names in (
        ("holds", ("units", "is_active")),
        ("leases", ("series_uuid", "idle_grace_s", "idle_since", "offered_to")),
        ("lease_events", ("name", "failures")),
        ("freepool_hosts", ("slots_uuid", "capabilities", "leaves_at", "updated_at")),
    ):
        for name in names:
            op.drop_column(table, name)
    for name in (
        *("resource_type", "state", "unit_amounts", "affinity", "parameters", "is_missing"),
        *("is_changed", "aggregate_id", "group_uuid", "created_at", "updated_at"),
    ):
        op.drop_column("reservations", name)
