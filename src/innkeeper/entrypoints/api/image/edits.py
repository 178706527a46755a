"""Converts request bodies to new images, and applies JSON patches to images."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from innkeeper.domain.errors import Conflict, Forbidden, Invalid, TooLarge
from innkeeper.domain.images import Image
from innkeeper.entrypoints.api.image.schemas import PROPERTY, READ_ONLY, RESERVED, WRITABLE
from innkeeper.entrypoints.api.image.view import FIELDS
from innkeeper.entrypoints.api.routing import Call
from innkeeper.entrypoints.api.validation import LimitedValidator

PROPERTIES_MAX = 128
PROPERTY_NAME_MAX = 255
TAGS_MAX = 128
INDEX_DIGITS_MAX = 4
_VALIDATORS = {
    name: LimitedValidator(schema) for name, schema in {**WRITABLE, "": PROPERTY}.items()
}
"""Validators, by the attribute that they check. The empty key is for properties."""


def new(call: Call, body: Mapping[str, Any]) -> Image:
    """Return the new image that a body describes."""
    for name in body:
        _reject_read_only(name)
    image = Image(
        id=body.get("id", "").lower() or call.site.ids.uuid(),
        name=None,
        # If the token has no project, the user owns the image.
        owner=call.context.project_id or call.context.user_id or "",
        visibility="shared",
        status="queued",
        disk_format=None,
        container_format=None,
        min_ram_mb=0,
        min_disk_gb=0,
        size_bytes=None,
        checksum=None,
        sha512=None,
        is_protected=False,
        is_hidden=False,
        tags=(),
        properties={},
        created_at=call.now,
        updated_at=call.now,
    )
    for name, value in body.items():
        if name != "id":
            image = _with(call, image, name, value)
    return image


def patched(call: Call, image: Image, changes: Sequence[Mapping[str, Any]]) -> Image:
    """Return the image after a patch. Raises an error at the first invalid change."""
    for change in changes:
        name, index = _target(change["path"])
        _reject_read_only(name)
        if name == "id":
            raise Forbidden(f"Attribute '{name}' is read-only.")
        if index is not None:
            image = _with(call, image, name, _spliced(image.tags, index, change))
        elif change["op"] == "remove":
            image = _without(image, name)
        else:
            is_there = name in FIELDS or name in image.properties
            if change["op"] == "replace" and not is_there:
                raise Conflict(f"Property {name} does not exist.")
            image = _with(call, image, name, _value(change))
    return image


def _value(change: Mapping[str, Any]) -> Any:
    if "value" not in change:
        raise Invalid("Operation objects must contain a 'value' member.")
    return change["value"]


def _target(path: str) -> tuple[str, str | None]:
    """Return the attribute that a JSON pointer names.

    If the pointer names a tag, also returns the index of the tag.
    """
    steps = [step.replace("~1", "/").replace("~0", "~") for step in path.split("/")[1:]]
    if len(steps) == 1:
        return steps[0], None
    if len(steps) == 2 and steps[0] == "tags":  # noqa: PLR2004 - an attribute and an index
        return steps[0], steps[1]
    raise Invalid(f"Invalid JSON pointer for this resource: '{path[:PROPERTY_NAME_MAX]}'")


def _spliced(tags: Sequence[str], index: str, change: Mapping[str, Any]) -> list[Any]:
    """Return the tags after a change that adds, replaces or removes a tag."""
    changed: list[Any] = list(tags)
    is_add = change["op"] == "add"
    last = len(changed) if is_add else len(changed) - 1
    if index == "-" and is_add:
        at = last
    elif index.isascii() and index.isdigit() and len(index) <= INDEX_DIGITS_MAX:
        at = int(index)
    else:
        raise Invalid("The index of a tag must be a number, or '-' to add it at the end.")
    if at > last:
        raise Conflict(f"There is no tag at index {at}.")
    if is_add:
        changed.insert(at, _value(change))
    elif change["op"] == "remove":
        del changed[at]
    else:
        changed[at] = _value(change)
    return changed


def _reject_read_only(name: str) -> None:
    if name in READ_ONLY:
        raise Forbidden(f"Attribute '{name}' is read-only.")
    if name in RESERVED:
        raise Forbidden(f"Attribute '{name}' is reserved.")


def _with(call: Call, image: Image, name: str, value: Any) -> Image:
    error = next(_VALIDATORS[name if name in WRITABLE else ""].iter_errors(value), None)
    if error is not None:
        raise Invalid(f"Invalid value for '{name}': {error.message[:PROPERTY_NAME_MAX]}")
    if name == "tags":
        return with_tags(image, value)
    if name in WRITABLE:
        _demand(call, image, name, value)
        return dataclasses.replace(image, **{FIELDS[name]: value})
    if len(name) > PROPERTY_NAME_MAX or "\0" in name or not name:
        raise Invalid("A property's name must have 1 to 255 characters, without NUL characters.")
    properties = {**image.properties, name: value}
    if len(properties) > PROPERTIES_MAX:
        raise TooLarge(
            "The limit has been exceeded on the number of allowed image properties. "
            f"Attempted: {len(properties)}, Maximum: {PROPERTIES_MAX}"
        )
    return dataclasses.replace(image, properties=properties)


def _without(image: Image, name: str) -> Image:
    if name in FIELDS:
        raise Forbidden(f"Property {name} may not be removed.")
    if name not in image.properties:
        raise Conflict(f"Property {name} does not exist.")
    kept = {key: value for key, value in image.properties.items() if key != name}
    return dataclasses.replace(image, properties=kept)


def _demand(call: Call, image: Image, name: str, value: Any) -> None:
    if name == "visibility" and value != image.visibility:
        if value == "public":
            call.demand("publicize_image")
        elif value == "community":
            call.demand("communitize_image")
    if name == "owner" and value != image.owner:
        call.demand("set_image_owner")
    if name in ("disk_format", "container_format") and image.status != "queued":
        raise Forbidden(f"Attribute {name} can be only replaced for a queued image.")


def with_tags(image: Image, tags: Sequence[str]) -> Image:
    """Return the image with these tags, without duplicates."""
    unique = tuple(dict.fromkeys(tags))
    if len(unique) > TAGS_MAX:
        raise TooLarge(
            "The limit has been exceeded on the number of allowed image tags. "
            f"Attempted: {len(unique)}, Maximum: {TAGS_MAX}"
        )
    return dataclasses.replace(image, tags=unique)
