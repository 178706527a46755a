"""A replayed decision in words, or as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from innkeeper.domain.explaining import HostAnswer, NearMiss, Tally
from innkeeper.entrypoints.replayer.replaying import Replayed, plain_plan
from innkeeper.scheduling import explanation_values

SAME = "The same hosts in the same order as recorded."


def as_json(done: Replayed) -> str:
    """All of it, for programs."""
    found = done.recorded
    told = {
        "recorded_at": found.recorded_at,
        "label": found.label,
        "is_same": not done.differences,
        "differences": list(done.differences),
        "recorded": plain_plan(found.plan.entries),
        "decided": plain_plan(done.made.entries),
        "explanation": explanation_values.explanation(done.explanation, are_hosts_named=True),
    }
    return json.dumps(told, indent=1)


def as_text(done: Replayed) -> str:
    """All of it, for people; hosts are named."""
    return "\n".join(_lines(done))


def _lines(done: Replayed) -> Iterator[str]:
    found, told = done.recorded, done.explanation
    amounts = ", ".join(f"{name} {amount}" for name, amount in found.spec.amounts.items())
    yield f"Recorded {found.recorded_at}, {found.label}: {told.wanted} servers of {amounts}"
    by = told.deciders
    yield f"Decided by {by.driver}, subset {by.subset_size}, seed {by.seed}"
    yield f"  filters: {', '.join(by.filters) or 'none'}"
    weighers = ", ".join(f"{name} {factor:g}" for name, factor in by.weighers)
    yield f"  weighers: {weighers or 'none'}"
    yield ""
    yield f"Of {told.hosts} hosts, {told.candidates} passed all filters"
    yield from _tallies(told.tallies)
    if told.nearest:
        yield "Nearest of the others"
        yield from _near_misses(told.nearest)
    if told.best:
        yield "Best"
        yield from (f"  {each.host} {_weighed(each.weight, each.parts)}" for each in told.best)
    yield f"Placed {told.placed} of {told.wanted}"
    for number, each in enumerate(told.chosen, start=1):
        yield f"  {number}. {each.host} {_weighed(each.weight, each.parts)}"
    if told.then is not None:
        yield f"Server {told.placed + 1} found no place, those before it taken into account"
        yield from _tallies(told.then.tallies)
        yield from _near_misses(told.then.nearest)
    if told.fault is not None:
        yield told.fault
    if told.host is not None:
        yield from _host(told.host)
    yield ""
    if done.differences:
        yield "Not as recorded:"
        yield from (f"  {each}" for each in done.differences)
    else:
        yield SAME


def _tallies(told: tuple[Tally, ...]) -> Iterator[str]:
    for each in told:
        yield (
            f"  {each.filter_name} removed {each.removed}: {each.reason} ({each.counted}); "
            f"without it, {each.alone} more"
        )


def _near_misses(told: tuple[NearMiss, ...]) -> Iterator[str]:
    for each in told:
        why = "; ".join(
            f"{one.filter_name}: {', '.join(one.lacks) or one.reason}" for one in each.objections
        )
        yield f"  {each.host}: {why}"


def _weighed(weight: float, parts: Mapping[str, float]) -> str:
    told = ", ".join(f"{name} {part:.4f}" for name, part in parts.items())
    return f"{weight:.4f}" + (f" ({told})" if told else "")


def _host(told: HostAnswer) -> Iterator[str]:
    yield f"Host {told.host}"
    for each in told.verdicts:
        if each.objection is not None:
            why = ", ".join(each.objection.lacks) or each.objection.reason
            yield f"  {each.filter_name} refuses: {why}"
        else:
            yield f"  {each.filter_name} " + ("passes" if each.is_asked else "is not asked")
    if told.weight is not None:
        yield f"  place {told.rank}, {_weighed(told.weight, told.parts or {})}"
