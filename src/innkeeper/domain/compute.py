"""Types for compute: flavors, hosts, agents and servers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import msgspec

from innkeeper.domain.explaining import Refused
from innkeeper.domain.grouping import GroupDefinition
from innkeeper.domain.hosts import KeptRatio
from innkeeper.domain.ids import AgentId, ProviderId, ProviderUuid, ServerId
from innkeeper.domain.images import Image
from innkeeper.domain.keypairs import Keypair
from innkeeper.domain.zones import Destination, EntryBoot


@dataclass(frozen=True, slots=True)
class Flavor:
    """The shape of a server. ``flavor_id`` is the public id; ``id`` is the row id.

    ``extra_specs`` may contain ``trait:X`` (required or forbidden), ``resources:CLASS`` (an
    amount) and ``capabilities:name`` (a comparison).
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
        """The disk space that a server of this flavor uses: root, ephemeral and swap."""
        return self.disk_gb + self.ephemeral_gb + -(-self.swap_mb // 1024)


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
    """A compute host, with its resource provider and its compute service.

    ``availability_zone`` is the zone that an aggregate of the host sets. If no aggregate sets a
    zone, ``availability_zone`` is the same as ``reported_zone``. ``dedication`` is a value of
    :class:`innkeeper.domain.hosts.Dedication`, and ``dedicated_to`` the id of the host's pcloud or
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
    """The server was moved or resized. The user can still confirm or revert this."""
    SHELVED = "SHELVED"
    SHELVED_OFFLOADED = "SHELVED_OFFLOADED"
    """The server is shelved, and no longer on a host."""
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
    """The server is evacuated. It is rebuilt on another host, because its own host is lost."""
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

    If ``is_locked`` is set, ``locked_by`` is one of :class:`Locker`.
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
class Definitions:
    """The objects that a request names, as defined in the zone that received the user's request.

    The zones below use these definitions, and do not look the objects up themselves.
    """

    flavor: Flavor
    image: Image | None = None
    keypair: Keypair | None = None
    group: GroupDefinition | None = None


class BootRequest(msgspec.Struct, frozen=True):
    """A validated request for servers, before the flavor and other named objects are looked up.

    As many servers are placed as the quota and the hosts allow, but at most ``count_max``. If fewer
    than ``count_min`` servers fit, no server is placed. ``forced_host`` is the only acceptable
    host; the caller has checked that the user may force a host. ``seed`` determines the random
    choices. ``server_ids`` are ``count_max`` new ids. With ``is_repeat``, an earlier attempt may
    have created servers with these ids, so existing servers are looked up first.

    ``destination`` comes from a build plan entry, in which a zone chose a host for one server.
    ``destination`` has the id of this server and the name of this host. No other host is
    acceptable. A request with a ``destination`` leaves no server in ERROR, and is refused from
    ``expires_at`` on.

    The servers of one user request are a boot batch. If the batch is spread over several zones,
    ``launch_indexes`` has the batch numbers of the servers in this zone. With ``is_numbered``, the
    names of servers end with these numbers. If ``is_numbered`` is ``None``, the names end with
    numbers if the request is for several servers.

    A request from a zone parent has ``definitions``, which are used instead of this zone's objects.
    A request for one build plan entry has the ``entry_id``. A request for several build plan
    entries has ``entries``. With ``is_across_zones``, other zones may get servers of the same
    batch, so the weights of hosts must be comparable across zones. With
    ``is_refused_without_hosts``, no server is left in ERROR if there are too few hosts. With
    ``may_be_elsewhere``, it is no error if this zone does not know the requested availability zone
    or host. With ``has_volumes``, volumes are reserved for the servers. With ``is_volume_backed``,
    one of a server's volumes is its boot disk.
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
    metadata: Mapping[str, str] = msgspec.field(default_factory=dict)
    tags: tuple[str, ...] = ()
    hints: Mapping[str, Any] = msgspec.field(default_factory=dict)
    access_ip_v4: str = ""
    access_ip_v6: str = ""
    destination: Destination | None = None
    expires_at: datetime | None = None
    launch_indexes: tuple[int, ...] = ()
    is_numbered: bool | None = None
    definitions: Definitions | None = None
    entry_id: str | None = None
    entries: tuple[EntryBoot, ...] = ()
    is_across_zones: bool = False
    is_refused_without_hosts: bool = False
    may_be_elsewhere: bool = False
    has_volumes: bool = False
    is_volume_backed: bool = False
    is_repeat: bool = False

    def launch_index(self, place: int) -> int:
        """Return the boot batch number of the server at position ``place`` in this request."""
        return self.launch_indexes[place] if self.launch_indexes else place

    @property
    def numbers_names(self) -> bool:
        """Whether the name of each server ends with its number in the boot batch, as in Nova."""
        return self.count_max > 1 if self.is_numbered is None else self.is_numbered


class Booted(msgspec.Struct, frozen=True):
    """The result of a boot request. Each server has a row, and either a host or a fault.

    If no host was found, ``refused`` has the reasons. ``refused_by`` is the filter that removed the
    last host, or the plugin that failed. Two fields are for administrators. ``counted_fault`` is
    ``fault``, and also says how many hosts each filter removed. ``details`` has the error of a
    plugin that failed.
    """

    batch_id: str
    server_ids: tuple[ServerId, ...]
    fault: str | None = None
    refused: Refused | None = None
    refused_by: str | None = None
    details: str = ""
    counted_fault: str | None = None


UNLIMITED = -1
"""The value of a limit that is not enforced."""
COUNTS_REVERSED = "min_count must be <= max_count"
