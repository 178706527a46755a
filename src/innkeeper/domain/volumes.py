"""Types for block storage: volumes, volume types, attachments, transfers and quotas."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from innkeeper.domain.compute import UNLIMITED
from innkeeper.domain.errors import Invalid
from innkeeper.domain.ids import ProviderId

CONSUMER_TYPE = "VOLUME"
"""The consumer type of volumes in the Placement API."""
STANDARD_TYPE = "__DEFAULT__"
"""The name of the volume type that always exists. It cannot be deleted while it is the default."""


class VolumeBusy(Invalid):
    """The volume's status or its attachments forbid the action."""


class VolumeStatus:
    """Statuses of volumes, as the Block Storage API spells them."""

    CREATING = "creating"
    AVAILABLE = "available"
    RESERVED = "reserved"
    """The volume is reserved, because an attachment is about to be made."""
    ATTACHING = "attaching"
    IN_USE = "in-use"
    DETACHING = "detaching"
    EXTENDING = "extending"
    DELETING = "deleting"
    AWAITING_TRANSFER = "awaiting-transfer"
    MAINTENANCE = "maintenance"
    ERROR = "error"
    ERROR_EXTENDING = "error_extending"
    ERROR_DELETING = "error_deleting"


class AttachStatus:
    """Statuses of attachments."""

    RESERVED = "reserved"
    ATTACHING = "attaching"
    ATTACHED = "attached"
    DETACHING = "detaching"


class AttachOrigin:
    """The kind of program that connects an attached volume to its server."""

    SERVER = "server"
    """The agent on the server's host, which gets an order to connect the volume."""
    CLIENT = "client"
    """The client that asked for the attachment, such as Nova."""


class AttachMode:
    """How a server uses an attached volume."""

    READ_WRITE = "rw"
    READ_ONLY = "ro"


@dataclass(frozen=True, slots=True)
class VolumeType:
    """A type of volumes. ``extra_specs`` select the pools, and may allow several attachments."""

    id: int
    uuid: str
    name: str
    description: str | None
    is_public: bool
    extra_specs: Mapping[str, str]
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class Volume:
    """A volume. Sizes are in GiB. ``provider_id`` is the pool, or ``None`` if no pool was found.

    While the volume is being extended, ``growing_to_gb`` is the new size, and ``prior_status`` the
    status before the extension. ``host`` is the host whose agent made the volume.
    """

    id: int
    uuid: str
    name: str | None
    description: str | None
    project_id: str
    user_id: str
    type_id: int
    size_gb: int
    growing_to_gb: int | None
    status: str
    prior_status: str | None
    availability_zone: str
    provider_id: ProviderId | None
    class_name: str | None
    host: str | None
    is_bootable: bool
    is_read_only: bool
    is_multiattach: bool
    image_id: str | None
    image_metadata: Mapping[str, Any]
    source_uuid: str | None
    metadata: Mapping[str, str]
    fault: str | None
    created_at: datetime
    updated_at: datetime

    @property
    def held_gb(self) -> int:
        """The amount in GiB that the volume uses in its pool."""
        return max(self.size_gb, self.growing_to_gb or 0)

    @property
    def usage(self) -> VolumeUsage:
        """The amounts with which the volume counts against the quotas of its project and type."""
        return VolumeUsage(1, self.held_gb)


@dataclass(frozen=True, slots=True)
class Attachment:
    """The connection of a volume with a server or, without a server, with a client's host.

    With ``deletes_volume``, the volume is deleted with the server. ``boot_index`` is 0 for the disk
    that the server boots from.
    """

    id: int
    uuid: str
    volume_uuid: str
    server_uuid: str | None
    origin: str
    status: str
    mode: str
    device: str | None
    host: str | None
    connector: Mapping[str, Any] | None
    deletes_volume: bool
    boot_index: int | None
    tag: str | None
    attached_at: datetime | None
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class VolumeTransfer:
    """An offer of a volume to the project that knows the key."""

    id: int
    uuid: str
    volume_uuid: str
    name: str | None
    project_id: str
    salt: str
    key_hash: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class VolumeLimits:
    """The quotas of a project. -1 means unlimited. ``of_types`` has quotas by kind and type."""

    volumes: int
    gigabytes: int
    per_volume_gigabytes: int
    of_types: Mapping[tuple[str, str], int] = field(default_factory=dict)

    def of_type(self, kind: str, type_uuid: str) -> int:
        """Return a limit for one volume type. ``kind`` is ``volumes`` or ``gigabytes``."""
        return self.of_types.get((kind, type_uuid), UNLIMITED)


@dataclass(frozen=True, slots=True)
class VolumeUsage:
    """The number of volumes, and the sum of their sizes in GiB."""

    volumes: int = 0
    gigabytes: int = 0

    def __add__(self, other: VolumeUsage) -> VolumeUsage:
        return VolumeUsage(self.volumes + other.volumes, self.gigabytes + other.gigabytes)

    def __neg__(self) -> VolumeUsage:
        return VolumeUsage(-self.volumes, -self.gigabytes)


@dataclass(frozen=True, slots=True)
class PoolFacts:
    """The state of one pool, for lists.

    Amounts are in GiB, which are the units of the resource class ``class_name``.

    ``host`` and ``zone`` are empty if no host that reaches the pool is up.
    """

    provider_id: ProviderId
    name: str
    class_name: str
    is_shared: bool
    is_up: bool
    zone: str
    host: str
    total: int
    used: int
    traits: tuple[str, ...]
    volumes: VolumeUsage

    @property
    def free(self) -> int:
        """The amount in GiB that is not allocated."""
        return self.total - self.used


@dataclass(frozen=True, slots=True)
class SourceImage:
    """The image that a new volume is a copy of."""

    id: str
    min_disk_gb: int
    size_gb: int
    metadata: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class VolumeRequest:
    """A request for one volume, before the named objects are looked up.

    ``type_name`` is a name or an id. ``same_as`` and ``different_from`` have ids of volumes. The
    new volume must be in the pool of each volume in ``same_as``, and in no pool of the volumes in
    ``different_from``. With ``server_uuid``, the volume is made for a server.
    """

    uuid: str
    project_id: str
    user_id: str
    size_gb: int | None
    seed: int
    now: datetime
    is_admin: bool = False
    name: str | None = None
    description: str | None = None
    type_name: str | None = None
    availability_zone: str | None = None
    image_id: str | None = None
    source_uuid: str | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)
    same_as: tuple[str, ...] = ()
    different_from: tuple[str, ...] = ()
    request_id: str | None = None


class DeviceSource:
    """The possible sources of a server's volume at boot."""

    BLANK = "blank"
    IMAGE = "image"
    VOLUME = "volume"


@dataclass(frozen=True, slots=True)
class BlockDevice:
    """A volume of a server that boots. It exists already, or is made blank or from an image.

    ``source_id`` is the id of the volume or image. ``size_gb`` is the size of a new volume.
    """

    source: str
    source_id: str | None = None
    size_gb: int | None = None
    type_name: str | None = None
    boot_index: int | None = None
    deletes_volume: bool = False
    device: str | None = None
    tag: str | None = None


@dataclass(frozen=True, slots=True)
class VolumeSelection:
    """Filters, order and page for a list of volumes.

    A column in ``exact`` must have one of the values given there. The database cannot check all
    conditions. ``accepts`` checks the other conditions for one volume. ``sort`` has pairs of
    (column, whether it is sorted in descending order). ``offset`` is the number of volumes to skip.
    """

    limit: int
    exact: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    like: Mapping[str, str] = field(default_factory=dict)
    moments: tuple[tuple[str, str, datetime], ...] = ()
    sort: tuple[tuple[str, bool], ...] = (("created_at", True),)
    marker: str | None = None
    offset: int = 0
    accepts: Callable[[Volume], bool] | None = None
