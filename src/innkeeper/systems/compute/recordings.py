"""Decisions of the compute room, recorded as far as the settings wish it.

Always true: recording changes no decision. The columns are copied between decisions, in the
thread that decides; all other work is for whoever is handed the recording.
"""

from __future__ import annotations

from collections.abc import Callable

from innkeeper.domain.placing import BuildPlan
from innkeeper.domain.slices import RecordWish
from innkeeper.scheduling.recordings import Recipe, Recording
from innkeeper.snapshot import recording
from innkeeper.snapshot.columns import HostTable
from innkeeper.snapshot.recording import Moment
from innkeeper.systems.compute import drivers
from innkeeper.systems.compute.intake import Intake
from innkeeper.systems.compute.means import Means

Keep = Callable[[Recording], None]
"""Takes a recording over, and does not wait."""


class Recorder:
    """Copies what decisions are made of."""

    def __init__(self, wish: RecordWish, keep: Keep) -> None:
        self._wish = wish
        self._keep = keep

    def before(self, table: HostTable) -> Moment | None:
        """Copy a table before it is decided on, if every decision is to be recorded."""
        return recording.copy_of(table) if self._wish == "all" else None

    def after(
        self,
        means: Means,
        taken: Intake,
        made: BuildPlan,
        moment: Moment | None,
        *,
        is_placed: bool,
    ) -> None:
        """Hand a decision over. One that failed is off the table again, which can be copied
        now."""
        if moment is None and self._wish == "failed" and not is_placed:
            moment = recording.copy_of(means.follower.table)
        if moment is not None:
            self._keep(made_of(means, taken, made, moment))


def made_of(means: Means, taken: Intake, made: BuildPlan, moment: Moment) -> Recording:
    """The recording of one decision."""
    settings = means.scheduling
    recipe = Recipe(
        driver=settings.scheduler_driver,
        filters=means.schedulers.names_of(taken.filters),
        weighers=tuple(drivers.multipliers_of(settings).items()),
        subset_size=settings.host_subset_size,
        attempts_max=settings.build_attempts_max,
    )
    request = taken.request
    when = request.now.isoformat(timespec="microseconds") + "Z"
    return Recording(moment, taken.spec, recipe, made, when, request.batch_id)
