"""Tables of the leases room: the freepool, leases, what they reserve, and who holds what.

Always true: a host is in the freepool once, since its row is the key; a hold is of a host that
is in the freepool. A hold is there as long as its lease keeps the host: from the lease's making
until the host is given back, empty.
"""

from __future__ import annotations

import sqlalchemy as sa

from innkeeper.store.tables.metadata import METADATA, BigId, Moment, Name, Uuid

freepool_hosts = sa.Table(
    "freepool_hosts",
    METADATA,
    sa.Column("host_id", BigId, sa.ForeignKey("hosts.id"), primary_key=True, autoincrement=False),
    sa.Column("created_at", Moment, nullable=False),
)

leases = sa.Table(
    "leases",
    METADATA,
    sa.Column("id", BigId, primary_key=True, autoincrement=True),
    sa.Column("uuid", Uuid, nullable=False, unique=True),
    sa.Column("name", Name, nullable=False),
    sa.Column("project_id", Name, nullable=False, index=True),
    sa.Column("user_id", Name, nullable=False),
    # The window, from the one on and before the other.
    sa.Column("start_at", Moment, nullable=False),
    sa.Column("end_at", Moment, nullable=False, index=True),
    # When its end began, planned or not: it holds nothing for others to see from then on.
    sa.Column("ended_at", Moment),
    # Its owner sees it no more; the row goes when all its hosts are given back.
    sa.Column("is_deleted", sa.Boolean, nullable=False),
    sa.Column("created_at", Moment, nullable=False),
    sa.Column("updated_at", Moment, nullable=False),
    sqlite_autoincrement=True,
)

reservations = sa.Table(
    "reservations",
    METADATA,
    sa.Column("id", BigId, primary_key=True, autoincrement=True),
    sa.Column("uuid", Uuid, nullable=False, unique=True),
    sa.Column("lease_id", BigId, sa.ForeignKey("leases.id"), nullable=False, index=True),
    sa.Column("hosts_min", sa.Integer, nullable=False),
    sa.Column("hosts_max", sa.Integer, nullable=False),
    sqlite_autoincrement=True,
)

holds = sa.Table(
    "holds",
    METADATA,
    sa.Column(
        "reservation_id",
        BigId,
        sa.ForeignKey("reservations.id"),
        primary_key=True,
        autoincrement=False,
    ),
    sa.Column(
        "host_id",
        BigId,
        sa.ForeignKey("freepool_hosts.host_id"),
        primary_key=True,
        autoincrement=False,
        index=True,
    ),
)

lease_events = sa.Table(
    "lease_events",
    METADATA,
    sa.Column("id", BigId, primary_key=True, autoincrement=True),
    sa.Column("uuid", Uuid, nullable=False, unique=True),
    sa.Column("lease_id", BigId, sa.ForeignKey("leases.id"), nullable=False),
    # What happens: one of domain.leases.EventKind; and how far it has come: an EventState.
    sa.Column("kind", sa.String(16), nullable=False),
    sa.Column("state", sa.String(16), nullable=False),
    sa.Column("due_at", Moment, nullable=False),
    sa.Column("updated_at", Moment, nullable=False),
    sa.UniqueConstraint("lease_id", "kind"),
    sa.Index(None, "state", "due_at"),
    sqlite_autoincrement=True,
)
