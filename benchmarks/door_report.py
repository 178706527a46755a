"""Formats the results about a door over pods as tables, and compares them with their targets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from benchmarks.tables import Found, at_most, shown, table, verdict

OPERATIONS = ("create", "show", "delete")
MORE_MAX_MS = 3.0
"""The maximum median of a create through the door, minus the median at the pod itself."""
LIST_MAX = 1.5
"""The maximum time of a list at the door, divided by the time of the slowest pod alone."""


def tables(found: Found, pod_counts: Iterable[int]) -> Sequence[str]:
    """Return the tables of requests for one server, and of lists."""
    counts = list(pod_counts)
    return [_requests(found, counts), _lists(found, counts)]


def _requests(found: Found, pod_counts: Sequence[int]) -> str:
    rows = [
        (
            operation,
            str(pods),
            *(
                shown(found, f"door.{pods}.{operation}.{each}", ".2f")
                for each in ("median", "pod", "more", "busy")
            ),
        )
        for operation in OPERATIONS
        for pods in pod_counts
    ]
    names = ("request", "pods", "at the door, median ms", "at the pod", "more")
    return table((*names, "processor of the door, ms"), rows)


def _lists(found: Found, pod_counts: Sequence[int]) -> str:
    rows = [
        (
            str(pods),
            *(shown(found, f"{name}.{each}", ".1f") for each in ("median", "pod")),
            shown(found, f"{name}.share", ".2f"),
            shown(found, f"{name}.at_once", ".1f"),
            shown(found, f"{name}.beside", ".2f"),
            *(shown(found, f"{name}.{each}", ".1f") for each in ("busy", "path", "pod_busy")),
            _way(found, name),
        )
        for pods in pod_counts
        for name in [f"door.{pods}.list"]
    ]
    names = ("pods", "list at the door, median ms", "slowest pod alone", "ratio", "pods at once")
    paths = ("ratio", "processor of the door, ms", "critical path, ms")
    alone = ("processor of a pod alone", "ratio")
    return table((*names, *paths, *alone), rows)


def _way(found: Found, name: str) -> str:
    way, own = found.get(f"{name}.path"), found.get(f"{name}.pod_busy")
    return "" if way is None or own is None else f"{way.value / own.value:.2f}"


def targets(found: Found) -> Iterable[str]:
    """Yield each target about a door, its result, and whether the result meets it."""
    for name, figure in found.items():
        if name.startswith("door.") and name.endswith(".create.more"):
            is_met = figure.value <= MORE_MAX_MS
            yield verdict(f"{name}, {figure.unit}", figure.value, MORE_MAX_MS, is_met)
        if name.startswith("door.") and name.endswith(".list.share"):
            yield from at_most(found, name, LIST_MAX)
            way = name.removesuffix("share")
            yield from at_most(found, f"{way}path", LIST_MAX, f"{way}pod_busy")
