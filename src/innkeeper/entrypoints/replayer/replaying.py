"""Repeats a recorded decision with the real pipeline, and compares the results.

Always true: nothing but the recording is read. Without changes, the result is the recorded result.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from innkeeper.domain.converters import converter_to
from innkeeper.domain.errors import Invalid
from innkeeper.domain.explaining import Explanation
from innkeeper.domain.placing import BuildPlan, Entry
from innkeeper.domain.slices import Scheduling
from innkeeper.scheduling import depletion, explaining, reasons
from innkeeper.scheduling.recordings import Recipe, Reopened
from innkeeper.systems.compute.boot import drivers

_scheduling = converter_to(Scheduling)


@dataclass(frozen=True, slots=True)
class Changes:
    """Changes to the recorded decision. ``None`` keeps the recorded value."""

    driver: str | None = None
    filters: tuple[str, ...] | None = None
    weighers: Mapping[str, float | None] | None = None
    subset_size: int | None = None
    seed: int | None = None
    host: str | None = None


@dataclass(frozen=True, slots=True)
class Replayed:
    """The result of a replay, together with the recording."""

    recorded: Reopened
    plan: BuildPlan
    explanation: Explanation
    differences: tuple[str, ...]


def replay(recorded: Reopened, changes: Changes) -> Replayed:
    """Repeat a decision. Raises :class:`Invalid` for unknown names."""
    spec = recorded.spec
    if changes.seed is not None:
        spec = msgspec.structs.replace(spec, seed=changes.seed)
    settings = _settings(recorded.recipe, changes)
    try:
        scheduler = drivers.scheduler_of(settings)
    except ValueError as error:
        raise Invalid(str(error)) from error
    if scheduler.pipeline.needs_servers and not recorded.table.knows_servers:
        raise Invalid(
            "One of the filters or weighers needs the servers on each host, which are not in "
            "this recording."
        )
    index = None
    if changes.host is not None:
        index = recorded.table.index_by_name.get(changes.host)
        if index is None:
            raise Invalid(f"The recording has no host {changes.host!r}.")
    plan = scheduler.plan(recorded.table, spec)
    depletion.undo(recorded.table, spec, plan)
    explanation = explaining.explain(
        scheduler.pipeline,
        recorded.table,
        spec,
        plan,
        explaining.deciders(scheduler, settings.host_subset_size, spec.seed),
        index,
    )
    if not plan.entries:
        # Only operators have the file, so the message may say how many hosts are dedicated.
        fault = reasons.counted(plan, spec.count, explanation.nearest)
        explanation = replace(explanation, fault=fault, counted_fault=fault)
    differences = tuple(_differences(recorded.plan.entries, plan.entries))
    return Replayed(recorded, plan, explanation, differences)


def _settings(recipe: Recipe, changes: Changes) -> Scheduling:
    weighers: Mapping[str, float | None] = (
        dict(recipe.weighers) if changes.weighers is None else changes.weighers
    )
    size = recipe.subset_size if changes.subset_size is None else changes.subset_size
    # Convert from plain values, so that the values in a file are validated like the settings.
    values = {
        "scheduler_driver": changes.driver or recipe.driver,
        "default_host_filters": recipe.filters if changes.filters is None else changes.filters,
        "default_host_weighers": tuple(weighers),
        "weigher_multipliers": {
            name: factor for name, factor in weighers.items() if factor is not None
        },
        "host_subset_size": size,
        "build_attempts_max": recipe.attempts_max,
    }
    try:
        return _scheduling(values)
    except msgspec.ValidationError as error:
        raise Invalid(f"The settings are invalid: {error}.") from error


def _differences(then: Sequence[Entry], now: Sequence[Entry]) -> Iterator[str]:
    """Yield a line for each server whose place in the replay differs from the recorded place."""
    for number in range(max(len(then), len(now))):
        before, after = (_place(each, number) for each in (then, now))
        if before != after:
            yield f"server {number + 1}: recorded {before}, now {after}"


def _place(entries: Sequence[Entry], number: int) -> str:
    if number >= len(entries):
        return "nowhere"
    entry = entries[number]
    lent = [f"{each.class_name} of pool {each.provider_id}" for each in entry.loans]
    return " with ".join([entry.host, *([", ".join(lent)] if lent else [])])


def plain_plan(entries: Sequence[Entry]) -> list[dict[str, Any]]:
    """Return the entries of a plan as JSON values."""
    return [{"host": each.host, "weight": each.weight} for each in entries]
