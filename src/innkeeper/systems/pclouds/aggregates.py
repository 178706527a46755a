"""What the aggregates of this room are called, and who cannot be told apart in their metadata.

Source: the seed *Whole Host Allocation*, its tables of keys. What the keys say of hosts and
projects is put into words, and read, by the API.

Always true: no project can be let in whose key would be that of something else, and nothing
that can be no project's id; with ``auth = "builtin"``, nothing that is no project.
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
"""Characters of a key, and of a value."""
NAMES = frozenset({TYPE, FLAVOR_ID, DESCRIPTION, UNITS, ID, NAME, OWNER})


def flavor_name(flavor_id: str) -> str:
    """What the aggregate of a host flavor is called."""
    return f"{NAME_PREFIX}host_flavor:{flavor_id}"


def pcloud_name(uuid: str) -> str:
    """What the aggregate of a pcloud is called."""
    return f"{NAME_PREFIX}{uuid}"


def project_of(key: str) -> str | None:
    """The project that a key lets in; ``None`` for keys that are of something else."""
    is_other = key in NAMES or key.startswith((HOST, HOST_STATE)) or key == PREFIX
    return None if is_other or not key.startswith(PREFIX) else key.removeprefix(PREFIX)


def demand_project(project_id: str) -> None:
    """Raise :class:`Invalid` for no project's id, and for one whose key is something else's.

    Whether there is such a project, :func:`demand_known` looks up where that can be known.
    """
    if not _may_be_project(project_id):
        raise Invalid(
            "A project's id is made of printable characters without a slash. It neither begins "
            "nor ends with a space, and is not made of dots alone."
        )
    key = f"{PREFIX}{project_id}"
    if project_of(key) != project_id or len(key) > KEY_MAX:
        raise Invalid(f"The project {project_id[:60]} cannot be told apart from other facts.")


def demand_known(tx: Tx, project_id: str, context: PcloudContext) -> None:
    """Raise :class:`Invalid` for an id of no project, where this database has all projects.

    Where an external Keystone keeps the projects, or nothing does, any id is taken.
    """
    if not context.knows_projects:
        return
    try:
        projects.get(tx, project_id)
    except NotFound:
        raise Invalid(f"Project {project_id[:60]} does not exist.") from None


def _may_be_project(project_id: str) -> bool:
    # In a path, dots alone are a direction, and what is no text became the last of these signs.
    return (
        project_id.strip(" .") != ""
        and project_id == project_id.strip()
        and project_id.isprintable()
        and not any(sign in project_id for sign in "/\N{REPLACEMENT CHARACTER}")
    )
