"""One recorded decision, made again by the real pipeline and compared with what came out then.

Always true: the file is all that is read. A recording that is decided again by what it was
decided by comes out as it did.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from innkeeper.domain.errors import Invalid
from innkeeper.domain.explaining import Explanation
from innkeeper.domain.placing import BuildPlan, Entry
from innkeeper.domain.slices import Scheduling
from innkeeper.scheduling import depletion, explaining, reasons
from innkeeper.scheduling.recordings import Recipe, Reopened
from innkeeper.scheduling.schedulers.scheduler import Scheduler
from innkeeper.systems.compute.boot import drivers


@dataclass(frozen=True, slots=True)
class Changes:
    """What is to be otherwise than it was recorded; None leaves it."""

    driver: str | None = None
    filters: tuple[str, ...] | None = None
    weighers: Mapping[str, float | None] | None = None
    subset_size: int | None = None
    seed: int | None = None
    host: str | None = None


@dataclass(frozen=True, slots=True)
class Replayed:
    """What came out now, beside what was recorded."""

    recorded: Reopened
    made: BuildPlan
    explanation: Explanation
    differences: tuple[str, ...]


def replay(found: Reopened, changes: Changes) -> Replayed:
    """Decide again. Raises :class:`Invalid` for names that are none."""
    spec = found.spec if changes.seed is None else replace(found.spec, seed=changes.seed)
    settings = _settings(found.recipe, changes)
    scheduler = _scheduler(settings)
    if scheduler.pipeline.needs_servers and not found.table.knows_servers:
        raise Invalid(
            "Servers were not counted when this was recorded, as one of the filters or "
            "weighers needs."
        )
    asked = None
    if changes.host is not None:
        asked = found.table.index_by_name.get(changes.host)
        if asked is None:
            raise Invalid(f"There was no host {changes.host!r}.")
    made = scheduler.plan(found.table, spec)
    depletion.undo(found.table, spec, made)
    told = explaining.explain(
        scheduler.pipeline,
        found.table,
        spec,
        made,
        explaining.deciders(scheduler, settings.host_subset_size, spec.seed),
        asked,
    )
    if not made.entries:
        # Only the operator has the file, and may know how many hosts are dedicated.
        fault = reasons.counted(made, spec.count, told.nearest)
        told = replace(told, fault=fault, counted_fault=fault)
    return Replayed(found, made, told, tuple(_differences(found.plan.entries, made.entries)))


def _settings(recipe: Recipe, changes: Changes) -> Scheduling:
    weighers: Mapping[str, float | None] = (
        dict(recipe.weighers) if changes.weighers is None else changes.weighers
    )
    size = recipe.subset_size if changes.subset_size is None else changes.subset_size
    # By way of plain values: what stands in a file is judged as what stands in the settings.
    wanted = {
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
        return msgspec.convert(wanted, Scheduling)
    except msgspec.ValidationError as error:
        raise Invalid(f"Nothing can be decided so: {error}.") from error


def _scheduler(settings: Scheduling) -> Scheduler:
    try:
        return drivers.scheduler_of(settings)
    except ValueError as error:
        raise Invalid(str(error)) from error


def _differences(then: Sequence[Entry], now: Sequence[Entry]) -> Iterator[str]:
    """Server by server, where it was placed and where it is placed now."""
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
    """The places of a plan in plain values."""
    return [{"host": each.host, "weight": each.weight} for each in entries]
