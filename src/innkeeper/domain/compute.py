"""Words of the compute room: flavors, images, hosts, servers, and the orders to agents."""

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
    """Shape of a server. ``flavor_id`` is its public id; ``id`` is the row's.

    ``extra_specs`` may ask for more than the shape: ``trait:X`` required or forbidden,
    ``resources:CLASS`` amounts, ``capabilities:name`` comparisons.
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
        """Disk that a server of this flavor takes on its host: root, ephemeral and swap."""
        return self.disk_gb + self.ephemeral_gb + -(-self.swap_mb // 1024)


@dataclass(frozen=True, slots=True)
class Image:
    """An image as the catalogue knows it; scheduling reads its minima and properties."""

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
    """A program that speaks for hosts. ``user_id`` is who registered it."""

    id: AgentId
    name: str
    driver: str
    user_id: str | None
    last_seen_at: datetime
    created_at: datetime


class Heard:
    """What has an agent that speaks for it, now and then."""

    __slots__ = ()
    is_forced_down: bool
    last_seen_at: datetime

    def is_up(self, now: datetime, service_down_time_s: float) -> bool:
        """Whether the agent spoke lately and nobody declared the host down."""
        silent_s = (now - self.last_seen_at).total_seconds()
        return not self.is_forced_down and silent_s <= service_down_time_s


@dataclass(frozen=True, slots=True)
class Host(Heard):
    """A machine with an agent: a provider that can hold servers, and its compute service.

    ``last_seen_at`` is when its agent last spoke; whether it is up depends on the moment one
    asks, see :meth:`is_up`. ``availability_zone`` is the one in force: an aggregate's, if the
    host is in one that names a zone, else the ``reported_zone``. ``dedication`` is one of
    :class:`innkeeper.domain.hosts.Dedication`, and ``dedicated_to`` names for whom.
    ``kept_ratios`` are those that are in force, by resource class, because of for whom it is.
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
class HostStatus(Heard):
    """How a host is, and no more."""

    name: str
    is_disabled: bool
    is_forced_down: bool
    last_seen_at: datetime


class Status:
    """What a server is when nothing is being done to it, as the Compute API spells it."""

    BUILD = "BUILD"
    ACTIVE = "ACTIVE"
    SHUTOFF = "SHUTOFF"
    PAUSED = "PAUSED"
    SUSPENDED = "SUSPENDED"
    VERIFY_RESIZE = "VERIFY_RESIZE"
    """Moved or resized, and not yet confirmed: it may still go back."""
    SHELVED = "SHELVED"
    SHELVED_OFFLOADED = "SHELVED_OFFLOADED"
    """Shelved, and on no host."""
    ERROR = "ERROR"
    DELETED = "DELETED"


class Task:
    """What is being done to a server at present, as the Compute API spells it."""

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
    """Built anew on another host, because its own is lost."""
    SHELVING = "shelving"
    SHELVING_OFFLOADING = "shelving_offloading"
    UNSHELVING = "unshelving"


class Power:
    """Power states as the Compute API counts them."""

    NO_STATE = 0
    RUNNING = 1
    PAUSED = 3
    SHUTDOWN = 4
    SUSPENDED = 7


class Locker:
    """Whose lock is on a server: its owner's, or an administrator's, which stays for owners."""

    OWNER = "owner"
    ADMIN = "admin"


@dataclass(frozen=True, slots=True)
class Server:
    """What users boot. ``batch_id`` is Nova's reservation id: the servers of one request.

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
    """One request for servers, checked for form; nothing in it was looked up yet.

    ``count_min`` to ``count_max`` servers: as many as quota and hosts have room for between
    the two; where that is less than the least, none is placed. ``forced_host`` names the one
    host that will do; who may name one is a matter of policy, decided before. ``seed`` makes
    the decision's random choices; ``server_ids`` holds ``count_max`` fresh ids. A request that
    brings an entry of a build plan has its ``destination``: one server, whose id is not fresh,
    and the one host that will do. It is made there, or refused, and leaves nothing in ERROR.
    From ``expires_at`` on it is refused.
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
    """How a boot request ended: the servers' rows exist, placed or with a fault.

    Without a valid host, ``refused`` tells why, and ``refused_by`` names the filter that
    removed the last host, or the plug-in that failed. Administrators read ``counted_fault``,
    with numbers of hosts, and ``details`` where there is no ``refused``.
    """

    batch_id: str
    server_ids: tuple[ServerId, ...]
    fault: str | None = None
    refused: Refused | None = None
    refused_by: str | None = None
    details: str = ""
    counted_fault: str | None = None


class OrderKind:
    """What an agent can be told to do with a server."""

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
    """Make ready to leave this host: shut down, and keep the disks to be fetched."""
    ARRIVE = "arrive"
    """Come from another host, where the server has made itself ready."""
    RETURN = "return"
    """Be on this host again as before having made ready to leave."""
    RESIZE = "resize"
    """Have another size on the same host."""
    EXPECT = "expect"
    """Make ready for a server that will be sent while it runs."""
    SEND = "send"
    """Send a running server to the host that expects it."""
    ABORT = "abort"
    """Stop sending, and keep the server."""
    HURRY = "hurry"
    """Send to the end, whatever that costs the server."""
    EVACUATE = "evacuate"
    """Be built anew here, because the host from which it comes is lost."""
    SHELVE = "shelve"
    OFFLOAD = "offload"
    """Free the host of a server that is shelved."""
    UNSHELVE = "unshelve"


class OrderStatus:
    """How far an order is. An order that is handed out stays ``waiting`` until it is reported:
    an agent that dies with it is given it again, and agents know orders by their ids."""

    WAITING = "waiting"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class WorkOrder:
    """A durable order to an agent. Carrying it out twice has the effect of once."""

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
    """A user's public key, put into servers that name it."""

    user_id: str
    name: str
    key_type: str
    public_key: str
    fingerprint: str
    created_at: datetime
    id: int = 0


UNLIMITED = -1
"""A limit that is none."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a project may have at most; -1 is without limit."""

    servers: int
    vcpus: int
    memory_mb: int
    metadata_items: int = UNLIMITED
    keypairs: int = UNLIMITED
    server_groups: int = UNLIMITED
    server_group_members: int = UNLIMITED
