"""Types of the compute room: flavors, images, hosts, servers, and orders to agents."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from innkeeper.domain.explaining import Refused
from innkeeper.domain.hosts import KeptRatio
from innkeeper.domain.ids import AgentId, ProviderId, ProviderUuid, ServerId
from innkeeper.domain.zones import Destination


@dataclass(frozen=True, slots=True)
class Flavor:
    """The shape of a server. ``flavor_id`` is the public id; ``id`` is the row id.

    ``extra_specs`` may set ``trait:X`` to required or forbidden, ``resources:CLASS`` amounts and
    ``capabilities:name`` comparisons.
    """

    id: int
    flavor_id: str
    name: str
    vcpus: int
    memory_mb: int
    disk_gb: int
    ephemeral_gb: int = 0
    swap_mb: int = 0
    rxtx_factor: float = 1.0
    is_public: bool = True
    is_disabled: bool = False
    description: str | None = None
    extra_specs: Mapping[str, str] = field(default_factory=dict)
    created_at: datetime | None = None
    updated_at: datetime | None = None

    @property
    def all_disk_gb(self) -> int:
        """Disk that a server of this flavor uses on its host: root, ephemeral and swap."""
        return self.disk_gb + self.ephemeral_gb + -(-self.swap_mb // 1024)


@dataclass(frozen=True, slots=True)
class Image:
    """An image of the catalogue. The scheduler reads its minimum sizes and its properties."""

    id: str
    name: str | None
    owner: str
    visibility: str
    status: str
    disk_format: str | None
    container_format: str | None
    min_ram_mb: int
    min_disk_gb: int
    size_bytes: int | None
    checksum: str | None
    sha512: str | None
    is_protected: bool
    is_hidden: bool
    tags: tuple[str, ...]
    properties: Mapping[str, str]
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class Agent:
    """A program that reports hosts and carries out orders. The user ``user_id`` registered it."""

    id: AgentId
    name: str
    driver: str
    user_id: str | None
    last_seen_at: datetime
    created_at: datetime


class Liveness:
    """Mixin for objects that are up only while their agent sends heartbeats."""

    __slots__ = ()
    is_forced_down: bool
    last_seen_at: datetime

    def is_up(self, now: datetime, service_down_time_s: float) -> bool:
        """Return whether the last heartbeat is recent, and no operator forced the host down."""
        silent_s = (now - self.last_seen_at).total_seconds()
        return not self.is_forced_down and silent_s <= service_down_time_s


@dataclass(frozen=True, slots=True)
class Host(Liveness):
    """A machine with an agent: a provider that can hold servers, and its compute service.

    ``availability_zone`` is the effective zone: the zone that an aggregate of the host sets, or
    else the ``reported_zone``. ``dedication`` is one of
    :class:`innkeeper.domain.hosts.Dedication`; ``dedicated_to`` is the id of the pcloud or
    reservation. ``kept_ratios`` are the ratios that the dedication sets, by resource class.
    """

    id: int
    service_uuid: str
    name: str
    provider_id: ProviderId
    provider_uuid: ProviderUuid
    agent_id: AgentId
    availability_zone: str
    reported_zone: str
    is_disabled: bool
    disabled_reason: str | None
    is_forced_down: bool
    hypervisor_type: str
    hypervisor_version: int
    host_ip: str
    cpu_facts: Mapping[str, Any]
    capabilities: Mapping[str, Any]
    booted_at: datetime | None
    last_seen_at: datetime
    created_at: datetime
    updated_at: datetime
    reported_at: datetime | None = None
    dedication: str | None = None
    dedicated_to: str | None = None
    kept_ratios: Mapping[str, KeptRatio] | None = None


@dataclass(frozen=True, slots=True)
class HostStatus(Liveness):
    """The facts that tell whether a host is enabled and up."""

    name: str
    is_disabled: bool
    is_forced_down: bool
    last_seen_at: datetime


class Status:
    """Statuses of servers, as the Compute API spells them."""

    BUILD = "BUILD"
    ACTIVE = "ACTIVE"
    SHUTOFF = "SHUTOFF"
    PAUSED = "PAUSED"
    SUSPENDED = "SUSPENDED"
    VERIFY_RESIZE = "VERIFY_RESIZE"
    """Moved or resized, but not confirmed: the move can still be reverted."""
    SHELVED = "SHELVED"
    SHELVED_OFFLOADED = "SHELVED_OFFLOADED"
    """Shelved, and no longer on a host."""
    ERROR = "ERROR"
    DELETED = "DELETED"


class Task:
    """Task states of servers, as the Compute API spells them."""

    SPAWNING = "spawning"
    DELETING = "deleting"
    POWERING_OFF = "powering-off"
    POWERING_ON = "powering-on"
    REBOOTING = "rebooting"
    REBOOTING_HARD = "rebooting_hard"
    PAUSING = "pausing"
    UNPAUSING = "unpausing"
    SUSPENDING = "suspending"
    RESUMING = "resuming"
    RESIZE_PREP = "resize_prep"
    RESIZE_MIGRATING = "resize_migrating"
    RESIZE_MIGRATED = "resize_migrated"
    RESIZE_FINISH = "resize_finish"
    RESIZE_CONFIRMING = "resize_confirming"
    RESIZE_REVERTING = "resize_reverting"
    MIGRATING = "migrating"
    REBUILDING = "rebuilding"
    """Evacuation: the server is rebuilt on another host, because its own is lost."""
    SHELVING = "shelving"
    SHELVING_OFFLOADING = "shelving_offloading"
    UNSHELVING = "unshelving"


class Power:
    """Power states, as the Compute API numbers them."""

    NO_STATE = 0
    RUNNING = 1
    PAUSED = 3
    SHUTDOWN = 4
    SUSPENDED = 7


class Locker:
    """The kind of user that locked a server. Owners cannot remove an administrator's lock."""

    OWNER = "owner"
    ADMIN = "admin"


@dataclass(frozen=True, slots=True)
class Server:
    """A server of a user. The servers of one request share a ``batch_id`` (Nova's reservation id).

    ``locked_by`` is one of :class:`Locker` while ``is_locked``.
    """

    id: int
    uuid: ServerId
    name: str
    hostname: str
    description: str | None
    project_id: str
    user_id: str
    batch_id: str
    launch_index: int
    flavor: Mapping[str, Any]
    flavor_id: str
    vcpus: int
    memory_mb: int
    disk_gb: int
    image_id: str | None
    image_properties: Mapping[str, Any]
    status: str
    task_state: str | None
    power_state: int
    host: str | None
    provider_id: ProviderId | None
    asked_az: str | None
    key_name: str | None
    has_config_drive: bool
    user_data: str | None
    metadata: Mapping[str, str]
    tags: tuple[str, ...]
    hints: Mapping[str, Any]
    access_ip_v4: str
    access_ip_v6: str
    is_locked: bool
    locked_reason: str | None
    fault: Mapping[str, Any] | None
    created_at: datetime
    updated_at: datetime
    launched_at: datetime | None
    deleted_at: datetime | None
    locked_by: str | None = None
    request_id: str | None = None


@dataclass(frozen=True, slots=True)
class BootRequest:
    """A validated request for servers. The objects that it names have not been looked up yet.

    Up to ``count_max`` servers are placed, if the quota and the hosts allow them. If fewer than
    ``count_min`` fit, no server is placed. ``forced_host`` is the only acceptable host; policy was
    checked before. ``seed`` determines the random choices. ``server_ids`` are ``count_max`` new
    ids.

    ``destination`` comes from an entry of a build plan: the id of the one server, and its only
    acceptable host. A request with a ``destination`` leaves no server in ERROR if it fails, and is
    rejected from ``expires_at`` on.
    """

    project_id: str
    user_id: str
    request_id: str
    name: str
    flavor_id: str
    server_ids: tuple[ServerId, ...]
    batch_id: str
    seed: int
    now: datetime
    is_admin: bool = False
    image_id: str | None = None
    count_min: int = 1
    count_max: int = 1
    availability_zone: str | None = None
    forced_host: str | None = None
    hostname: str | None = None
    description: str | None = None
    key_name: str | None = None
    has_config_drive: bool = False
    user_data: str | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)
    tags: tuple[str, ...] = ()
    hints: Mapping[str, Any] = field(default_factory=dict)
    access_ip_v4: str = ""
    access_ip_v6: str = ""
    destination: Destination | None = None
    expires_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Booted:
    """The result of a boot request. The rows of the servers exist: placed, or with a fault.

    If no host was found, ``refused`` has the reasons. ``refused_by`` is the filter that removed
    the last host, or the plugin that failed. Two fields are for administrators:
    ``counted_fault``, with numbers of hosts, and ``details``, if ``refused`` is not set.
    """

    batch_id: str
    server_ids: tuple[ServerId, ...]
    fault: str | None = None
    refused: Refused | None = None
    refused_by: str | None = None
    details: str = ""
    counted_fault: str | None = None


class OrderKind:
    """Kinds of orders to agents."""

    BUILD = "build"
    DESTROY = "destroy"

    STOP = "stop"
    START = "start"
    REBOOT = "reboot"
    PAUSE = "pause"
    UNPAUSE = "unpause"
    SUSPEND = "suspend"
    RESUME = "resume"
    REBUILD = "rebuild"

    DEPART = "depart"
    """Cold migration, source: shut the server down, and keep its disks for the destination."""
    ARRIVE = "arrive"
    """Cold migration, destination: fetch the server from its source."""
    RETURN = "return"
    """Cold migration, source: undo ``DEPART``."""
    RESIZE = "resize"
    """Resize the server on the same host."""
    EXPECT = "expect"
    """Live migration, destination: prepare to receive the server."""
    SEND = "send"
    """Live migration, source: transfer the running server."""
    ABORT = "abort"
    """Live migration, source: stop the transfer and keep the server."""
    HURRY = "hurry"
    """Live migration, source: force the transfer to complete."""
    EVACUATE = "evacuate"
    """Rebuild the server on this host, because its own host is lost."""
    SHELVE = "shelve"
    OFFLOAD = "offload"
    """Remove a shelved server from its host."""
    UNSHELVE = "unshelve"


class OrderStatus:
    """Statuses of orders. A ``waiting`` order is sent again until its result is reported."""

    WAITING = "waiting"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class WorkOrder:
    """A durable order to an agent. Orders are idempotent."""

    id: int
    agent_id: AgentId
    host: str
    server_uuid: ServerId
    kind: str
    body: Mapping[str, Any]
    status: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Keypair:
    """A user's public key. It is injected into servers that are booted with it."""

    user_id: str
    name: str
    key_type: str
    public_key: str
    fingerprint: str
    created_at: datetime
    id: int = 0


UNLIMITED = -1
"""The value of a limit that is not enforced."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The quotas of a project; -1 is unlimited."""

    servers: int
    vcpus: int
    memory_mb: int
    metadata_items: int = UNLIMITED
    keypairs: int = UNLIMITED
    server_groups: int = UNLIMITED
    server_group_members: int = UNLIMITED
