"""Words of what is done to servers after their boot: actions, moves between hosts, events."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from innkeeper.domain.ids import ConsumerUuid, ProviderId, ProviderUuid, ServerId


@dataclass(frozen=True, slots=True)
class Asker:
    """Who asks for something, and the request by which it is known afterwards.

    ``may_override`` lets whoever asks stand above locks. ``is_admin`` lets them use flavors and
    images that are not theirs.
    """

    request_id: str
    project_id: str | None = None
    user_id: str | None = None
    may_override: bool = False
    is_admin: bool = False


@dataclass(frozen=True, slots=True)
class Moved:
    """How asking for a move ended: with a migration under way, or with no host for it.

    With a ``fault`` the server stays as it is and where it is, and nothing is held for it.
    ``counted_fault`` is ``fault`` with numbers of hosts, for administrators.
    """

    migration_id: int | None
    fault: str | None = None
    counted_fault: str | None = None


class MigrationKind:
    """Why a server goes from one host to another, as the Compute API spells it."""

    RESIZE = "resize"
    MIGRATION = "migration"
    LIVE = "live-migration"
    EVACUATION = "evacuation"


class MigrationStatus:
    """How far a migration is, as the Compute API spells it."""

    ACCEPTED = "accepted"
    """An evacuation: the server is being built on its new host."""
    MIGRATING = "migrating"
    """The source makes the server ready to leave."""
    POST_MIGRATING = "post-migrating"
    """The destination takes it."""
    FINISHED = "finished"
    """It is there, and may still go back."""
    CONFIRMING = "confirming"
    """It stays; the source still has to clear away what it left."""
    REVERTING = "reverting"
    """It goes back; the destination still has to clear away what it left."""
    PREPARING = "preparing"
    """A live migration: the destination makes itself ready."""
    RUNNING = "running"
    """A live migration: the source sends."""
    DONE = "done"
    """An evacuated server is there; its lost host has not come back to clear away its own."""
    CANCELLING = "cancelling"
    """It is given up; the destination still has to clear away what it has of the server."""
    FAILING = "failing"
    """It did not work; the destination still has to clear away what it has of the server."""

    CONFIRMED = "confirmed"
    REVERTED = "reverted"
    COMPLETED = "completed"
    CANCELLED = "cancelled"
    FAILED = "failed"
    ERROR = "error"


MAY_CHANGE_HOSTS = frozenset(
    {
        MigrationStatus.ACCEPTED,
        MigrationStatus.MIGRATING,
        MigrationStatus.POST_MIGRATING,
        MigrationStatus.FINISHED,
        MigrationStatus.REVERTING,
        MigrationStatus.PREPARING,
        MigrationStatus.RUNNING,
    }
)
"""The statuses in which a server may be on the other one of its two hosts soon."""
OPEN = frozenset(
    {
        MigrationStatus.ACCEPTED,
        MigrationStatus.MIGRATING,
        MigrationStatus.POST_MIGRATING,
        MigrationStatus.FINISHED,
        MigrationStatus.CONFIRMING,
        MigrationStatus.REVERTING,
        MigrationStatus.PREPARING,
        MigrationStatus.RUNNING,
        MigrationStatus.DONE,
        MigrationStatus.CANCELLING,
        MigrationStatus.FAILING,
    }
)
"""The statuses of migrations that may still hold something; all others hold nothing."""
LEFT_AT_DESTINATION = frozenset(
    {MigrationStatus.REVERTING, MigrationStatus.CANCELLING, MigrationStatus.FAILING}
)
"""The statuses in which what is left of the server is on the destination, not the source."""
IN_FLIGHT = frozenset(
    {
        MigrationStatus.ACCEPTED,
        MigrationStatus.MIGRATING,
        MigrationStatus.POST_MIGRATING,
        MigrationStatus.PREPARING,
        MigrationStatus.RUNNING,
    }
)
"""The server is still on its source, as far as is known, and holds its destination."""
COUNTED_TWICE = frozenset(
    {MigrationStatus.MIGRATING, MigrationStatus.POST_MIGRATING, MigrationStatus.FINISHED}
)
"""The statuses in which a resized server counts against its quota with the larger one of its
two flavors, in each resource."""


@dataclass(frozen=True, slots=True)
class Migration:
    """A server's move from one host to another, or to another size.

    ``uuid`` is also a consumer: it holds what the server has on the host that is not its own
    for the moment. ``old_state`` is what was true of the server before. Flavors are as servers
    keep them.
    """

    id: int
    uuid: ConsumerUuid
    server_uuid: ServerId
    kind: str
    status: str
    source_host: str
    source_provider_id: ProviderId
    dest_host: str | None
    dest_provider_id: ProviderId | None
    old_flavor: Mapping[str, Any]
    new_flavor: Mapping[str, Any]
    old_state: Mapping[str, Any]
    project_id: str
    user_id: str
    request_id: str | None
    message: str | None
    created_at: datetime
    updated_at: datetime

    @property
    def is_open(self) -> bool:
        """Whether something is still to come of it."""
        return self.status in OPEN

    @property
    def left_on(self) -> str:
        """The host that has something of the server, and is not the server's own."""
        if self.status not in LEFT_AT_DESTINATION:
            return self.source_host
        assert self.dest_host is not None, "it was there, or on its way there"
        return self.dest_host

    @property
    def stays(self) -> bool:
        """Whether a server is resized on the host that it is on."""
        return self.source_host == self.dest_host


@dataclass(frozen=True, slots=True)
class MigrationSelection:
    """Which migrations, newest first, at most ``limit`` behind the one with ``marker``.

    ``host`` is either end. What is ``None`` does not narrow the answer.
    """

    limit: int | None = None
    marker: str | None = None
    host: str | None = None
    source_host: str | None = None
    server_uuid: str | None = None
    statuses: tuple[str, ...] | None = None
    kind: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    user_id: str | None = None
    project_id: str | None = None


class ActionName:
    """What was done to a server, as the Compute API spells it."""

    CREATE = "create"
    DELETE = "delete"
    STOP = "stop"
    START = "start"
    REBOOT = "reboot"
    PAUSE = "pause"
    UNPAUSE = "unpause"
    SUSPEND = "suspend"
    RESUME = "resume"
    REBUILD = "rebuild"
    RESIZE = "resize"
    CONFIRM_RESIZE = "confirmResize"
    REVERT_RESIZE = "revertResize"
    MIGRATE = "migrate"
    LIVE_MIGRATION = "live-migration"
    LIVE_MIGRATION_CANCEL = "live_migration_cancel"
    LIVE_MIGRATION_FORCE_COMPLETE = "live_migration_force_complete"
    EVACUATE = "evacuate"
    SHELVE = "shelve"
    SHELVE_OFFLOAD = "shelveOffload"
    UNSHELVE = "unshelve"
    LOCK = "lock"
    UNLOCK = "unlock"
    RESET_STATE = "resetState"
    SET_DEDICATED_HOSTS = "setDedicatedHosts"


@dataclass(frozen=True, slots=True)
class ActionEvent:
    """One step of an action on one host. ``result`` is ``None`` while it is under way.

    ``provider_uuid`` is the host's, ``None`` if it is forgotten.
    """

    name: str
    host: str
    provider_uuid: ProviderUuid | None
    started_at: datetime
    finished_at: datetime | None = None
    result: str | None = None
    message: str | None = None

    SUCCESS = "Success"
    ERROR = "Error"


@dataclass(frozen=True, slots=True)
class Action:
    """Something that was done to a server. ``message`` is there if it did not work.

    ``counted`` is the message with numbers of hosts, for administrators, if there is such.
    """

    server_uuid: ServerId
    action: str
    request_id: str
    project_id: str | None
    user_id: str | None
    message: str | None
    created_at: datetime
    updated_at: datetime
    events: tuple[ActionEvent, ...] = field(default=())
    counted: str | None = None
