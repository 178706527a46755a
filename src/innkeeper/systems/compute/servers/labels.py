"""Read and change the metadata and tags of servers.

Always true: the project's quota limits the number of metadata items of a server. A server has at
most ``TAGS_MAX`` tags, which are unique and sorted.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime

from innkeeper.domain.compute import Server
from innkeeper.domain.errors import Invalid, NotFound, QuotaExceeded
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.servers import servers

TAGS_MAX = 50
TAG_CHARS_MAX = 60


def check_metadata(items: Collection[str], items_max: int) -> None:
    """Raise :class:`QuotaExceeded` for more than ``items_max`` items. -1 means no limit."""
    if 0 <= items_max < len(items):
        raise QuotaExceeded(
            f"Maximum number of metadata items exceeds {items_max}: {len(items)} were given."
        )


def set_metadata(
    tx: Tx, server: Server, items: Mapping[str, str], items_max: int, now: datetime
) -> Mapping[str, str]:
    """Replace and return all metadata of a server."""
    check_metadata(items, items_max)
    servers.write(tx, server, {"metadata": dict(items)}, now)
    return items


def add_metadata(
    tx: Tx, server: Server, items: Mapping[str, str], items_max: int, now: datetime
) -> Mapping[str, str]:
    """Add or replace items of a server's metadata, and return all metadata of the server."""
    return set_metadata(tx, server, {**server.metadata, **items}, items_max, now)


def remove_metadata(tx: Tx, server: Server, key: str, now: datetime) -> None:
    """Remove one metadata item. Raises :class:`NotFound`."""
    rest = {name: value for name, value in server.metadata.items() if name != key}
    if len(rest) == len(server.metadata):
        raise NotFound("Metadata item was not found")
    servers.write(tx, server, {"metadata": rest}, now)


def set_tags(tx: Tx, server: Server, tags: Collection[str], now: datetime) -> list[str]:
    """Replace and return all tags of a server."""
    wanted = sorted(set(tags))
    if len(wanted) > TAGS_MAX:
        raise Invalid(
            f"The number of tags exceeded the per-server limit {TAGS_MAX}: "
            f"{len(wanted)} were given."
        )
    servers.write(tx, server, {"tags": wanted}, now)
    return wanted


def add_tag(tx: Tx, server: Server, tag: str, now: datetime) -> bool:
    """Add one tag. Return False if the server already has the tag."""
    if tag in server.tags:
        return False
    set_tags(tx, server, [*server.tags, tag], now)
    return True


def remove_tag(tx: Tx, server: Server, tag: str, now: datetime) -> None:
    """Remove one tag. Raises :class:`NotFound`."""
    if tag not in server.tags:
        raise NotFound(f"Server {server.uuid} has no tag '{tag}'")
    set_tags(tx, server, [each for each in server.tags if each != tag], now)
