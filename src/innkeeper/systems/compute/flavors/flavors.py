"""Manage flavors, which are shapes of servers, with their extra specs and access lists.

Always true: a private flavor is visible only to its projects and to administrators.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from innkeeper.domain.compute import Flavor
from innkeeper.domain.errors import AlreadyExists, Conflict, Invalid, NotFound
from innkeeper.domain.listing import FlavorSelection
from innkeeper.store.queries.compute import flavors
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.flavors import demands

_RESOURCES = re.compile(r"resources:[A-Z0-9_]+")
_TRAIT = re.compile(r"trait:[A-Z0-9_]+")
_AMOUNT = re.compile(r"[0-9]{1,10}")

# Queries that are re-exported unchanged.
by_public_ids = flavors.by_public_ids


def may_use(tx: Tx, flavor: Flavor, project_id: str | None) -> bool:
    """Return True if a project may see and use a flavor."""
    if flavor.is_public:
        return True
    return project_id is not None and flavors.has_project(tx, flavor.id, project_id)


def for_resize(tx: Tx, flavor_id: str, project_id: str, *, is_admin: bool) -> Flavor:
    """Return the flavor for a resize. Raises :class:`Invalid` if the project may not use it."""
    flavor = flavors.by_public_ids(tx, [flavor_id]).get(flavor_id)
    if flavor is None or flavor.is_disabled or not (is_admin or may_use(tx, flavor, project_id)):
        raise Invalid(f"Flavor {flavor_id} could not be found.")
    return flavor


def get(tx: Tx, flavor_id: str, project_id: str | None, *, is_admin: bool) -> Flavor:
    """Return a flavor by its public id. Raises :class:`NotFound` if the caller may not see it."""
    flavor = flavors.by_public_ids(tx, [flavor_id]).get(flavor_id)
    if flavor is None or not (is_admin or may_use(tx, flavor, project_id)):
        raise NotFound(f"Flavor {flavor_id} could not be found.")
    return flavor


def page(
    tx: Tx, selection: FlavorSelection, marker: str | None, limit: int, *, is_admin: bool
) -> list[Flavor]:
    """Return at most ``limit`` flavors after the flavor with the public id ``marker``."""
    after = None
    if marker is not None:
        try:
            after = get(tx, marker, selection.project_id, is_admin=is_admin)
        except NotFound as error:
            raise Invalid(f"marker [{marker}] not found") from error
    return flavors.page(tx, selection, after, limit)


def create(tx: Tx, flavor: Flavor, *, now: datetime) -> Flavor:
    """Create a flavor. The store assigns its row id."""
    if flavors.by_public_ids(tx, [flavor.flavor_id]):
        raise AlreadyExists(f"Flavor with ID {flavor.flavor_id} already exists.")
    if flavors.is_name_taken(tx, flavor.name):
        raise AlreadyExists(f"Flavor with name {flavor.name} already exists.")
    return flavors.insert(tx, flavor, now)


def describe(tx: Tx, flavor_id: str, description: str | None, *, now: datetime) -> Flavor:
    """Replace a flavor's description, its only mutable field."""
    flavor = get(tx, flavor_id, None, is_admin=True)
    flavors.describe(tx, flavor.id, description, now)
    return dataclasses.replace(flavor, description=description, updated_at=now)


def _editable(tx: Tx, flavor_id: str, *, by_lease: bool = False) -> Flavor:
    """Return a flavor that is about to be edited.

    Raises :class:`Conflict` for the flavor of a lease, unless the lease itself edits the flavor. If
    others edited the flavor, the slots of an active lease might become unusable.
    """
    flavor = get(tx, flavor_id, None, is_admin=True)
    if not by_lease and flavor.flavor_id in demands.reservations_of(demands.of(flavor, {})):
        raise Conflict(f"Flavor {flavor_id} belongs to a lease. Change the lease instead.")
    return flavor


def delete(tx: Tx, flavor_id: str, *, by_lease: bool = False) -> None:
    """Delete a flavor. Servers with this flavor keep a copy of it."""
    flavors.delete(tx, _editable(tx, flavor_id, by_lease=by_lease).id)


def add_extra_specs(
    tx: Tx, flavor_id: str, added: Mapping[str, str], *, is_checked: bool, now: datetime
) -> None:
    """Add extra specs to a flavor. Existing extra specs with the same keys are replaced.

    With ``is_checked``, values that the scheduler does not understand are rejected. Numbered
    groups are always rejected.
    """
    demands.refuse_groups(added)
    if is_checked:
        check_extra_specs(added)
    flavor = _editable(tx, flavor_id)
    flavors.replace_extra_specs(tx, flavor, {**flavor.extra_specs, **added}, now)


def remove_extra_spec(tx: Tx, flavor_id: str, key: str, *, now: datetime) -> None:
    """Remove one extra spec of a flavor."""
    flavor = _editable(tx, flavor_id)
    extra_spec(flavor, key)
    kept = {name: value for name, value in flavor.extra_specs.items() if name != key}
    flavors.replace_extra_specs(tx, flavor, kept, now)


def extra_spec(flavor: Flavor, key: str) -> str:
    """Return the value of one extra spec. Raises :class:`NotFound` if the flavor lacks the key."""
    if key not in flavor.extra_specs:
        raise NotFound(f"Flavor {flavor.flavor_id} has no extra specs with key {key}.")
    return flavor.extra_specs[key]


def check_extra_specs(specs: Mapping[str, str]) -> None:
    """Raise :class:`Invalid` for extra specs whose values the scheduler does not understand.

    Only ``trait:``, ``resources:`` and ``group_policy`` are checked.
    """
    for key, value in specs.items():
        allowed = _allowed(key, value)
        if allowed is not None:
            raise Invalid(
                f"Validation failed; '{value}' is not a valid value for extra spec '{key}'. "
                f"Expected {allowed}."
            )


def _allowed(key: str, value: str) -> str | None:
    """Return a description of the expected value, or ``None`` if the value is valid."""
    if key.startswith(demands.TRAIT):
        if _TRAIT.fullmatch(key) is None:
            return "the key to be trait:NAME with NAME in upper case"
        return None if value in demands.VERDICTS else "'required', 'forbidden' or 'preferred'"
    if key.startswith(demands.RESOURCES):
        if _RESOURCES.fullmatch(key) is None:
            return "the key to be resources:CLASS with CLASS in upper case"
        return None if _AMOUNT.fullmatch(value) else "a whole number"
    if key == demands.GROUP_POLICY:
        return None if value in ("none", "isolate") else "'none' or 'isolate'"
    return None


def projects_of(tx: Tx, flavor_id: str) -> list[str]:
    """Return the projects that may use a private flavor."""
    flavor = get(tx, flavor_id, None, is_admin=True)
    if flavor.is_public:
        raise NotFound("Access list not available for public flavors.")
    return flavors.projects_of(tx, flavor.id)


def add_project(
    tx: Tx, flavor_id: str, project_id: str, *, takes_public: bool = False
) -> list[str]:
    """Give a project access to a flavor, and return all projects that have access.

    A public flavor needs no access list, so it is rejected unless ``takes_public`` is True.
    """
    flavor = get(tx, flavor_id, None, is_admin=True)
    if flavor.is_public and not takes_public:
        raise Conflict("Can not add access to a public flavor.")
    if flavors.has_project(tx, flavor.id, project_id):
        raise AlreadyExists(
            f"Flavor access already exists for flavor {flavor_id} and project "
            f"{project_id} combination."
        )
    flavors.add_project(tx, flavor.id, project_id)
    return flavors.projects_of(tx, flavor.id)


def remove_project(tx: Tx, flavor_id: str, project_id: str) -> list[str]:
    """Remove a project's access to a flavor, and return the remaining projects."""
    flavor = get(tx, flavor_id, None, is_admin=True)
    if not flavors.remove_project(tx, flavor.id, project_id):
        raise NotFound(f"Flavor access not found for {flavor_id} / {project_id} combination.")
    return flavors.projects_of(tx, flavor.id)


def facts_of(flavor: Flavor) -> dict[str, Any]:
    """Return a flavor in the form that is stored with a server."""
    return {
        "id": flavor.flavor_id,
        "name": flavor.name,
        "vcpus": flavor.vcpus,
        "memory_mb": flavor.memory_mb,
        "disk_gb": flavor.disk_gb,
        "ephemeral_gb": flavor.ephemeral_gb,
        "swap_mb": flavor.swap_mb,
        "extra_specs": dict(flavor.extra_specs),
    }


def of_facts(facts: Mapping[str, Any]) -> Flavor:
    """Return the flavor that is stored with a server.

    Since the boot, the flavor's own row may have been changed or deleted.
    """
    more = {name: value for name, value in facts.items() if name != "id"}
    return Flavor(id=0, flavor_id=facts["id"], **more)
