"""Tables of the leases room: the freepool, leases, reservations, holds, events and limits.

Always true: a host is in the freepool at most once, and only hosts in the freepool have holds. A
hold exists from the creation of its reservation until the reservation returns the host.
"""

from __future__ import annotations

import sqlalchemy as sa

from innkeeper.store.tables.metadata import (
    METADATA,
    BigId,
    LongText,
    Moment,
    Name,
    Uuid,
    numbered_table,
)

freepool_hosts = sa.Table(
    "freepool_hosts",
    METADATA,
    sa.Column("host_id", BigId, sa.ForeignKey("hosts.id"), primary_key=True, autoincrement=False),
    # The child provider with the inventories of slots. A host that was added before slots existed
    # gets this provider with its first slot.
    sa.Column("slots_uuid", Uuid),
    # Facts that administrators add, by name. Requirements of leases can compare them.
    sa.Column("capabilities", sa.JSON, nullable=False, server_default="{}"),
    # The host leaves the freepool at this time, so no hold may last longer.
    sa.Column("leaves_at", Moment, index=True),
    sa.Column("created_at", Moment, nullable=False),
    sa.Column("updated_at", Moment),
)

resource_properties = numbered_table(
    "resource_properties",
    sa.Column("uuid", Uuid, nullable=False, unique=True),
    sa.Column("name", Name, nullable=False, unique=True),
    sa.Column("is_private", sa.Boolean, nullable=False),
    sa.Column("created_at", Moment, nullable=False),
    sa.Column("updated_at", Moment),
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
    # When the lease began to end, planned or early. From then on, its holds block no other leases.
    sa.Column("ended_at", Moment),
    # The owner does not see the lease any more. The row is removed when all hosts are returned.
    sa.Column("is_deleted", sa.Boolean, nullable=False),
    # The id that all leases of a series share. One request makes a series, for each day or week.
    sa.Column("series_uuid", Uuid, index=True),
    # The lease ends if none of its hosts or slots is used for this time.
    sa.Column("idle_grace_s", sa.Integer),
    sa.Column("idle_since", Moment),
    # The project that may accept the lease and become its owner.
    sa.Column("offered_to", Name, index=True),
    sa.Column("created_at", Moment, nullable=False),
    sa.Column("updated_at", Moment, nullable=False),
    # With "ended_at" first, SQLite would use the index to find the holds of one host, and read all
    # leases that have not ended.
    sa.Index(None, "idle_grace_s", "ended_at"),
)

lease_projects = sa.Table(
    "lease_projects",
    METADATA,
    # Projects that may use the reservations of another project's lease.
    sa.Column("lease_id", BigId, sa.ForeignKey("leases.id"), primary_key=True, autoincrement=False),
    sa.Column("project_id", Name, primary_key=True, index=True),
)

reservations = numbered_table(
    "reservations",
    sa.Column("uuid", Uuid, nullable=False, unique=True),
    sa.Column("lease_id", BigId, sa.ForeignKey("leases.id"), nullable=False, index=True),
    sa.Column("resource_type", Name, nullable=False, server_default="physical:host"),
    # Values of domain.leases.ReservationState.
    sa.Column("state", sa.String(16), nullable=False, server_default="pending"),
    # Numbers of units. The names are from a time when a unit was always a whole host.
    sa.Column("hosts_min", sa.Integer, nullable=False),
    sa.Column("hosts_max", sa.Integer, nullable=False),
    # The amounts of one unit by resource class; null for whole hosts.
    sa.Column("unit_amounts", sa.JSON(none_as_null=True)),
    # True if all units are on one host, false if each is on another host, null for any hosts.
    sa.Column("affinity", sa.Boolean),
    # The other parameters of the request, which depend on the resource type.
    sa.Column("parameters", sa.JSON, nullable=False, server_default="{}"),
    sa.Column("is_missing", sa.Boolean, nullable=False, server_default=sa.false(), index=True),
    sa.Column("is_changed", sa.Boolean, nullable=False, server_default=sa.false(), index=True),
    # The aggregate and the server group, which are created at the start.
    sa.Column("aggregate_id", BigId),
    sa.Column("group_uuid", Uuid),
    sa.Column("created_at", Moment, nullable=False, server_default="1970-01-01 00:00:00"),
    sa.Column("updated_at", Moment, nullable=False, server_default="1970-01-01 00:00:00"),
)

holds = sa.Table(
    "holds",
    METADATA,
    sa.Column("reservation_id", BigId, sa.ForeignKey("reservations.id"), primary_key=True),
    sa.Column(
        "host_id", BigId, sa.ForeignKey("freepool_hosts.host_id"), primary_key=True, index=True
    ),
    sa.Column("units", sa.Integer, nullable=False, server_default="1"),
    # Whether the host, or its slots, were handed over to the reservation.
    sa.Column("is_active", sa.Boolean, nullable=False, server_default=sa.false()),
)

freepool_runs = numbered_table(
    "freepool_runs",
    # A period in which a host was in the freepool, or in which a reservation had the host or its
    # slots. Periods are kept after the host and the lease are deleted.
    sa.Column("host_id", BigId, nullable=False, index=True),
    sa.Column("host_name", Name, nullable=False),
    # Null for the time in the freepool.
    sa.Column("reservation_uuid", Uuid),
    sa.Column("project_id", Name),
    sa.Column("is_whole", sa.Boolean, nullable=False),
    sa.Column("units", sa.Integer, nullable=False),
    sa.Column("started_at", Moment, nullable=False),
    sa.Column("ended_at", Moment, index=True),
)

lease_events = numbered_table(
    "lease_events",
    sa.Column("uuid", Uuid, nullable=False, unique=True),
    sa.Column("lease_id", BigId, sa.ForeignKey("leases.id"), nullable=False),
    # Values of domain.leases.LeaseEventKind and LeaseEventState. Events of users are numbered.
    sa.Column("kind", sa.String(16), nullable=False),
    # The type of a user's event.
    sa.Column("name", Name),
    sa.Column("state", sa.String(16), nullable=False),
    sa.Column("due_at", Moment, nullable=False),
    sa.Column("failures", sa.Integer, nullable=False, server_default="0"),
    sa.Column("updated_at", Moment, nullable=False),
    sa.UniqueConstraint("lease_id", "kind"),
    sa.Index(None, "state", "due_at"),
)

lease_notifications = numbered_table(
    "lease_notifications",
    sa.Column("uuid", Uuid, nullable=False, unique=True),
    sa.Column("event_type", Name, nullable=False),
    sa.Column("payload", LongText, nullable=False),
    sa.Column("failures", sa.Integer, nullable=False, server_default="0"),
    sa.Column("due_at", Moment, nullable=False, index=True),
    sa.Column("created_at", Moment, nullable=False),
)

preemptions = sa.Table(
    "preemptions",
    METADATA,
    # A warning to a preemptible server on a host that a lease needs. It is deleted with the server,
    # or when the host is not needed any more.
    sa.Column("server_uuid", Uuid, primary_key=True),
    sa.Column("host", Name, nullable=False),
    sa.Column("warned_at", Moment, nullable=False),
    # The server is not deleted before this time.
    sa.Column("delete_at", Moment, nullable=False),
)

lease_quotas = sa.Table(
    "lease_quotas",
    METADATA,
    sa.Column("project_id", Name, primary_key=True),
    # Values of domain.lease_limits.LeaseLimits by field; absent fields have the service's default.
    sa.Column("limits", sa.JSON, nullable=False),
    sa.Column("updated_at", Moment, nullable=False),
)
