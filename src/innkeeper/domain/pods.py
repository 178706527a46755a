"""Types for pods. A pod is a cloud behind this service; projects are bound to pods.

Source: the design *Dynamic Pod Binding*; ADR 0039.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlencode

from innkeeper.domain.errors import Invalid

VCPUS, MEMORY_MB, DISK_GB, VOLUME_GB = "vcpus", "memory_mb", "disk_gb", "volume_gb"
KINDS = (VCPUS, MEMORY_MB, DISK_GB, VOLUME_GB)
"""The kinds of amounts in which pods are measured. The first three are amounts of servers."""
NUMBER_MAX = 1e12
"""The largest weight, price or headroom of a pod. Sums of larger numbers would lose digits."""
RATIO_MAX = 1e6
GENERAL = "general"
"""The name of the group of all requests and pods without tags. All other names of groups contain an
equals sign."""


def group_of(tags: Mapping[str, str]) -> str:
    """Return the name of the group of all pods with exactly these affinity tags."""
    return urlencode(sorted(tags.items())) or GENERAL


def tags_of(group: str) -> dict[str, str] | None:
    """Return the affinity tags of a group, or ``None`` for a text that is not a group's name."""
    if group == GENERAL:
        return {}
    try:
        tags = dict(parse_qsl(group, keep_blank_values=True, strict_parsing=True))
    except ValueError:
        return None
    return tags if group_of(tags) == group else None


def group_key(project_id: str, group: str) -> str:
    """Return the key of the sequence that numbers all bindings of a project and group."""
    return _digest(project_id, group)


def active_key(project_id: str, group: str, az_name: str) -> str:
    """Return the unique key of the active binding of a project, group and availability zone."""
    return _digest(project_id, group, az_name)


def _digest(*parts: str) -> str:
    # A digest has a fixed length, and databases that ignore case compare it correctly.
    return sha256("\0".join(parts).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class PodHealth:
    """The results of the last polls of a pod. ``is_up`` is ``None`` before the first poll.

    ``failures`` counts the failed polls in a row.
    """

    is_up: bool | None = None
    last_seen_at: datetime | None = None
    last_error: str | None = None
    failed_at: datetime | None = None
    latency_ms: float | None = None
    failures: int = 0


@dataclass(frozen=True, slots=True)
class Pod:
    """A cloud behind this service.

    ``az_name`` is the availability zone that users see, and ``pod_az_name`` is the availability
    zone inside the pod. ``tags`` name the special work that the pod is for. A kind of amounts is
    full at ``threshold_percent`` of its capacity, or when only the kind's ``headroom`` is left,
    whichever comes first. The capacity is the amount that the pod reports, times the kind's ratio
    in ``allocation_ratios``. ``endpoints`` has addresses by service type, which override the
    addresses in the pod's service catalog.
    """

    id: int
    uuid: str
    pod_name: str
    az_name: str
    pod_az_name: str
    dc_name: str
    tags: Mapping[str, str]
    weight: float
    price: float
    threshold_percent: float
    headroom: Mapping[str, float]
    allocation_ratios: Mapping[str, float]
    is_in_maintenance: bool
    auth_url: str
    username: str
    user_domain: str
    project_name: str
    project_domain: str
    region_name: str
    endpoints: Mapping[str, str]
    created_at: datetime
    updated_at: datetime
    health: PodHealth = PodHealth()

    @property
    def group(self) -> str:
        """The name of the pod's group."""
        return group_of(self.tags)


class EndReason:
    """Why a binding ended.

    ``MOVED``: the policy chose another pod. ``REPLACED``: an administrator bound the project to
    another pod. In both cases, the next binding starts when this binding ends. ``ENDED``: an
    administrator ended the binding.
    """

    MOVED = "moved"
    REPLACED = "replaced"
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class PodBinding:
    """A project's binding to a pod, for one group of requests in one availability zone.

    ``sequence`` numbers the bindings of a project and group without gaps. If a binding replaces
    others, its ``chain`` is the lowest ``chain`` of the replaced bindings. Otherwise, its ``chain``
    is its own ``sequence``. ``pod_id`` is ``None`` after the pod was deleted. ``start_reason`` is
    for administrators. An active binding has no ``ended_at``.
    """

    id: int
    uuid: str
    project_id: str
    group_name: str
    az_name: str
    pod_id: int | None
    pod_uuid: str
    sequence: int
    chain: int
    started_at: datetime
    start_reason: str
    ended_at: datetime | None = None
    end_reason: str | None = None

    @property
    def is_active(self) -> bool:
        """Whether the binding has not ended."""
        return self.ended_at is None


@dataclass(frozen=True, slots=True)
class PodMeasurement:
    """The usage of a pod at one moment, as JSON; see :mod:`innkeeper.domain.pod_usage`.

    ``placed`` has the amounts, by kind, that this service placed in the pod after the measurement.
    The placed amounts count as used until ``placed_until``.
    """

    id: int
    pod_id: int
    measured_at: datetime
    usage: Mapping[str, Any]
    placed: Mapping[str, float] | None = None
    placed_until: datetime | None = None

    @property
    def counted_until(self) -> datetime:
        """The time until which placed amounts are counted."""
        return self.placed_until or self.measured_at


@dataclass(frozen=True, slots=True)
class PodRouting:
    """The pod of a resource, and the resource's ids at the door and in the pod.

    ``top_id`` is the id at the door (the gateway for users' requests). Until the create is
    finished, ``top_id`` is the mark that the pod stores with the resource. ``bottom_id`` is the id
    in the pod, or ``None`` until the pod has confirmed the resource.

    The routing counts as ``number`` resources with these amounts against the quota of the project.
    ``image_id`` is the image's id at the door, ``type_uuid`` the volume type's, and
    ``server_group_uuid`` the server group's. ``deleted_at`` is the time at which the pod agreed to
    delete the resource. Without a ``bottom_id``, it is not known whether the pod made the resource.
    In this case, ``deleted_at`` is the time at which the pod answered that it has no such resource.
    ``changing_at`` is the time at which the pod was last asked to change the amounts.
    ``server_uuid`` is the server for which a volume was made, or to which it was last attached. The
    pod may delete this server and the volume together. If the routing has a ``group_name``, the
    project is bound to the pod for this group and ``az_name`` as soon as the pod confirms the
    resource.
    """

    id: int
    top_id: str
    bottom_id: str | None
    pod_id: int
    project_id: str
    resource_type: str
    created_at: datetime
    updated_at: datetime
    user_id: str | None = None
    image_id: str | None = None
    number: int | None = None
    vcpus: int | None = None
    memory_mb: int | None = None
    size_gb: int | None = None
    deleted_at: datetime | None = None
    group_name: str | None = None
    az_name: str | None = None
    disk_gb: int | None = None
    type_uuid: str | None = None
    server_group_uuid: str | None = None
    changing_at: datetime | None = None
    server_uuid: str | None = None


class PodHome(NamedTuple):
    """The pod of a listed resource, and the fields of the resource that only the door knows.

    This type is a tuple for speed, because a list may have a thousand resources. The door is the
    gateway of this service, which forwards users' requests to pods.
    """

    pod_id: int
    project_id: str
    user_id: str | None
    image_id: str | None
    server_group_uuid: str | None
    type_uuid: str | None = None


@dataclass(frozen=True, slots=True)
class PodContents:
    """The resources of a project in a pod, according to the routings.

    ``servers`` and ``volumes`` include the ``deleting`` servers and volumes, which the pod is
    deleting. ``begun`` servers and volumes were requested from the pod, but not confirmed. The
    amounts include these servers and volumes, too.
    """

    project_id: str
    servers: int
    volumes: int
    deleting: int
    begun: int
    vcpus: int
    memory_mb: int
    volume_gb: int

    @property
    def is_empty(self) -> bool:
        """Whether the project has no resource in the pod, and no create is unconfirmed."""
        return not (self.servers or self.volumes or self.begun)


@dataclass(frozen=True, slots=True)
class PodRequest:
    """Work for which a pod is wanted.

    ``az_name`` is ``None`` if any availability zone is acceptable. ``amounts`` are by kind.
    ``bound`` has the ids of the pods to which the project is bound. The first of these pods that
    passes the filters is chosen. ``refused`` has the ids of the pods that must not be chosen,
    because they refused this request.
    """

    project_id: str
    group: str = GENERAL
    az_name: str | None = None
    amounts: Mapping[str, float] = field(default_factory=dict)
    bound: tuple[int, ...] = ()
    refused: frozenset[int] = frozenset()


def check_numbers(pod: Pod) -> None:
    """Raise :class:`Invalid` if a number of the pod is out of bounds."""
    for name, number in (("weight", pod.weight), ("cost", pod.price)):
        if not (math.isfinite(number) and abs(number) <= NUMBER_MAX):
            raise Invalid(f"{name} must be a number between -{NUMBER_MAX:g} and {NUMBER_MAX:g}.")
    if not 0 < pod.threshold_percent <= 100:  # noqa: PLR2004 - percent
        raise Invalid("threshold_percent must be a number above 0, and at most 100.")
    for name, numbers, most in (
        ("headroom", pod.headroom, NUMBER_MAX),
        ("allocation_ratios", pod.allocation_ratios, RATIO_MAX),
    ):
        if not numbers.keys() <= set(KINDS):
            raise Invalid(f"The keys of {name} must be among {', '.join(KINDS)}.")
        if not all(math.isfinite(each) and 0 <= each <= most for each in numbers.values()):
            raise Invalid(f"The values of {name} must be numbers between 0 and {most:g}.")
