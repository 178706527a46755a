"""Check the servers that child zones list, before this zone shows them.

Always true: a checked row has an id, and a sort key that ends with this id. Each id occurs once.
The row has all fields that this zone rewrites for older versions of the API, with values of the
right types.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from innkeeper.domain.ids import UUID_PATTERN

NUMBER_MAX = 2**63 - 1
TEXTS = ("name", "tenant_id", "user_id", "status")
PARTS = {"metadata": dict, "tags": list, "flavor": dict, "addresses": dict}


@dataclass(frozen=True, slots=True)
class ListRow:
    """One server in a list, with its sort key. The key ends with the server's id.

    ``flavor_id`` is shown in older versions of the API.
    """

    key: tuple[object, ...]
    shown: dict[str, Any]
    flavor_id: str = ""

    @property
    def uuid(self) -> str:
        """The server's id."""
        return str(self.key[-1])


def checked(
    shown: Sequence[object],
    keys: Sequence[object],
    flavors: Sequence[object],
    key_length: int,
    *,
    has_details: bool,
) -> list[ListRow]:
    """Return the usable rows of a list, without duplicates.

    ``flavors`` has the flavor id of each row.
    """
    found: dict[str, ListRow] = {}
    for key, row, flavor in zip_longest(keys, shown, flavors[: len(shown)]):
        if not isinstance(key, list) or len(key) != key_length or not all(map(_is_plain, key)):
            continue
        uuid = key[-1]
        if not isinstance(row, dict) or row.get("id") != uuid or not _is_server(row):
            continue
        if not has_details or _has_details(row):
            flavor_id = flavor if isinstance(flavor, str) else ""
            found.setdefault(uuid, ListRow(tuple(key), row, flavor_id))
    return list(found.values())


def _is_plain(value: object) -> bool:
    if isinstance(value, int):
        return abs(value) <= NUMBER_MAX
    return (
        value is None
        or isinstance(value, str)
        or (isinstance(value, float) and math.isfinite(value))
    )


def _is_server(row: Mapping[str, object]) -> bool:
    """Return True if a row has all fields of a list without details."""
    uuid = row.get("id")
    if not isinstance(uuid, str) or UUID_PATTERN.fullmatch(uuid) is None:
        return False
    return isinstance(row.get("links"), list) and isinstance(row.get("name"), str)


def _has_details(row: Mapping[str, object]) -> bool:
    image = row.get("image")
    has_image = image == "" or (
        isinstance(image, dict) and isinstance(image.get("properties"), dict)
    )
    return (
        has_image
        and all(isinstance(row.get(name), str) for name in TEXTS)
        and all(isinstance(row.get(name), kind) for name, kind in PARTS.items())
    )
