"""The image catalogue's rows."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from innkeeper.domain.compute import Image
from innkeeper.domain.errors import AlreadyExists, ConcurrentUpdate
from innkeeper.domain.listing import ImageSelection
from innkeeper.store.by_ids import IDS
from innkeeper.store.paging import SortKey, behind, ordered
from innkeeper.store.prepared import PreparedForIds
from innkeeper.store.tables.compute import images
from innkeeper.store.transactions import Tx

_COLUMNS: Mapping[str, sa.Column[Any]] = {
    field.name: images.c[field.name] for field in dataclasses.fields(Image)
}
_NO_TEXT = ""
_NO_SIZE = -1
_SORT_NULLS: Mapping[str, str | int] = {
    "name": _NO_TEXT,
    "disk_format": _NO_TEXT,
    "container_format": _NO_TEXT,
    "checksum": _NO_TEXT,
    "size_bytes": _NO_SIZE,
}
"""What a missing value sorts as."""
_BY_IDS = PreparedForIds(sa.select(*_COLUMNS.values()).where(images.c.id.in_(IDS)))
ROWS_PER_LOOK = 200
"""Rows read at once while looking for those that a predicate accepts."""


def get_many(tx: Tx, ids: Collection[str]) -> dict[str, Image]:
    """The images with these ids; unknown ids are left out."""
    found = (_image(row) for row in _BY_IDS.rows(tx, ids))
    return {image.id: image for image in found}


def page(tx: Tx, wanted: ImageSelection, after: Image | None, limit: int) -> list[Image]:
    """At most ``limit`` images behind ``after``, in the wanted order."""
    accepted: list[Image] = []
    while len(accepted) < limit:
        look = limit if wanted.accepts is None else ROWS_PER_LOOK
        rows = _look(tx, wanted, after, look)
        accepted += [each for each in rows if wanted.accepts is None or wanted.accepts(each)]
        if len(rows) < look:
            break
        after = rows[-1]
    return accepted[:limit]


def _look(tx: Tx, wanted: ImageSelection, after: Image | None, limit: int) -> list[Image]:
    query = sa.select(*_COLUMNS.values())
    for field, values in wanted.exact.items():
        query = query.where(_COLUMNS[field].in_(values))
    if wanted.viewer is not None:
        visible = ["public", "community"] if wanted.with_community else ["public"]
        query = query.where(
            sa.or_(images.c.visibility.in_(visible), images.c.owner == wanted.viewer)
        )
    if wanted.size_bytes_min is not None:
        query = query.where(images.c.size_bytes >= wanted.size_bytes_min)
    if wanted.size_bytes_max is not None:
        query = query.where(images.c.size_bytes <= wanted.size_bytes_max)
    keys = [SortKey(_sort_column(field), descends) for field, descends in wanted.sort]
    if after is not None:
        query = query.where(behind(keys, [_sort_value(after, f) for f, _ in wanted.sort]))
    return [_image(row) for row in tx.execute(ordered(query, keys).limit(limit))]


def _sort_column(field: str) -> sa.ColumnElement[Any]:
    column = _COLUMNS[field]
    if field in _SORT_NULLS:
        return sa.func.coalesce(column, _SORT_NULLS[field])
    return column


def _sort_value(image: Image, field: str) -> Any:
    value = getattr(image, field)
    return _SORT_NULLS[field] if value is None else value


def insert(tx: Tx, image: Image) -> None:
    """Add an image."""
    try:
        tx.execute(images.insert(), _values(image))
    except sa.exc.IntegrityError as error:
        raise AlreadyExists(f"Image ID {image.id} already exists!") from error


def replace(tx: Tx, image: Image, seen_at: datetime) -> None:
    """Write an image as it is now, as long as nobody changed it after ``seen_at``."""
    values = _values(image)
    touched = tx.execute(
        images.update()
        .where(images.c.id == values.pop("id"))
        .where(images.c.updated_at == seen_at)
        .values(values)
    ).rowcount
    if touched != 1:
        raise ConcurrentUpdate(f"Image {image.id} was changed at the same moment.")


def delete(tx: Tx, image_id: str) -> None:
    """Remove an image."""
    tx.execute(images.delete().where(images.c.id == image_id))


def _values(image: Image) -> dict[str, Any]:
    values = {name: getattr(image, name) for name in _COLUMNS}
    return {**values, "tags": list(image.tags), "properties": dict(image.properties)}


def _image(row: Sequence[Any]) -> Image:
    values = dict(zip(_COLUMNS, row, strict=True))
    values["tags"] = tuple(values["tags"])
    return Image(**values)
