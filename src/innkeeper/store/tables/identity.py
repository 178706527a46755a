"""Tables of the identity room, used by the ``builtin`` mode."""

from __future__ import annotations

import sqlalchemy as sa

from innkeeper.store.tables.metadata import METADATA, LongText, Moment, Name

projects = sa.Table(
    "projects",
    METADATA,
    sa.Column("id", sa.String(64), primary_key=True),
    sa.Column("name", Name, nullable=False, unique=True),
    sa.Column("description", LongText, nullable=False),
    sa.Column("is_enabled", sa.Boolean, nullable=False),
    sa.Column("created_at", Moment, nullable=False),
)

users = sa.Table(
    "users",
    METADATA,
    sa.Column("id", sa.String(64), primary_key=True),
    sa.Column("name", Name, nullable=False, unique=True),
    sa.Column("password_hash", sa.String(255), nullable=False),
    sa.Column("email", Name),
    sa.Column("description", LongText, nullable=False),
    sa.Column("default_project_id", sa.String(64)),
    sa.Column("is_enabled", sa.Boolean, nullable=False),
    # Tokens issued before this moment are invalid. Set to revoke all of the user's tokens.
    sa.Column("tokens_valid_from", Moment, nullable=False),
    sa.Column("created_at", Moment, nullable=False),
)

roles = sa.Table(
    "roles",
    METADATA,
    sa.Column("id", sa.String(64), primary_key=True),
    sa.Column("name", Name, nullable=False, unique=True),
    sa.Column("description", LongText),
    sa.Column("created_at", Moment, nullable=False),
)

role_assignments = sa.Table(
    "role_assignments",
    METADATA,
    sa.Column("user_id", sa.String(64), sa.ForeignKey("users.id"), primary_key=True),
    sa.Column(
        "project_id", sa.String(64), sa.ForeignKey("projects.id"), primary_key=True, index=True
    ),
    sa.Column("role_id", sa.String(64), sa.ForeignKey("roles.id"), primary_key=True, index=True),
)

revoked_tokens = sa.Table(
    "revoked_tokens",
    METADATA,
    sa.Column("audit_id", sa.String(64), primary_key=True),
    # When the token expires. Afterwards, the row can be pruned.
    sa.Column("expires_at", Moment, nullable=False, index=True),
)

secrets = sa.Table(
    "secrets",
    METADATA,
    # For example "token_signing", created at the first start and shared by all processes.
    sa.Column("name", sa.String(64), primary_key=True),
    # Sealed with a key outside the database, except for values that are not secret.
    sa.Column("value", LongText, nullable=False),
    sa.Column("created_at", Moment, nullable=False),
)

login_failures = sa.Table(
    "login_failures",
    METADATA,
    # Hashes of the user name and the client's address, since users sometimes type their password
    # into the field for the name.
    sa.Column("subject", sa.String(64), primary_key=True),
    sa.Column("source", sa.String(64), primary_key=True),
    sa.Column("count", sa.Integer, nullable=False),
    sa.Column("last_at", Moment, nullable=False, index=True),
)

agent_credentials = sa.Table(
    "agent_credentials",
    METADATA,
    sa.Column("id", sa.String(32), primary_key=True),
    # The name, not the id, since a credential is issued before its agent registers.
    sa.Column("agent_name", Name, nullable=False, index=True),
    sa.Column("secret_hash", sa.String(64), nullable=False),
    # Patterns of the host names that the agent may report. If the list is empty, the agent may
    # report all hosts that have no other agent.
    sa.Column("hosts", sa.JSON, nullable=False),
    sa.Column("created_at", Moment, nullable=False),
    sa.Column("expires_at", Moment),
)
