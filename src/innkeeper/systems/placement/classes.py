"""Find, create, rename and delete resource classes.

Always true: the name of a custom class is ``CUSTOM_`` followed by capital letters, digits or
underscores. Standard classes come from OpenStack's library and cannot be changed.
"""

from __future__ import annotations

from datetime import datetime

from innkeeper.domain.errors import Conflict, InUse, Invalid, NotFound
from innkeeper.domain.placement import NamedThing
from innkeeper.store import changes
from innkeeper.store.queries.placement import names
from innkeeper.store.queries.placement.names import NameKind
from innkeeper.store.transactions import Tx
from innkeeper.systems.placement.registration import CUSTOM_NAME


def listing(tx: Tx) -> list[NamedThing]:
    """Return all classes, standard and custom."""
    return names.listing(tx, NameKind.CLASS)


def get(tx: Tx, name: str) -> NamedThing:
    """Return the class with this name. Raises :class:`NotFound`."""
    found = names.by_name(tx, NameKind.CLASS, name)
    if found is None:
        raise NotFound(f"No such resource class {name}.")
    return found


def create(tx: Tx, name: str, now: datetime) -> None:
    """Create a custom class. Raises :class:`Conflict` if the name is in use."""
    if not ensure(tx, name, now):
        raise Conflict(f"Conflicting resource class already exists: {name}")


def ensure(tx: Tx, name: str, now: datetime) -> bool:
    """Create a custom class if it is missing. Return True if this call created the class."""
    _must_be_custom(name)
    if names.by_name(tx, NameKind.CLASS, name) is not None:
        return False
    names.insert(tx, NameKind.CLASS, name, now)
    return True


def rename(tx: Tx, name: str, new_name: str, now: datetime) -> NamedThing:
    """Rename a custom class. Raises :class:`Invalid` for a standard class."""
    found = get(tx, name)
    if not found.is_custom:
        raise Invalid(f"Cannot update standard resource class {name}")
    _must_be_custom(new_name)
    if new_name != name and names.by_name(tx, NameKind.CLASS, new_name) is not None:
        raise Conflict(f"Resource class already exists: {new_name}")
    names.rename(tx, NameKind.CLASS, found.id, new_name, now)
    # Every process keeps class names in its tables, so it must read the providers again.
    changes.add_always_read(tx, names.users(tx, NameKind.CLASS, found.id), now)
    return get(tx, new_name)


def delete(tx: Tx, name: str) -> None:
    """Delete a custom class.

    Raises :class:`InUse` while a provider has an inventory of the class.
    """
    found = get(tx, name)
    if not found.is_custom:
        raise Invalid(
            f"Error in delete resource class: Cannot delete standard resource class {name}."
        )
    if names.is_used(tx, NameKind.CLASS, found.id):
        raise InUse(
            f"Error in delete resource class: Cannot delete resource class {name}. "
            "Class is in use in inventory.",
            code="undefined_code",
        )
    names.delete(tx, NameKind.CLASS, found.id)


def _must_be_custom(name: str) -> None:
    if CUSTOM_NAME.fullmatch(name) is None:
        raise Invalid(
            f"The resource class {name!r} is invalid: '{name}' does not match "
            "'^CUSTOM_[A-Z0-9_]+$', or is longer than 255 characters."
        )
