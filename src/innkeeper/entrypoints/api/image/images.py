"""Handlers of images and their tags."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from innkeeper.domain.errors import Forbidden, Invalid, NotFound
from innkeeper.domain.images import Image
from innkeeper.engine.transactions import Tx
from innkeeper.entrypoints.api.image import edits
from innkeeper.entrypoints.api.image.listing import selection
from innkeeper.entrypoints.api.image.view import shown
from innkeeper.entrypoints.api.paging import limit_of, next_query
from innkeeper.entrypoints.api.routing import Answer, Call
from innkeeper.systems.compute.flavors import images


async def index(call: Call) -> Answer:
    """List images."""
    selected, marker, limit = selection(call), call.last("marker"), limit_of(call)
    found = await call.read(lambda tx: images.page(tx, selected, marker, limit))
    body: dict[str, Any] = {"images": [shown(image) for image in found]}
    first = next_query(call, "").removesuffix("marker=").removesuffix("&")
    body["first"] = f"/v2/images?{first}" if first else "/v2/images"
    if found and len(found) == limit:
        body["next"] = f"/v2/images?{next_query(call, found[-1].id)}"
    body["schema"] = "/v2/schemas/images"
    return Answer(200, body)


async def show(call: Call) -> Answer:
    """Show an image."""
    image = await call.read(lambda tx: visible(tx, call))
    return Answer(200, shown(image))


async def create(call: Call) -> Answer:
    """Create an image. Fields that the API does not define become properties of the image."""
    image = edits.new(call, call.body)
    created = await call.write(lambda tx: images.create(tx, image))
    return Answer(201, shown(created), {"location": f"{call.address}/v2/images/{created.id}"})


async def update(call: Call) -> Answer:
    """Update an image by a JSON patch. All changes are made, or none."""
    changed = await _change(call, lambda image: edits.patched(call, image, call.body))
    return Answer(200, shown(changed))


async def delete(call: Call) -> Answer:
    """Delete an image."""
    context, image_id = call.context, call.params["image_id"]
    await call.write(
        lambda tx: images.delete(tx, image_id, context.project_id, is_admin=context.is_admin)
    )
    return Answer(204)


async def add_tag(call: Call) -> Answer:
    """Add a tag to an image, unless the image already has the tag."""
    tag = call.params["tag"]
    if len(tag) > edits.PROPERTY_NAME_MAX:
        raise Invalid("A tag must have at most 255 characters.")
    await _change(call, lambda image: edits.with_tags(image, [*image.tags, tag]))
    return Answer(204)


async def remove_tag(call: Call) -> Answer:
    """Remove a tag from an image."""
    tag = call.params["tag"]

    def without(image: Image) -> Image:
        if tag not in image.tags:
            raise NotFound("Failed to find the tag on the image.")
        return edits.with_tags(image, [each for each in image.tags if each != tag])

    await _change(call, without)
    return Answer(204)


async def deactivate(call: Call) -> Answer:
    """Deactivate an image, so that no new servers can boot from it."""
    await _change(call, lambda image: _with_status(image, "active", "deactivated"))
    return Answer(204)


async def reactivate(call: Call) -> Answer:
    """Reactivate an image, so that new servers can boot from it again."""
    await _change(call, lambda image: _with_status(image, "deactivated", "active"))
    return Answer(204)


def _with_status(image: Image, before: str, after: str) -> Image:
    if image.status not in (before, after):
        raise Forbidden(f"Image status transition from {image.status} to {after} is not allowed")
    return dataclasses.replace(image, status=after)


def visible(tx: Tx, call: Call) -> Image:
    """Return the image in the path. Raises :class:`NotFound` if the caller may not see it."""
    context = call.context
    return images.get(tx, call.params["image_id"], context.project_id, is_admin=context.is_admin)


async def _change(call: Call, edit: Callable[[Image], Image]) -> Image:
    context, image_id = call.context, call.params["image_id"]
    return await call.write(
        lambda tx: images.change(
            tx, image_id, context.project_id, edit, is_admin=context.is_admin, now=call.now
        )
    )
