"""These handlers return empty lists of snapshots, backups and other unsupported resources.

Requests to create such resources are rejected.
"""

from __future__ import annotations

from innkeeper.domain.errors import Invalid
from innkeeper.entrypoints.api.routing import Answer, Call, Handler

NOUNS = {"snapshots": "Snapshots", "backups": "Backups of volumes", "groups": "Groups of volumes"}
"""The collections whose routes reject new members. Each is mapped to its name in the error."""
DETAILED = (
    *NOUNS,
    "group_snapshots",
    "group_types",
    "consistencygroups",
    "cgsnapshots",
    "manageable_volumes",
    "manageable_snapshots",
)
"""The collections that are also listed with details."""
EMPTY = (*DETAILED, "clusters", "messages", "qos-specs")
"""The collections that are always empty."""
KEYS = {
    "qos-specs": "qos_specs",
    "manageable_volumes": "manageable-volumes",
    "manageable_snapshots": "manageable-snapshots",
}
"""The keys of collections in bodies, if they differ from the names in paths."""


def empty(collection: str) -> Handler:
    """Return a handler that shows a collection as an empty list."""

    async def listed(call: Call) -> Answer:
        return Answer(200, {KEYS.get(collection, collection): []})

    listed.__doc__ = f"List {collection} (always empty)."
    return listed


def refused(collection: str) -> Handler:
    """Return a handler that rejects a request to create a member of a collection."""

    async def refuse(call: Call) -> Answer:
        raise Invalid(f"{NOUNS[collection]} are not supported.")

    refuse.__doc__ = f"Refuse to create {collection}."
    return refuse


async def resource_filters(call: Call) -> Answer:
    """List the filters that lists of volumes accept."""
    return Answer(200, {"resource_filters": [{"resource": "volume", "filters": list(FILTERS)}]})


FILTERS = (
    "name",
    "status",
    "metadata",
    "bootable",
    "availability_zone",
    "created_at",
    "updated_at",
)
