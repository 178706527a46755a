"""Database access for images."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import fields
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from innkeeper.domain.errors import AlreadyExists, ConcurrentUpdate
from innkeeper.domain.images import Image
from innkeeper.domain.listing import ImageSelection
from innkeeper.store import records
from innkeeper.store.by_ids import IDS
from innkeeper.store.paging import SortKey, ordered, rows_after
from innkeeper.store.prepared import PreparedForIds
from innkeeper.store.tables.compute import images
from innkeeper.store.transactions import Tx

_IMAGES = sa.select(*records.columns(images, Image))
_TAGS = [each.name for each in fields(Image)].index("tags")
_SORT_NULLS: Mapping[str, str | int] = {
    **dict.fromkeys(("name", "disk_format", "container_format", "checksum"), ""),
    "size_bytes": -1,
}
"""The values that replace NULL for sorting."""
_BY_IDS = PreparedForIds(_IMAGES.where(images.c.id.in_(IDS)))
ROWS_PER_LOOK = 200
"""The number of rows in one query, if a predicate in Python filters the rows."""


def get_many(tx: Tx, ids: Collection[str]) -> dict[str, Image]:
    """Return the images with these ids. Unknown ids are ignored."""
    found = (_image(row) for row in _BY_IDS.rows(tx, ids))
    return {image.id: image for image in found}


def page(tx: Tx, selection: ImageSelection, after: Image | None, limit: int) -> list[Image]:
    """Return up to ``limit`` images after the image ``after``, in the requested order."""
    accepted: list[Image] = []
    while len(accepted) < limit:
        count = limit if selection.accepts is None else ROWS_PER_LOOK
        rows = _rows(tx, selection, after, count)
        accepted += [each for each in rows if selection.accepts is None or selection.accepts(each)]
        if len(rows) < count:
            break
        after = rows[-1]
    return accepted[:limit]


def _rows(tx: Tx, selection: ImageSelection, after: Image | None, limit: int) -> list[Image]:
    query = _IMAGES
    for field, values in selection.exact.items():
        query = query.where(images.c[field].in_(values))
    if selection.viewer is not None:
        visible = ["public", "community"] if selection.with_community else ["public"]
        query = query.where(
            sa.or_(images.c.visibility.in_(visible), images.c.owner == selection.viewer)
        )
    if selection.size_bytes_min is not None:
        query = query.where(images.c.size_bytes >= selection.size_bytes_min)
    if selection.size_bytes_max is not None:
        query = query.where(images.c.size_bytes <= selection.size_bytes_max)
    keys = [SortKey(_sort_column(field), descends) for field, descends in selection.sort]
    if after is not None:
        query = query.where(rows_after(keys, [_sort_value(after, f) for f, _ in selection.sort]))
    return [_image(row) for row in tx.execute(ordered(query, keys).limit(limit))]


def _sort_column(field: str) -> sa.ColumnElement[Any]:
    column = images.c[field]
    if field in _SORT_NULLS:
        return sa.func.coalesce(column, _SORT_NULLS[field])
    return column


def _sort_value(image: Image, field: str) -> Any:
    value = getattr(image, field)
    return _SORT_NULLS[field] if value is None else value


def insert(tx: Tx, image: Image) -> None:
    """Insert an image."""
    try:
        tx.execute(images.insert(), _values(image))
    except sa.exc.IntegrityError as error:
        raise AlreadyExists(f"Image ID {image.id} already exists!") from error


def replace(tx: Tx, image: Image, seen_at: datetime) -> None:
    """Update an image. Raises :class:`ConcurrentUpdate` if the image changed after ``seen_at``."""
    values = _values(image)
    touched = tx.execute(
        images.update()
        .where(images.c.id == values.pop("id"))
        .where(images.c.updated_at == seen_at)
        .values(values)
    ).rowcount
    if touched != 1:
        raise ConcurrentUpdate(f"Image {image.id} was changed concurrently.")


def delete(tx: Tx, image_id: str) -> None:
    """Delete an image."""
    tx.execute(images.delete().where(images.c.id == image_id))


def _values(image: Image) -> dict[str, Any]:
    tags, properties = list(image.tags), dict(image.properties)
    return {**records.values(image), "tags": tags, "properties": properties}


def _image(row: Sequence[Any]) -> Image:
    values = list(row)
    values[_TAGS] = tuple(values[_TAGS])
    return Image(*values)
