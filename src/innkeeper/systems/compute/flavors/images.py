"""Manage the catalogue of images. Scheduling reads the images' minimum sizes and properties.

Always true: the data of an upload is measured and then discarded, because agents have their own
copies of images. A private image is visible only to its project and to administrators.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from datetime import datetime

from innkeeper.domain.errors import AlreadyExists, Conflict, Forbidden, Invalid, NotFound
from innkeeper.domain.images import Image
from innkeeper.domain.listing import ImageSelection
from innkeeper.store.queries.compute import images
from innkeeper.store.transactions import Tx

QUEUED = "queued"
ACTIVE = "active"
OPEN_VISIBILITIES = frozenset({"public", "community"})
"""Visibilities of images that every project may see and boot."""

# Queries that are re-exported unchanged.
get_many = images.get_many


def may_see(image: Image, project_id: str | None) -> bool:
    """Return True if a project may see and boot an image."""
    return image.visibility in OPEN_VISIBILITIES or image.owner == project_id


def get(tx: Tx, image_id: str, project_id: str | None, *, is_admin: bool) -> Image:
    """Return the image with this id. Raises :class:`NotFound` if the caller may not see it."""
    image = images.get_many(tx, [image_id]).get(image_id)
    if image is None or not (is_admin or may_see(image, project_id)):
        raise NotFound(f"No image found with ID {image_id}")
    return image


def page(tx: Tx, selection: ImageSelection, marker: str | None, limit: int) -> list[Image]:
    """Return at most ``limit`` images after the image with the id ``marker``."""
    after = None
    if marker is not None:
        try:
            after = get(tx, marker, selection.viewer, is_admin=selection.viewer is None)
        except NotFound as error:
            raise Invalid("Invalid marker: there is no such image.") from error
    return images.page(tx, selection, after, limit)


def create(tx: Tx, image: Image) -> Image:
    """Add an image."""
    if images.get_many(tx, [image.id]):
        raise AlreadyExists(f"Image ID {image.id} already exists!")
    images.insert(tx, image)
    return image


Edit = Callable[[Image], Image]


def change(
    tx: Tx, image_id: str, project_id: str | None, edit: Edit, *, is_admin: bool, now: datetime
) -> Image:
    """Apply ``edit`` to an image of the project, and return the changed image."""
    image = _owned(tx, image_id, project_id, is_admin=is_admin)
    changed = dataclasses.replace(edit(image), updated_at=now)
    images.replace(tx, changed, image.updated_at)
    return changed


def activate(
    tx: Tx,
    image_id: str,
    project_id: str | None,
    size_bytes: int,
    checksum: str,
    sha512: str,
    *,
    is_admin: bool,
    now: datetime,
) -> None:
    """Record the upload of an image, which makes it bootable."""
    image = uploadable(tx, image_id, project_id, is_admin=is_admin)
    measured = dataclasses.replace(image, size_bytes=size_bytes, checksum=checksum, sha512=sha512)
    active = dataclasses.replace(measured, status=ACTIVE, updated_at=now)
    images.replace(tx, active, image.updated_at)


def uploadable(tx: Tx, image_id: str, project_id: str | None, *, is_admin: bool) -> Image:
    """Return the image if its data can be uploaded. Raises a refusal otherwise."""
    image = _owned(tx, image_id, project_id, is_admin=is_admin)
    if image.status != QUEUED:
        raise Conflict(f"Image status transition from {image.status} to saving is not allowed")
    if image.disk_format is None or image.container_format is None:
        raise Invalid(
            "Properties disk_format and container_format must be set prior to saving data."
        )
    return image


def delete(tx: Tx, image_id: str, project_id: str | None, *, is_admin: bool) -> None:
    """Delete an image. Servers that were booted from it keep running."""
    image = _owned(tx, image_id, project_id, is_admin=is_admin)
    if image.is_protected:
        raise Forbidden(f"Image {image_id} is protected and cannot be deleted.")
    images.delete(tx, image_id)


def _owned(tx: Tx, image_id: str, project_id: str | None, *, is_admin: bool) -> Image:
    image = get(tx, image_id, project_id, is_admin=is_admin)
    if not is_admin and image.owner != project_id:
        raise Forbidden(f"You are not permitted to modify image {image_id}: it is not yours.")
    return image
