"""Formats the results about agents as tables, and compares them with their targets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from benchmarks.tables import Found, at_most, shown, table

ACTIVE_MAX_S = 2.0
"""The maximum time until all 1,000 servers of an accepted boot are ACTIVE."""
KINDS = {"few": "4 real ones", "many": "1,000 simulated ones"}
SENT = {"beat": "heartbeat", "report": "report of a host"}


def tables(found: Found) -> Sequence[str]:
    """Return the tables of builds, and of heartbeats and reports."""
    return [_builds(found), _sent(found)]


def _builds(found: Found) -> str:
    rows = [
        (
            title,
            *(
                shown(found, f"agents.{kind}.active.{each}", ".2f")
                for each in ("median", "longest")
            ),
            shown(found, f"agents.{kind}.result.busy", ".0f"),
        )
        for kind, title in KINDS.items()
    ]
    names = ("agents", "1,000 ACTIVE after, median s", "longest")
    return table((*names, "processor per result, us"), rows)


def _sent(found: Found) -> str:
    rows = [
        (
            title,
            shown(found, f"agents.many.{what}.busy", ".0f"),
            shown(found, f"agents.many.{what}.rate", ".0f"),
            shown(found, f"agents.many.{what}.commits", ".1f"),
        )
        for what, title in SENT.items()
    ]
    return table(("sent", "processor, us", "per second", "commits per 10,000 hosts"), rows)


def targets(found: Found) -> Iterable[str]:
    """Yield each target about agents, its result, and whether the result meets it."""
    for kind in KINDS:
        yield from at_most(found, f"agents.{kind}.active.median", ACTIVE_MAX_S)
