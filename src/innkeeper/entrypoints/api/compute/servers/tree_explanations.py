"""These functions convert explanations of boots over a tree of zones to JSON values.

Always true: a zone parent gets the names of zones and filters, counts and weights, but no names of
hosts. Among users, only administrators get the names of zones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from innkeeper.domain.compute import BootRequest
from innkeeper.engine.zones.explaining import (
    SHOWN_MAX,
    ExplainedServer,
    RemovedHosts,
    TreeExplanation,
    ZoneBelow,
    ZoneExplanation,
)


def for_parent(shown: Mapping[str, Any], told: TreeExplanation, zone_name: str) -> dict[str, Any]:
    """Return the explanation for a zone parent. ``shown`` explains the hosts of this zone."""
    removed = [RemovedHosts(each["filter"], each["removed"]) for each in shown["removed"]]
    made = ZoneExplanation(
        zone_name,
        shown["hosts"],
        shown["candidates"],
        shown["room"],
        tuple(removed),
        tuple(told.chosen[:SHOWN_MAX]),
        tuple(told.zones),
    )
    plain: dict[str, Any] = msgspec.to_builtins(made)
    return plain


def for_user(
    shown: Mapping[str, Any], told: TreeExplanation, request: BootRequest, *, are_zones_named: bool
) -> dict[str, Any]:
    """Return a user's explanation of the tree. ``shown`` explains the hosts of this zone."""
    room = len(told.chosen)
    return {
        "room": room,
        "servers": room if room >= request.count_min else 0,
        "chosen": [_place(each, are_zones_named=are_zones_named) for each in told.chosen],
        "zones": _zones(told.zones, are_zones_named=are_zones_named),
    }


def _zones(zones: Sequence[ZoneBelow], *, are_zones_named: bool) -> list[dict[str, Any]]:
    return [_zone(each, are_zones_named=are_zones_named) for each in zones]


def _zone(below: ZoneBelow, *, are_zones_named: bool) -> dict[str, Any]:
    told = below.explanation
    # This zone knows the names of its own children. It learns the name of a deeper zone from the
    # answer of the deeper zone.
    name = below.zone or (None if told is None else told.name)
    plain: dict[str, Any] = {"zone": name} if are_zones_named else {}
    plain["answer"] = below.answer
    if told is None:
        return plain
    return {
        **plain,
        "hosts": told.hosts,
        "candidates": told.candidates,
        "room": told.room,
        "removed": [{"filter": each.filter, "removed": each.removed} for each in told.removed],
        "zones": _zones(told.zones, are_zones_named=are_zones_named),
    }


def _place(server: ExplainedServer, *, are_zones_named: bool) -> dict[str, Any]:
    """Return the weight of a server's host, and the names of the zones on the way to it.

    The list of zones is empty for a host of this zone. It is missing if zones are not named.
    """
    if not are_zones_named:
        return {"weight": server.weight}
    return {"zones": list(server.zones), "weight": server.weight}
