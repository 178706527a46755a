"""Decisions of the compute room, recorded as far as the settings wish it.

Always true: recording changes no decision. The columns are copied between decisions, in the
thread that decides; all other work is for whoever is handed the recording.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from innkeeper.domain.placing import BuildPlan, RequestSpec
from innkeeper.domain.slices import Scheduling
from innkeeper.scheduling.recordings import Recipe, Recording
from innkeeper.snapshot import recording
from innkeeper.snapshot.columns import HostTable
from innkeeper.snapshot.recording import Moment
from innkeeper.systems.compute.boot import drivers
from innkeeper.systems.compute.boot.drivers import Schedulers

Keep = Callable[[Recording], None]
"""Takes a recording over, and does not wait."""


@dataclass(frozen=True, slots=True)
class DecisionRequest:
    """What a decision was about: the request, the filters that it named, when, and what it is
    called."""

    spec: RequestSpec
    filters: tuple[str, ...] | None
    now: datetime
    label: str


class Recorder:
    """Copies what decisions are made of. ``keep`` takes the recordings over."""

    def __init__(self, settings: Scheduling, schedulers: Schedulers, keep: Keep | None) -> None:
        self._settings = settings
        self._schedulers = schedulers
        self._keep = keep
        self._wish = "none" if keep is None else settings.record_decisions

    def before(self, table: HostTable) -> Moment | None:
        """Copy a table before it is decided on, if every decision is to be recorded."""
        return recording.copy_of(table) if self._wish == "all" else None

    def after_failure(self, table: HostTable) -> Moment | None:
        """Copy a table after a decision that is off it again, if those are to be recorded."""
        return recording.copy_of(table) if self._wish == "failed" else None

    def keep(self, asked: DecisionRequest, made: BuildPlan, moment: Moment) -> None:
        """Hand a decision over, with the copy of its table."""
        if self._keep is not None:
            self._keep(self.made_of(asked, made, moment))

    def made_of(self, asked: DecisionRequest, made: BuildPlan, moment: Moment) -> Recording:
        """The recording of one decision."""
        settings = self._settings
        recipe = Recipe(
            driver=settings.scheduler_driver,
            filters=self._schedulers.names_of(asked.filters),
            weighers=tuple(drivers.multipliers_of(settings).items()),
            subset_size=settings.host_subset_size,
            attempts_max=settings.build_attempts_max,
        )
        when = asked.now.isoformat(timespec="microseconds") + "Z"
        return Recording(moment, asked.spec, recipe, made, when, asked.label)
