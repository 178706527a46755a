"""Look up the pcloud or the reservation that a project names, by its id or by a name.

Always true: a text in the form of an id is an id, and is not looked up. A name that nobody
has and the name of something that the project may not use are refused in the same words.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from innkeeper.domain.errors import Invalid
from innkeeper.domain.ids import canonical_uuid
from innkeeper.store.queries.compute import dedications
from innkeeper.store.transactions import Tx

NAME_MAX = 255
"""Characters that the column of a name holds; no longer text is a name."""
SHOWN_MAX = 60
"""Characters of a text that a refusal repeats."""


def pcloud(tx: Tx, named: str, project_id: str) -> str:
    """The id of the pcloud that a project names.

    A name means the project's own pcloud. Where it has none of that name, it means another
    project's pcloud that it may use. Raises :class:`Invalid` for a name that no such pcloud
    has, and for one that several of the same kind have.
    """
    canonical = canonical_uuid(named)
    if canonical is not None:
        return canonical
    found: Sequence[str] = ()
    if _is_name(named):
        found = dedications.own_pclouds_named(tx, named, project_id)
        found = found or dedications.usable_pclouds_named(tx, named, project_id)
    if not found:
        raise Invalid(f"No pcloud that this project may use has the name or id '{_shown(named)}'.")
    if len(found) > 1:
        raise Invalid(
            f"Several pclouds are called '{_shown(named)}'. Name one by its id: {_listed(found)}."
        )
    return found[0]


def reservation(tx: Tx, named: str, project_id: str, now: datetime) -> str:
    """The id of the reservation that a project names, by its own id or its lease's name.

    A name means a lease of the project that is not over. Raises :class:`Invalid` where no
    such lease has the name, where several have it, and where the lease has several
    reservations.
    """
    canonical = canonical_uuid(named)
    if canonical is not None:
        return canonical
    found: dict[str, list[str]] = {}
    if _is_name(named):
        found = dedications.reservations_of_leases_named(tx, named, project_id, now)
    if not found:
        raise Invalid(
            f"No reservation has the id '{_shown(named)}', and no lease of this project that "
            "is not over has that name."
        )
    every = [uuid for uuids in found.values() for uuid in uuids]
    if len(found) > 1:
        raise Invalid(
            f"Several leases are called '{_shown(named)}'. Name a reservation by its id: "
            f"{_listed(every)}."
        )
    if len(every) > 1:
        raise Invalid(
            f"The lease '{_shown(named)}' has several reservations. Name one by its id: "
            f"{_listed(every)}."
        )
    return every[0]


def _is_name(text: str) -> bool:
    """Whether a text could be a name; some databases refuse to look for any other text."""
    is_text = text.isascii() or not any("\ud800" <= each <= "\udfff" for each in text)
    return 0 < len(text) <= NAME_MAX and "\0" not in text and is_text


def _listed(uuids: Sequence[str]) -> str:
    """The first of these ids; a stranger may have let a project into any number of pclouds."""
    told = ", ".join(uuids[: dedications.NAMED_MAX])
    return told + (", and others" if len(uuids) > dedications.NAMED_MAX else "")


def _shown(text: str) -> str:
    return text[:SHOWN_MAX]
