"""Volume types: their demands on pools, and the projects that may use them.

Always true: the default type and types with volumes are not deleted. A private type is visible only
to administrators and to the projects that it is shared with.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from innkeeper.domain.errors import AlreadyExists, Forbidden, Invalid, NotFound
from innkeeper.domain.ids import canonical_uuid
from innkeeper.domain.placing import Comparison
from innkeeper.domain.volumes import VolumeType
from innkeeper.scheduling import comparisons
from innkeeper.store.queries.volumes import quota_usages, quotas, types, volumes
from innkeeper.store.transactions import Tx

CLASS_SPEC = "resource_class"
MULTIATTACH_SPEC = "multiattach"
ZONES_SPEC = "RESKEY:availability_zones"
TRAIT_SCOPE, CAPABILITY_SCOPE = "trait:", "capabilities:"
IN_USE = "Target volume type is still in use."
"""An error message of Cinder."""
USUAL_CLASS = "DISK_GB"

# Queries that are re-exported unchanged.
by_rows = types.by_rows
found = types.by_uuid
found_by_name = types.by_name
projects = types.projects


@dataclass(frozen=True, slots=True)
class TypeDemands:
    """The demands of a type on pools, and whether its volumes may have several attachments."""

    class_name: str
    required_traits: frozenset[str]
    forbidden_traits: frozenset[str]
    comparisons: tuple[Comparison, ...]
    zones: frozenset[str]
    is_multiattach: bool


def demands_of(extra_specs: Mapping[str, str]) -> TypeDemands:
    """Parse extra specs. Raises :class:`Invalid` for specs that the scheduler cannot read.

    Extra specs with other scopes are for drivers, and are ignored here.
    """
    traits: dict[str, set[str]] = {"required": set(), "forbidden": set()}
    compared: list[Comparison] = []
    for key, value in extra_specs.items():
        if key.startswith(TRAIT_SCOPE):
            if value not in traits:
                raise Invalid(f"The extra spec {key!r} must be 'required' or 'forbidden'.")
            traits[value].add(key.removeprefix(TRAIT_SCOPE))
        elif key.startswith(CAPABILITY_SCOPE):
            compared.append(comparisons.parse(key.removeprefix(CAPABILITY_SCOPE), value))
        elif ":" not in key and key not in (CLASS_SPEC, MULTIATTACH_SPEC):
            compared.append(comparisons.parse(key, value))
    zones = (each.strip() for each in extra_specs.get(ZONES_SPEC, "").split(","))
    return TypeDemands(
        extra_specs.get(CLASS_SPEC, USUAL_CLASS),
        frozenset(traits["required"]),
        frozenset(traits["forbidden"]),
        tuple(compared),
        frozenset(each for each in zones if each),
        is_multiattach(extra_specs),
    )


def is_multiattach(extra_specs: Mapping[str, str]) -> bool:
    """Return True if volumes of a type with these extra specs may have several attachments."""
    words = extra_specs.get(MULTIATTACH_SPEC, "").split()
    return len(words) == len(("<is>", "True")) and words[0] == "<is>" and words[1].lower() == "true"


def listing(tx: Tx, project_id: str | None, *, is_admin: bool) -> list[VolumeType]:
    """Return the types that a project may use, or all types for administrators, newest first."""
    every = types.every(tx)
    if is_admin:
        return every
    shared = types.shared_with(tx, project_id or "")
    return [each for each in every if each.is_public or each.id in shared]


def get(tx: Tx, uuid: str, project_id: str | None, *, is_admin: bool) -> VolumeType:
    """Return the type with this uuid. Raises :class:`NotFound` if the caller may not see it."""
    canonical = canonical_uuid(uuid)
    found = None if canonical is None else types.by_uuid(tx, canonical)
    if found is None or not (is_admin or _may_use(tx, found, project_id)):
        raise NotFound(f"Volume type {uuid} could not be found.")
    return found


def named(tx: Tx, name: str, project_id: str | None, *, is_admin: bool) -> VolumeType:
    """Return the type with this name or uuid. Raises the errors of :func:`get`."""
    found = types.by_name(tx, name)
    if found is not None and (is_admin or _may_use(tx, found, project_id)):
        return found
    try:
        return get(tx, name, project_id, is_admin=is_admin)
    except NotFound:
        raise NotFound(f"Volume type with name {name} could not be found.") from None


def _may_use(tx: Tx, found: VolumeType, project_id: str | None) -> bool:
    return found.is_public or project_id in types.projects(tx, found.id)


def create(
    tx: Tx,
    uuid: str,
    name: str,
    description: str | None,
    extra_specs: Mapping[str, str],
    *,
    is_public: bool,
    now: datetime,
) -> VolumeType:
    """Create a type. Raises :class:`AlreadyExists` if the name is in use."""
    demands_of(extra_specs)
    if types.by_name(tx, name) is not None:
        raise AlreadyExists(f"Volume Type {name} already exists.")
    values = {"uuid": uuid, "name": name, "description": description, "is_public": is_public}
    moments = {"created_at": now, "updated_at": now}
    types.insert(tx, {**values, **moments, "extra_specs": dict(extra_specs)})
    return get(tx, uuid, None, is_admin=True)


def change(
    tx: Tx, uuid: str, values: Mapping[str, str | bool | None], default_name: str, now: datetime
) -> VolumeType:
    """Change a type's name, description or visibility."""
    kind = get(tx, uuid, None, is_admin=True)
    if kind.name == default_name and values.get("name", kind.name) != kind.name:
        raise Invalid(f"The default volume type {kind.name} cannot be renamed.")
    if kind.name == default_name and values.get("is_public") is False:
        raise Invalid(f"The default volume type {kind.name} must be public.")
    types.change(tx, kind, values, now)
    return get(tx, uuid, None, is_admin=True)


def set_specs(tx: Tx, uuid: str, specs: Mapping[str, str], now: datetime) -> VolumeType:
    """Add or replace extra specs. The new demands apply only to new volumes."""
    kind = get(tx, uuid, None, is_admin=True)
    whole = {**kind.extra_specs, **specs}
    demands_of(whole)
    types.change(tx, kind, {"extra_specs": whole}, now)
    return get(tx, uuid, None, is_admin=True)


def unknown_spec(uuid: str, key: str) -> NotFound:
    """Return the error for an extra spec that a type does not have."""
    return NotFound(f"Volume Type {uuid} has no extra specs with key {key}.")


def unset_spec(tx: Tx, uuid: str, key: str, now: datetime) -> None:
    """Remove an extra spec. Raises :class:`NotFound` if the type has no such key."""
    kind = get(tx, uuid, None, is_admin=True)
    if key not in kind.extra_specs:
        raise unknown_spec(uuid, key)
    left = {name: value for name, value in kind.extra_specs.items() if name != key}
    types.change(tx, kind, {"extra_specs": left}, now)


def delete(tx: Tx, uuid: str, default_name: str) -> None:
    """Delete a type that no volume has."""
    kind = get(tx, uuid, None, is_admin=True)
    if kind.name == default_name:
        raise Invalid(f"The volume type {kind.name} is the default volume type.")
    if volumes.is_type_used(tx, kind.id):
        raise Invalid(IN_USE)
    quotas.forget_type(tx, f":{kind.uuid}")
    quota_usages.forget_type(tx, kind.id)
    types.delete(tx, kind.id)


def share(tx: Tx, uuid: str, project_id: str) -> None:
    """Let a project use a private type. Raises :class:`AlreadyExists` if it already has access."""
    kind = _private(tx, uuid)
    if project_id in types.projects(tx, kind.id):
        raise AlreadyExists(
            f"Volume type access for {kind.uuid} / {project_id} combination already exists."
        )
    types.share(tx, kind.id, project_id)


def unshare(tx: Tx, uuid: str, project_id: str) -> None:
    """Revoke a project's access to a private type.

    Raises :class:`NotFound` if the project has no access.
    """
    kind = _private(tx, uuid)
    if not types.unshare(tx, kind.id, project_id):
        raise NotFound(f"Volume type access not found for {kind.uuid} / {project_id} combination.")


def _private(tx: Tx, uuid: str) -> VolumeType:
    kind = get(tx, uuid, None, is_admin=True)
    if kind.is_public:
        raise Forbidden("Type access modification is not applicable to public volume type.")
    return kind


def access(tx: Tx, uuid: str) -> tuple[VolumeType, list[str]]:
    """Return a private type and its projects. Raises :class:`NotFound` for a public type."""
    kind = get(tx, uuid, None, is_admin=True)
    if kind.is_public:
        raise NotFound("Access list not available for public volume types.")
    return kind, types.projects(tx, kind.id)
