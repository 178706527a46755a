"""Types for the door. The door forwards users' requests to pods and records where resources are.

A pod is a cloud behind this service. A *mark* is a text that the door stores with each resource
that it creates in a pod. If the pod's answer to the create is lost, the door finds the resource by
its mark.

Source: ADR 0040.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import msgspec

from innkeeper.domain.errors import Conflict

Json: TypeAlias = object
"""A value that was decoded from JSON, or a part of such a value. Code checks the type of the value
before using it."""
SERVER, VOLUME, GROUP = "server", "volume", "server_group"
TAKES = "accept:"
"""The prefix of the mark for the takeover of a volume by another project. The id of the volume
follows the prefix."""
MAY_TAKE = "late-accept:"
"""The prefix of the name of a note. The note says that another project may still take over a
volume, because the project's request may arrive late in the pod. The id of the volume and a digest
of the project's id follow the prefix."""
WITH_SERVERS = "with:"
"""The prefix of the marks of volumes that a pod makes for servers.

The prefix is followed by the mark of the create (or the id of the server) and the device number.
"""
MARK = "innkeeper-door"
"""The metadata key under which a pod stores the mark of a resource that the door makes."""


@dataclass(frozen=True, slots=True)
class DoorAmounts:
    """The amounts with which one resource counts against the quota of its project.

    Only servers have ``disk_gb``, which no quota limits.
    """

    vcpus: int = 0
    memory_mb: int = 0
    size_gb: int = 0
    disk_gb: int = 0


@dataclass(frozen=True, slots=True)
class DoorLimits:
    """The quotas of a project for one kind of resource. -1 means unlimited.

    For volumes, the ``type_`` fields are the quotas for one volume type.
    """

    number: int
    vcpus: int = -1
    memory_mb: int = -1
    size_gb: int = -1
    group_members: int = -1
    per_volume_gb: int = -1
    type_name: str = ""
    type_number: int = -1
    type_size_gb: int = -1


@dataclass(frozen=True, slots=True)
class DoorCaller:
    """The project and the user of a request."""

    project_id: str
    user_id: str
    is_admin: bool


@dataclass(frozen=True, slots=True)
class DoorRequest:
    """A request as a client sent it.

    ``target`` is the path without the version, as in ``/servers``. ``address`` is the address of
    this API without the version. In links, it replaces the address of the pod.
    """

    kind: str
    method: str
    target: str
    body: Json
    headers: Mapping[str, str]
    address: str
    caller: DoorCaller

    @property
    def fields(self) -> Mapping[str, Json]:
        """The fields of the resource in the body of a create."""
        return object_of(object_of(self.body)[self.kind])


@dataclass(frozen=True, slots=True)
class DoorAnswer:
    """The answer that the client gets."""

    status: int
    body: bytes
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class PodResource:
    """A server or volume as its pod reports it.

    ``project_id`` is the project's id at the door. In the pod, this id is the name of the project.
    ``mark`` is the mark that the door sent with the create. ``amounts`` is ``None`` if the pod does
    not report amounts, or while a change of the amounts may be in progress. ``servers`` are the ids
    of the servers to which a volume is attached. ``volume_type`` and ``image_name`` are the names
    of a volume's type and image. At the door, the names are the same.
    """

    kind: str
    uuid: str
    project_id: str
    mark: str | None
    amounts: DoorAmounts | None
    servers: tuple[str, ...] = ()
    volume_type: str | None = None
    image_name: str | None = None


def object_of(told: Json) -> Mapping[str, Json]:
    """Return a value from a body as a JSON object. The schema of the body ensures the type."""
    assert isinstance(told, Mapping), "the schema of a body allows no other type"
    return told


def objects_of(told: Json) -> Sequence[Mapping[str, Json]]:
    """Return a list from a body, or an empty list for ``None``. The schema ensures the type."""
    rows = told or ()
    assert isinstance(rows, Sequence), "the schema of a body allows no other type"
    return [object_of(each) for each in rows]


def number_of(told: Json) -> int:
    """Return a number from a body, or 0 for ``None``. The schema ensures the type."""
    number = told or 0
    assert isinstance(number, int | float | str), "the schema of a body allows no other type"
    return int(number)


def message_of(told: Json) -> str:
    """Return the message in the body of an error response, or an empty string if it has none."""
    fault = next(iter(told.values()), None) if isinstance(told, Mapping) else None
    message = fault.get("message") if isinstance(fault, Mapping) else None
    return message if isinstance(message, str) else ""


class PodRefused(Exception):
    """A pod refused a create, and certainly created nothing.

    If no other pod accepts the request, the client gets ``answer`` or ``error``.
    """

    def __init__(self, why: str, answer: DoorAnswer | None, error: Conflict | None = None) -> None:
        super().__init__(why)
        self.answer, self.error = answer, error

    @property
    def message(self) -> str:
        """The pod's message for users, or an empty string if the pod gave none."""
        if self.answer is None:
            return "" if self.error is None else self.error.message
        return message_of(msgspec.json.decode(self.answer.body)) if self.answer.body else ""
