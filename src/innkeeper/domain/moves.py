"""Types for actions on servers, for the events of actions, and for migrations between hosts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from innkeeper.domain.ids import ConsumerUuid, ProviderId, ProviderUuid, ServerId


@dataclass(frozen=True, slots=True)
class Initiator:
    """The caller of an action, and the id of the caller's request.

    ``may_override`` lets the caller ignore locks. ``is_admin`` lets the caller use flavors and
    images of other projects.
    """

    request_id: str
    project_id: str | None = None
    user_id: str | None = None
    may_override: bool = False
    is_admin: bool = False


@dataclass(frozen=True, slots=True)
class Moved:
    """The result of a request to move a server: a migration, or a ``fault`` if no host was found.

    With a ``fault`` the server is unchanged and nothing is allocated for the move.
    ``counted_fault`` is the same message for administrators: it says how many hosts each filter
    removed. ``fault`` has no such numbers if the cloud has dedicated hosts.
    """

    migration_id: int | None
    fault: str | None = None
    counted_fault: str | None = None


class MigrationKind:
    """Kinds of migrations, as the Compute API spells them."""

    RESIZE = "resize"
    MIGRATION = "migration"
    LIVE = "live-migration"
    EVACUATION = "evacuation"


class MigrationStatus:
    """Statuses of migrations, as the Compute API spells them."""

    ACCEPTED = "accepted"
    """Evacuation: the new host builds the server."""
    MIGRATING = "migrating"
    """The source shuts the server down and prepares its disks."""
    POST_MIGRATING = "post-migrating"
    """The destination fetches the server."""
    FINISHED = "finished"
    """The server is on the destination. The move can still be reverted."""
    CONFIRMING = "confirming"
    """The server stays on the destination. The source still has to clean up."""
    REVERTING = "reverting"
    """The server returns to the source. The destination still has to clean up."""
    PREPARING = "preparing"
    """Live migration: the destination prepares to receive the server."""
    RUNNING = "running"
    """Live migration: the source transfers the server."""
    DONE = "done"
    """Evacuation: the server is on its new host. The lost host still has to clean up."""
    CANCELLING = "cancelling"
    """The migration was cancelled. The destination still has to clean up."""
    FAILING = "failing"
    """The migration failed. The destination still has to clean up."""

    CONFIRMED = "confirmed"
    REVERTED = "reverted"
    COMPLETED = "completed"
    CANCELLED = "cancelled"
    FAILED = "failed"
    ERROR = "error"


_S = MigrationStatus
IN_FLIGHT = frozenset({_S.ACCEPTED, _S.MIGRATING, _S.POST_MIGRATING, _S.PREPARING, _S.RUNNING})
"""With these statuses, the server counts as being on its source, but has allocations on its
destination."""
MAY_CHANGE_HOSTS = IN_FLIGHT | {_S.FINISHED, _S.REVERTING}
"""With these statuses, the server may still move between the source and the destination."""
LEFT_AT_DESTINATION = frozenset({_S.REVERTING, _S.CANCELLING, _S.FAILING})
"""With these statuses, only the destination still has to clean up."""
OPEN = MAY_CHANGE_HOSTS | LEFT_AT_DESTINATION | {_S.CONFIRMING, _S.DONE}
"""A migration with one of these statuses may have allocations. With any other status, it has
none."""
COUNTED_TWICE = frozenset({_S.MIGRATING, _S.POST_MIGRATING, _S.FINISHED})
"""With these statuses, a resized server counts against the quota with the maximum of its old and
new flavors."""


@dataclass(frozen=True, slots=True)
class Migration:
    """A move of a server to another host or to another flavor.

    ``uuid`` is also the id of a consumer in Placement. This consumer has the allocations on the
    host that the server is leaving or has left. ``old_state`` is the server's state before the
    move. Flavors have the same form as in a server's row.
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
        """Whether the migration or its cleanup is still in progress."""
        return self.status in OPEN

    @property
    def left_on(self) -> str:
        """The host that has to clean up after the migration."""
        if self.status not in LEFT_AT_DESTINATION:
            return self.source_host
        assert self.dest_host is not None, "a migration with this status has a destination"
        return self.dest_host

    @property
    def stays(self) -> bool:
        """Whether this is a resize on the same host."""
        return self.source_host == self.dest_host


def larger(migration: Migration, than: Mapping[str, Any]) -> tuple[int, int]:
    """Return the vcpus and MB by which a migration's larger flavor exceeds the flavor ``than``."""
    vcpus, memory_mb = (
        max(migration.old_flavor[name], migration.new_flavor[name]) - than[name]
        for name in ("vcpus", "memory_mb")
    )
    return vcpus, memory_mb


@dataclass(frozen=True, slots=True)
class MigrationSelection:
    """Filters for a list of migrations.

    The list is sorted newest first. The list begins after the migration ``marker``, and has at most
    ``limit`` items. ``host`` matches the source or the destination. A filter of ``None`` matches
    everything.
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
    """Actions on servers, as the Compute API spells them."""

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
    PREEMPTION_WARNING = "preemptionWarning"
    ATTACH_VOLUME = "attach_volume"
    DETACH_VOLUME = "detach_volume"


FORCE_DELETE = "forceDelete"
"""The Compute API's name of an action that deletes a server. It is recorded as a deletion."""
ENDS_OF_RESIZES = frozenset({ActionName.CONFIRM_RESIZE, ActionName.REVERT_RESIZE})


@dataclass(frozen=True, slots=True)
class ActionEvent:
    """One step of an action on one host. ``result`` is ``None`` while the step runs.

    ``provider_uuid`` is the host's provider, or ``None`` if the host was deleted.
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
    """An action on a server. ``message`` is set if the action failed.

    For administrators, ``counted`` is the message with numbers of hosts added. ``counted`` is set
    only if it differs from ``message``.
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
