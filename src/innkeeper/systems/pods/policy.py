"""Read the policy of pods: the filters and weighers that the settings name.

Always true: an unknown name or an unusable plug-in is an error at start. A filter is never left out
silently, because requests could then go to pods that are reserved for others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from innkeeper.domain.errors import PluginFailed
from innkeeper.domain.pod_settings import Podding
from innkeeper.domain.pods import KINDS, PodRequest
from innkeeper.scheduling.pipeline import ALL_ROWS
from innkeeper.scheduling.pod_choosing import PodPolicy
from innkeeper.scheduling.pod_filters import ALWAYS, POD_FILTERS, PodFilter
from innkeeper.scheduling.pod_weighers import POD_WEIGHERS, USUAL_MULTIPLIERS, PodWeigher
from innkeeper.snapshot.pods import PodTable
from innkeeper.systems.compute.boot import loading, plugins
from innkeeper.systems.compute.boot.loading import NamesNothing

FILTER, WEIGHER = "pod filter", "pod weigher"
REQUIRED = {
    FILTER: ("NAME", "REASON", "READS", "mask", "missing"),
    WEIGHER: ("NAME", "READS", "column", "scale"),
}
"""The attributes that a plug-in of each kind must have."""


def policy_of(
    podding: Podding,
    filters: Iterable[str] | None = None,
    multipliers: Mapping[str, float] | None = None,
) -> PodPolicy:
    """Return the policy in the settings, with these filters and multipliers if they are given.

    ``multipliers`` has the weighers by name, each with its multiplier. Raises ``ValueError`` for a
    wrong name.
    """
    wanted = podding.default_pod_filters if filters is None else filters
    names = dict.fromkeys((*ALWAYS, *wanted))
    by_name = _multipliers(podding) if multipliers is None else multipliers
    return PodPolicy(
        tuple(_filter(name) for name in names),
        tuple((_weigher(name), number) for name, number in by_name.items() if number != 0.0),
    )


def _multipliers(podding: Podding) -> dict[str, float]:
    names = podding.default_pod_weighers
    unused = podding.pod_weigher_multipliers.keys() - set(names)
    if unused:
        raise ValueError(
            "The setting 'pod_weigher_multipliers' names weighers that are not among "
            f"'default_pod_weighers': {', '.join(sorted(unused))}."
        )
    return {
        name: podding.pod_weigher_multipliers.get(name, USUAL_MULTIPLIERS.get(name, 1.0))
        for name in names
    }


def _filter(name: str) -> PodFilter:
    found = loading.named(FILTER, name, POD_FILTERS, "innkeeper.pod_filters")
    made: PodFilter = _checked(FILTER, name, found, POD_FILTERS)
    return made


def _weigher(name: str) -> PodWeigher:
    found = loading.named(WEIGHER, name, POD_WEIGHERS, "innkeeper.pod_weighers")
    made: PodWeigher = _checked(WEIGHER, name, found, POD_WEIGHERS)
    return made


def _checked(noun: str, name: str, found: Any, ours: Mapping[str, Any]) -> Any:
    """Check a filter or weigher, and return it. A plug-in is wrapped in a guard for errors."""
    if name in ours:
        return found
    lacking = [each for each in REQUIRED[noun] if not hasattr(found, each)]
    if lacking:
        raise NamesNothing(noun, f"The {noun} {name!r} has no {', '.join(lacking)}.")
    guarded = plugins.Guarded(noun, found)
    table, request = PodTable((), {}), PodRequest("project", amounts=dict.fromkeys(KINDS, 1.0))
    try:
        if noun == FILTER:
            guarded.mask(table, request, ALL_ROWS)  # type: ignore[attr-defined]
        else:
            guarded.column(table, request, ALL_ROWS)  # type: ignore[attr-defined]
            guarded.scale(table, request)  # type: ignore[attr-defined]
    except PluginFailed as failure:
        raise NamesNothing(
            noun, f"The {noun} {name!r} fails on a table without pods ({failure.why})."
        ) from failure
    return guarded
