"""Prints a replayed decision as text or as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from innkeeper.domain.explaining import HostAnswer, NearMiss, Tally
from innkeeper.entrypoints.replayer.replaying import Replayed, plain_plan
from innkeeper.scheduling import explanation_values

SAME = "The same hosts in the same order as recorded."


def as_json(replayed: Replayed) -> str:
    """Return the whole result as JSON."""
    recorded = replayed.recorded
    result = {
        "recorded_at": recorded.recorded_at,
        "label": recorded.label,
        "is_same": not replayed.differences,
        "differences": list(replayed.differences),
        "recorded": plain_plan(recorded.plan.entries),
        "decided": plain_plan(replayed.plan.entries),
        "explanation": explanation_values.explanation(replayed.explanation, are_hosts_named=True),
    }
    return json.dumps(result, indent=1)


def as_text(replayed: Replayed) -> str:
    """Return the whole result as text, with the names of hosts."""
    return "\n".join(_lines(replayed))


def _lines(replayed: Replayed) -> Iterator[str]:
    recorded, found = replayed.recorded, replayed.explanation
    amounts = ", ".join(f"{name} {amount}" for name, amount in recorded.spec.amounts.items())
    yield f"Recorded {recorded.recorded_at}, {recorded.label}: {found.wanted} servers of {amounts}"
    by = found.deciders
    yield f"Decided by {by.driver}, subset {by.subset_size}, seed {by.seed}"
    yield f"  filters: {', '.join(by.filters) or 'none'}"
    weighers = ", ".join(f"{name} {factor:g}" for name, factor in by.weighers)
    yield f"  weighers: {weighers or 'none'}"
    yield ""
    yield f"Of {found.hosts} hosts, {found.candidates} passed all filters"
    yield from _tallies(found.tallies)
    if found.nearest:
        yield "Nearest of the others"
        yield from _near_misses(found.nearest)
    if found.best:
        yield "Best"
        yield from (f"  {each.host} {_weighed(each.weight, each.parts)}" for each in found.best)
    yield f"Placed {found.placed} of {found.wanted}"
    for number, each in enumerate(found.chosen, start=1):
        yield f"  {number}. {each.host} {_weighed(each.weight, each.parts)}"
    if found.then is not None:
        yield f"Server {found.placed + 1} found no host once the earlier servers were placed"
        yield from _tallies(found.then.tallies)
        yield from _near_misses(found.then.nearest)
    if found.fault is not None:
        yield found.fault
    if found.host is not None:
        yield from _host(found.host)
    yield ""
    if replayed.differences:
        yield "Not as recorded:"
        yield from (f"  {each}" for each in replayed.differences)
    else:
        yield SAME


def _tallies(tallies: tuple[Tally, ...]) -> Iterator[str]:
    for each in tallies:
        yield (
            f"  {each.filter_name} removed {each.removed}: {each.reason} ({each.counted}); "
            f"without it, {each.alone} more would pass"
        )


def _near_misses(near_misses: tuple[NearMiss, ...]) -> Iterator[str]:
    for each in near_misses:
        why = "; ".join(
            f"{one.filter_name}: {', '.join(one.lacks) or one.reason}" for one in each.objections
        )
        yield f"  {each.host}: {why}"


def _weighed(weight: float, parts: Mapping[str, float]) -> str:
    shown = ", ".join(f"{name} {part:.4f}" for name, part in parts.items())
    return f"{weight:.4f}" + (f" ({shown})" if shown else "")


def _host(answer: HostAnswer) -> Iterator[str]:
    yield f"Host {answer.host}"
    for each in answer.verdicts:
        if each.objection is not None:
            why = ", ".join(each.objection.lacks) or each.objection.reason
            yield f"  {each.filter_name} refuses: {why}"
        else:
            yield f"  {each.filter_name} " + ("passes" if each.is_requested else "is not asked")
    if answer.weight is not None:
        yield f"  place {answer.rank}, {_weighed(answer.weight, answer.parts or {})}"
