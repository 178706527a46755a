"""Record the decisions that the setting ``record_decisions`` selects.

Always true: recording does not change a decision. The writer thread only copies the columns of the
host table between decisions. The receiver of the recording does all other work.
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
"""A function that receives a recording. The function must not block."""


@dataclass(frozen=True, slots=True)
class DecisionRequest:
    """The input of a decision, the filters that the request named, and the recording's name."""

    spec: RequestSpec
    filters: tuple[str, ...] | None
    now: datetime
    label: str


class Recorder:
    """Copies host tables for recordings, and hands finished recordings to ``keep``."""

    def __init__(self, settings: Scheduling, schedulers: Schedulers, keep: Keep | None) -> None:
        self._settings = settings
        self._schedulers = schedulers
        self._keep = keep
        self._setting = "none" if keep is None else settings.record_decisions

    @property
    def is_on(self) -> bool:
        """Whether decisions are recorded."""
        return self._setting in ("all", "failed")

    def before(self, table: HostTable) -> Moment | None:
        """Return a copy of the host table before a decision.

        Return ``None`` unless the setting ``record_decisions`` is "all".
        """
        return recording.copy_of(table) if self._setting == "all" else None

    def after_failure(self, table: HostTable) -> Moment | None:
        """Return a copy of the host table after a failed decision was undone.

        Return ``None`` unless the setting ``record_decisions`` is "failed".
        """
        return recording.copy_of(table) if self._setting == "failed" else None

    def keep(self, request: DecisionRequest, made: BuildPlan, moment: Moment) -> None:
        """Build the recording of a decision, and pass it to the function ``keep``."""
        if self._keep is not None:
            self._keep(self.made_of(request, made, moment))

    def made_of(self, request: DecisionRequest, made: BuildPlan, moment: Moment) -> Recording:
        """Build the recording of one decision."""
        settings = self._settings
        recipe = Recipe(
            driver=settings.scheduler_driver,
            filters=self._schedulers.names_of(request.filters),
            weighers=tuple(drivers.multipliers_of(settings).items()),
            subset_size=settings.host_subset_size,
            attempts_max=settings.build_attempts_max,
        )
        when = request.now.isoformat(timespec="microseconds") + "Z"
        return Recording(moment, request.spec, recipe, made, when, request.label)
