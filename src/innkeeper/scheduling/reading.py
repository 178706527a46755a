"""Define the fields of requests that filters and weighers can read.

Always true: if two requests have equal values in all fields that a pipeline reads, they get the
same masks and weights on the same table. Caching depends on this rule.
"""

from __future__ import annotations

from collections.abc import Mapping

Reads = tuple[str, ...]
"""Names of fields of :class:`innkeeper.domain.placing.RequestSpec`. The time of the request is not
listed. A filter that reads the time has ``stamp`` instead."""

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
        "volume_pools",
    }
)
"""Fields that differ between most requests. If a filter or weigher reads one of them, it is
evaluated per request, and its results are not cached."""

MOVING = frozenset({"group", "query"})
"""The result of a filter that reads one of these fields may change after every pick. For example,
the group gets one more member, or the query reads free amounts."""


def frozen(value: object) -> object:
    """Return a hashable key for a value that may contain mappings and lists.

    The key includes types, because True, 1 and 1.0 are equal but mean different things.
    """
    if isinstance(value, Mapping):
        return Mapping, frozenset((name, frozen(each)) for name, each in value.items())
    if isinstance(value, list | tuple):
        return list, tuple(frozen(each) for each in value)
    return type(value), value
