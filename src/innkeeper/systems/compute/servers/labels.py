"""What owners write on their servers: metadata (keys with values) and tags (words).

Always true: a server has at most as many metadata items as the project's quota allows, and at
most ``TAGS_MAX`` tags, each once and in the order of the alphabet.
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


def check_metadata(items: Mapping[str, str], items_max: int) -> None:
    """Raise :class:`QuotaExceeded` for more items than a server may have; -1 is any number."""
    if 0 <= items_max < len(items):
        raise QuotaExceeded(
            f"Maximum number of metadata items exceeds {items_max}: {len(items)} were given."
        )


def set_metadata(
    tx: Tx, server: Server, items: Mapping[str, str], items_max: int, now: datetime
) -> Mapping[str, str]:
    """Replace all of a server's metadata, and give it."""
    check_metadata(items, items_max)
    servers.write(tx, server, {"metadata": dict(items)}, now)
    return items


def add_metadata(
    tx: Tx, server: Server, items: Mapping[str, str], items_max: int, now: datetime
) -> Mapping[str, str]:
    """Add to a server's metadata, and give all of it; keys that are there get new values."""
    return set_metadata(tx, server, {**server.metadata, **items}, items_max, now)


def remove_metadata(tx: Tx, server: Server, key: str, now: datetime) -> None:
    """Remove one item; :class:`NotFound` if it is not there."""
    rest = {name: value for name, value in server.metadata.items() if name != key}
    if len(rest) == len(server.metadata):
        raise NotFound("Metadata item was not found")
    servers.write(tx, server, {"metadata": rest}, now)


def set_tags(tx: Tx, server: Server, tags: Collection[str], now: datetime) -> list[str]:
    """Replace all of a server's tags, and give them."""
    wanted = sorted(set(tags))
    if len(wanted) > TAGS_MAX:
        raise Invalid(
            f"The number of tags exceeded the per-server limit {TAGS_MAX}: "
            f"{len(wanted)} were given."
        )
    servers.write(tx, server, {"tags": wanted}, now)
    return wanted


def add_tag(tx: Tx, server: Server, tag: str, now: datetime) -> bool:
    """Add one tag; False if it was there."""
    if tag in server.tags:
        return False
    set_tags(tx, server, [*server.tags, tag], now)
    return True


def remove_tag(tx: Tx, server: Server, tag: str, now: datetime) -> None:
    """Remove one tag; :class:`NotFound` if it is not there."""
    if tag not in server.tags:
        raise NotFound(f"Server {server.uuid} has no tag '{tag}'")
    set_tags(tx, server, [each for each in server.tags if each != tag], now)
