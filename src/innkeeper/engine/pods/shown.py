"""Change the answers of pods into answers of the door (gateway to pods).

Always true: no link leads to a pod, and no id of a project, user or image in a pod is shown. An
unknown user or image of the door is shown as an empty text. Only administrators see names of hosts.
The mark that the door stores with a resource is not shown.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus

import msgspec

from innkeeper.clients.pods import PodAnswer, PodSilent
from innkeeper.domain.door import MARK, SERVER, VOLUME, Json
from innkeeper.domain.pods import Pod, PodHome, PodRouting
from innkeeper.engine.pods.provisioning import keypair_name
from innkeeper.engine.pods.tenants import decoded, is_gone

DEPTH_MAX = 32
TOO_DEEP = "the answer is nested too deeply"
RETRY_CHARS_MAX = 8
PROJECTS = ("tenant_id", "project_id", "source_project_id")
TEXTS = frozenset({"user_id", "key_name"})
ZONES = frozenset({"OS-EXT-AZ:availability_zone", "availability_zone"})
"""``PROJECTS``, ``TEXTS`` and ``ZONES`` have the names of fields that :meth:`DoorView.text`
changes."""
HIDDEN = frozenset({"destination_project_id"})
"""The names of fields that are always shown as null. They have ids of projects in the pod that this
service does not know."""
HOSTS = ("OS-EXT-SRV-ATTR:", "os-vol-host-attr:", "os-vol-mig-status-attr:", "host_status")
IMAGE_METADATA = "volume_image_metadata"
WHOLE = frozenset({"links", "metadata", "image", "server_groups", IMAGE_METADATA})
"""The names of fields with objects or lists that :meth:`DoorView.field` changes."""
OF_IMAGES = frozenset({"image_id", "disk_format"})
"""All metadata that a volume has from its image has items with these names. Answers to actions show
it as ``metadata``. A project can give a volume such metadata too, but has no reason to do so."""
OF_USERS = frozenset({"OS-EXT-SRV-ATTR:hostname"})
COLLECTION = re.compile(r"/(?:servers|volumes|flavors|images)/")
SPACE = re.compile(r"\s")
VERSIONS = {"servers": "/v2.1", "volumes": "/v3", "flavors": "/v2.1", "images": ""}


@dataclass(frozen=True, slots=True)
class DoorView:
    """How to show an answer about a resource. ``address`` is the address of this service's API."""

    pod: Pod
    project_id: str
    user_id: str | None
    image_id: str | None
    group_uuid: str | None
    address: str
    is_admin: bool

    @staticmethod
    def of(pod: Pod, routing: PodRouting | PodHome, address: str, *, is_admin: bool) -> DoorView:
        """Return the view of a resource, from its routing."""
        return DoorView(
            pod,
            routing.project_id,
            routing.user_id,
            routing.image_id,
            routing.server_group_uuid,
            address,
            is_admin,
        )

    def change(self, told: Json, depth: int = 0) -> Json:
        """Return a body as this service shows it to clients.

        Raises :class:`PodSilent` if the body is nested too deeply.
        """
        if depth > DEPTH_MAX:
            raise PodSilent(TOO_DEEP, may_have_arrived=True)
        if isinstance(told, list):
            return [self.change(each, depth + 1) for each in told]
        if not isinstance(told, dict):
            return told
        return {
            key: self.field(key, value, depth)
            for key, value in told.items()
            if self.is_admin or key in OF_USERS or not key.startswith(HOSTS)
        }

    def field(self, key: str, value: Json, depth: int = 0) -> Json:
        """Return the value of a field as this service shows it."""
        if key == "metadata" and isinstance(value, dict):
            return {name: each for name, each in value.items() if name != MARK}
        if key in HIDDEN:
            return None
        if isinstance(value, str):
            return self.text(key, value)
        if key == "links" and isinstance(value, list):
            return [moved for each in value if (moved := self.link(each)) is not None]
        if key == "server_groups" and isinstance(value, list):
            return [] if self.group_uuid is None else [self.group_uuid]
        if key == "image" and isinstance(value, dict):
            value = "" if self.image_id is None else {**value, "id": self.image_id}
        if key == IMAGE_METADATA and isinstance(value, dict):
            value = self.image_metadata(value)
        return self.change(value, depth + 1)

    def image_metadata(self, items: Mapping[str, Json]) -> dict[str, Json]:
        """Return the metadata that a volume has from its image, with the image's id at the door.

        If the door does not know the image, the id is left out.
        """
        if self.image_id is None or "image_id" not in items:
            return {name: each for name, each in items.items() if name != "image_id"}
        return {**items, "image_id": self.image_id}

    def text(self, key: str, value: str) -> str:
        """Return the text of a field as this service shows it."""
        if key.rpartition(":")[2] in PROJECTS:
            return self.project_id
        if key == "user_id":
            return self.user_id or ""
        if key in ZONES and value:
            return self.pod.az_name
        return keypair_name(value) if key == "key_name" else value

    def link(self, link: Json) -> dict[str, str] | None:
        """Return the link with this service's address, or ``None`` if it leads to no resource."""
        href, rel = (link.get("href"), link.get("rel")) if isinstance(link, Mapping) else (0, 0)
        path = _place(href)
        if path is None or not isinstance(rel, str):
            return None
        kind = path.split("/", 2)[1]
        if kind == "images":
            if self.image_id is None:
                return None
            path = f"/images/{self.image_id}"
        version = VERSIONS[kind] if rel == "self" else ""
        return {"rel": rel, "href": f"{self.address}{version}{path}"}


def _place(href: Json) -> str | None:
    """Return the path of the resource in an address, or ``None`` if it names no resource.

    The address may have megabytes, so each pattern is searched for only once.
    """
    if not isinstance(href, str) or SPACE.search(href):
        return None
    found = COLLECTION.search(href)
    return None if found is None else href[found.start() :]


def _retry_after(answer: PodAnswer) -> str:
    """Return the seconds after which a client may ask again, or "" if the pod tells none."""
    told = answer.headers.get("retry-after", "")
    return told if told.isascii() and told.isdigit() and len(told) < RETRY_CHARS_MAX else ""


def answer_of(answer: PodAnswer, view: DoorView, kind: str) -> tuple[int, bytes, dict[str, str]]:
    """Return the status, body and headers that the client gets.

    Raises :class:`PodSilent` if the answer cannot come from the pod's API.
    """
    is_error = HTTPStatus.BAD_REQUEST <= answer.status < HTTPStatus.INTERNAL_SERVER_ERROR
    is_fine = HTTPStatus.OK <= answer.status < HTTPStatus.MULTIPLE_CHOICES
    if not (is_error or is_fine) or answer.status == HTTPStatus.UNAUTHORIZED:
        raise PodSilent.of_status(answer.status, may_have_arrived=True)
    is_gone(answer)
    headers = {"retry-after": after} if (after := _retry_after(answer)) else {}
    place = _place(answer.headers.get("location"))
    if place is not None:
        version = "/v2.1" if kind == SERVER else "/v3"
        headers["location"] = f"{view.address}{version}{place}"
    if not answer.body or answer.status == HTTPStatus.NO_CONTENT:
        return answer.status, b"", headers
    told = decoded(answer)
    metadata = told.get("metadata")
    if kind == VOLUME and isinstance(metadata, dict) and metadata.keys() >= OF_IMAGES:
        told = {**told, "metadata": view.image_metadata(metadata)}
    headers["content-type"] = "application/json"
    return answer.status, msgspec.json.encode(view.change(told)), headers
