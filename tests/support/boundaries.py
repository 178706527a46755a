"""Finds ids that must not cross the boundary between two zones, even within base64 texts."""

from __future__ import annotations

import base64
import re
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing

from innkeeper.wiring import DATABASE_FILE
from tests.support.zone_processes import RunningZone

UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
CODED = re.compile(rb"[A-Za-z0-9_+/-]{16,}")
MAY_CROSS = {
    "servers": ("uuid", "image_id", "batch_id", "request_id", "hints"),
    "zone_servers": ("uuid", "batch_id"),
    "server_actions": ("server_uuid", "request_id"),
    "used_entries": ("server_uuid",),
    "child_zones": ("zone_id",),
    "zone_parents": ("ancestors",),
    "work_orders": ("server_uuid",),
    "allocations": ("consumer_uuid",),
    "consumers": ("uuid",),
    "images": ("id",),
    "migrations": ("server_uuid", "uuid"),
    "server_groups": ("uuid",),
    "server_group_members": ("server_uuid",),
}
"""The ids that zones tell each other: those of servers, requests, images, and zones themselves."""


def ids_of(zone: RunningZone) -> dict[str, str]:
    """Return all ids in the database of a zone that no other zone may see, and their places."""
    found: dict[str, str] = {}
    crossing: set[str] = set()
    for table, column, text in _texts(zone):
        for uuid in UUID.findall(text):
            if column in MAY_CROSS.get(table, ()):
                crossing.add(uuid)
            else:
                found[uuid] = f"{table}.{column}"
    return {uuid: place for uuid, place in found.items() if uuid not in crossing}


def _texts(zone: RunningZone) -> Iterator[tuple[str, str, str]]:
    path = zone.folder / DATABASE_FILE
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
        tables = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        for (table,) in tables:
            rows = database.execute(f'SELECT * FROM "{table}"')  # noqa: S608 - its own tables
            columns = [each[0] for each in rows.description]
            for row in rows:
                if table == "used_entries" and row[columns.index("server_uuid")] is None:
                    # The parent made this entry id. It told the child not to build the server.
                    continue
                for column, value in zip(columns, row, strict=True):
                    if isinstance(value, str):
                        yield table, column, value


def layers_of(raw: bytes) -> Iterator[bytes]:
    """Yield the bytes, and the decoded bytes of each text in them that may be base64."""
    yield raw
    for coded in set(CODED.findall(raw)):
        text = coded.replace(b"+", b"-").replace(b"/", b"_")
        # The base64 text may begin anywhere in the match, so all four alignments are tried.
        for start in range(4):
            part = text[start:]
            yield base64.urlsafe_b64decode(part[: len(part) // 4 * 4])


def seen_in(raw: Iterable[bytes], secrets: Iterable[str]) -> set[str]:
    """Return the secrets that occur in the bytes, or in a decoded base64 text within them."""
    left, found = set(secrets), set()
    for each in raw:
        for layer in layers_of(each):
            text = layer.lower()
            found |= {secret for secret in left if secret.lower().encode() in text}
            left -= found
    return found
