"""Tables of the leases room: the freepool, leases, reservations, holds and events.

Always true: a host is in the freepool at most once, and only hosts in the freepool have holds. A
hold exists from the creation of its lease until the empty host is returned to the freepool.
"""

from __future__ import annotations

import sqlalchemy as sa

from innkeeper.store.tables.metadata import METADATA, BigId, Moment, Name, Uuid, numbered_table

freepool_hosts = sa.Table(
    "freepool_hosts",
    METADATA,
    sa.Column("host_id", BigId, sa.ForeignKey("hosts.id"), primary_key=True, autoincrement=False),
    sa.Column("created_at", Moment, nullable=False),
)

leases = numbered_table(
    "leases",
    sa.Column("uuid", Uuid, nullable=False, unique=True),
    sa.Column("name", Name, nullable=False),
    sa.Column("project_id", Name, nullable=False, index=True),
    sa.Column("user_id", Name, nullable=False),
    # The window. Its end is exclusive.
    sa.Column("start_at", Moment, nullable=False),
    sa.Column("end_at", Moment, nullable=False, index=True),
    # When the lease began to end, as planned or not. From then on, its holds block no other lease.
    sa.Column("ended_at", Moment),
    # Hidden from the owner. The row is removed when all hosts of the lease are returned.
    sa.Column("is_deleted", sa.Boolean, nullable=False),
    sa.Column("created_at", Moment, nullable=False),
    sa.Column("updated_at", Moment, nullable=False),
)

reservations = numbered_table(
    "reservations",
    sa.Column("uuid", Uuid, nullable=False, unique=True),
    sa.Column("lease_id", BigId, sa.ForeignKey("leases.id"), nullable=False, index=True),
    sa.Column("hosts_min", sa.Integer, nullable=False),
    sa.Column("hosts_max", sa.Integer, nullable=False),
)

holds = sa.Table(
    "holds",
    METADATA,
    sa.Column("reservation_id", BigId, sa.ForeignKey("reservations.id"), primary_key=True),
    sa.Column(
        "host_id", BigId, sa.ForeignKey("freepool_hosts.host_id"), primary_key=True, index=True
    ),
)

lease_events = numbered_table(
    "lease_events",
    sa.Column("uuid", Uuid, nullable=False, unique=True),
    sa.Column("lease_id", BigId, sa.ForeignKey("leases.id"), nullable=False),
    # Values of domain.leases.LeaseEventKind and LeaseEventState.
    sa.Column("kind", sa.String(16), nullable=False),
    sa.Column("state", sa.String(16), nullable=False),
    sa.Column("due_at", Moment, nullable=False),
    sa.Column("updated_at", Moment, nullable=False),
    sa.UniqueConstraint("lease_id", "kind"),
    sa.Index(None, "state", "due_at"),
)
