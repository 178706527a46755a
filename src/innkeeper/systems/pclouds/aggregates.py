"""Define the names and metadata keys of aggregates of host flavors and pclouds. Check project ids.

An aggregate's metadata has a key for each project that may use the pcloud. ``aggregate_edits`` says
what an edit of the keys means.

Source: the tables of keys in the design *Whole Host Allocation*.

Always true: a pcloud accepts only valid project ids whose key has no other meaning. With ``auth =
"builtin"``, a pcloud accepts only existing projects.
"""

from __future__ import annotations

from innkeeper.domain.errors import Invalid, NotFound
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.grouping.owned_aggregates import KEY_PREFIX, NAME_PREFIX
from innkeeper.systems.identity import projects
from innkeeper.systems.pclouds.context import PcloudContext

PREFIX = KEY_PREFIX
TYPE, FLAVOR_ID = "pcloud:type", "pcloud:flavor_id"
DESCRIPTION, UNITS = "pcloud:description", "pcloud:units"
ID, NAME, OWNER = "pcloud:id", "pcloud:name", "pcloud:owner"
HOST, HOST_STATE = "pcloud:host:", "pcloud:host_state:"
KEY_MAX = 255
"""The maximum number of characters of a metadata key, and also of a value."""
NAMES = frozenset({TYPE, FLAVOR_ID, DESCRIPTION, UNITS, ID, NAME, OWNER})


def flavor_name(flavor_id: str) -> str:
    return f"{NAME_PREFIX}host_flavor:{flavor_id}"


def pcloud_name(uuid: str) -> str:
    return f"{NAME_PREFIX}{uuid}"


def project_of(key: str) -> str | None:
    """Return the id of the project that a key allows, or ``None`` for any other key."""
    is_other = key in NAMES or key.startswith((HOST, HOST_STATE)) or key == PREFIX
    return None if is_other or not key.startswith(PREFIX) else key.removeprefix(PREFIX)


def demand_project(project_id: str) -> None:
    """Raise :class:`Invalid` if a project id is malformed, or if its key is reserved."""
    # "." and ".." have a meaning in paths. Text that could not be decoded contains U+FFFD.
    is_plain = project_id.strip() == project_id and project_id.isprintable()
    if (
        not is_plain
        or not project_id.strip(" .")
        or {"/", "\N{REPLACEMENT CHARACTER}"} & {*project_id}
    ):
        raise Invalid(
            "A project id must consist of printable characters other than a slash. It must not "
            "begin or end with a space, or consist of dots alone."
        )
    key = f"{PREFIX}{project_id}"
    if project_of(key) != project_id or len(key) > KEY_MAX:
        raise Invalid(
            f"The project id {project_id[:60]} is reserved: its metadata key has another meaning."
        )


def demand_known(tx: Tx, project_id: str, context: PcloudContext) -> None:
    """Raise :class:`Invalid` for an unknown project.

    With an external Keystone, or without authentication, this database does not have the projects.
    Every project id is then accepted.
    """
    if not context.knows_projects:
        return
    try:
        projects.get(tx, project_id)
    except NotFound:
        raise Invalid(f"Project {project_id[:60]} does not exist.") from None
