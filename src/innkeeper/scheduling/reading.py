"""What filters and weighers read of a request, and what of that is seldom alike.

Always true: two requests that are alike in all fields that a pipeline reads come to the same
masks and weights on the same table. That is what remembering them rests on.
"""

from __future__ import annotations

from collections.abc import Mapping

Reads = tuple[str, ...]
"""Names of fields of :class:`innkeeper.domain.placing.RequestSpec`. The moment of asking is not
among them: who reads the clock says with ``stamp`` what it makes of it."""

RARE: frozenset[str] = frozenset(
    {
        "project_id",
        "forced_host",
        "group",
        "same_hosts",
        "different_hosts",
        "refused_hosts",
        "near",
        "query",
        "pclouds",
        "pcloud_host",
        "reservation",
    }
)
"""Fields that hardly two requests have alike. Who reads one of them is asked at every decision;
what the others say is remembered."""

MOVING = frozenset({"group", "query"})
"""Those of which a filter may say something else after every pick: there is one member more,
and a query may ask for what is left."""


def frozen(value: object) -> object:
    """A key of a value that may hold mappings and lists: equal keys mean equal values.

    True, 1 and 1.0 are equal and still read differently, so the key holds the type too.
    """
    if isinstance(value, Mapping):
        return Mapping, frozenset((name, frozen(each)) for name, each in value.items())
    if isinstance(value, list | tuple):
        return list, tuple(frozen(each) for each in value)
    return type(value), value
