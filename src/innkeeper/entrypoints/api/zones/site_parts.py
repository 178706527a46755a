"""Access to the objects that only zones with neighbours have."""

from __future__ import annotations

from innkeeper.domain.errors import Forbidden
from innkeeper.domain.zone_tree import Hop
from innkeeper.engine.zones.neighbours import Neighbours
from innkeeper.engine.zones.tree import ZoneTree
from innkeeper.entrypoints.api.routing import Call
from innkeeper.systems.identity.secret_boxes import SecretBox


def box_of(call: Call) -> SecretBox:
    """Return the box that seals secrets.

    Raises :class:`Forbidden` if ``allow_admin_api`` is not set.
    """
    box = call.site.secret_box
    if box is None or not call.site.settings.zoning.allow_admin_api:
        raise Forbidden("The administration of zones needs the setting allow_admin_api.")
    return box


def tree_of(call: Call) -> ZoneTree:
    """Return the tree of child zones. Raises :class:`Forbidden` if the settings allow no tree."""
    box_of(call)
    neighbours = call.site.neighbours
    if neighbours is None:
        raise Forbidden("Child zones need the setting build_plan_encryption_key.")
    return neighbours.tree


def serving_parents(call: Call) -> tuple[Neighbours, Hop]:
    """Return the zones around this zone, and the content of the hop token.

    Raises :class:`Forbidden` if the caller is not a zone parent.
    """
    neighbours, hop = call.site.neighbours, call.context.hop
    if neighbours is None or hop is None:
        raise Forbidden("Only zone parents may use this path.")
    return neighbours, hop
