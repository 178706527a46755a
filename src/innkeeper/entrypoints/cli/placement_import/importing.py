"""The order of an import: look at both sides, object, write what differs, look again, compare.

Always true: nothing is written before everything was read and nobody objects, and nothing at
all with ``dry_run`` or ``verify_only``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import TextIO

from innkeeper.clients.placement import PlacementApi
from innkeeper.domain.errors import Refusal
from innkeeper.domain.versions import Version
from innkeeper.entrypoints.cli.placement_import import differences, objections, plan
from innkeeper.entrypoints.cli.placement_import.objections import Others
from innkeeper.entrypoints.cli.placement_import.pictures import Picture
from innkeeper.entrypoints.cli.placement_import.progress import ImportProgress
from innkeeper.entrypoints.cli.placement_import.reading import KINDS_SINCE, Reader
from innkeeper.entrypoints.cli.placement_import.writing import PlanWriter

SOURCE_LEAST = Version(1, 28)
"""OpenStack's Rocky. Older services do not tell consumers' generations, nor much else."""
TARGET_LEAST = KINDS_SINCE
"""Below it consumers lose their types, and providers cannot be moved."""


class ExitStatus(IntEnum):
    """Exit statuses."""

    EQUAL = 0
    DIFFERENT = 1
    FAILED = 2


@dataclass(frozen=True, slots=True)
class Importing:
    """One run. Findings go to ``told``, one line each; what went wrong goes to ``warned``."""

    source: PlacementApi
    target: PlacementApi
    others: Others
    dry_run: bool
    verify_only: bool
    jobs: int
    steps: ImportProgress
    wait: Callable[[float], object]
    told: TextIO
    warned: TextIO

    def run(self) -> ExitStatus:
        """Do it; gives the exit status."""
        try:
            return self._run()
        except Refusal as refusal:
            self._warn(refusal.message)
            return ExitStatus.FAILED

    def _run(self) -> ExitStatus:
        self.source.negotiate(SOURCE_LEAST)
        self.target.negotiate(TARGET_LEAST)
        if self.source.url == self.target.url:
            self._warn(f"The source and the target are the same, {self.source.url}.")
            return ExitStatus.FAILED
        source, target = self._look()
        if self.verify_only:
            return self._compare(source, target)
        objected = list(objections.find(source, target, self.others))
        for line in objected:
            self._warn(line)
        if objected:
            self._warn("Nothing was written.")
            return ExitStatus.FAILED
        made = plan.make(source, target, self.others)
        if self.dry_run:
            return self._announce(made)
        if not made.is_empty:
            writer = PlanWriter(self.target, target, self.jobs, self.steps, self.wait)
            writer.carry_out(made)
            source, target = self._look()
        return self._compare(source, target)

    def _look(self) -> tuple[Picture, Picture]:
        target = self._read(self.target, with_usages=not self.dry_run)
        # Nothing is compared with an empty target that would be worth the questions.
        with_usages = not self.dry_run and bool(target.providers)
        return self._read(self.source, with_usages=with_usages), target

    def _read(self, api: PlacementApi, *, with_usages: bool) -> Picture:
        return Reader(api, self.jobs, self.steps).read(with_usages=with_usages)

    def _announce(self, made: plan.ImportPlan) -> ExitStatus:
        for noun, count in made.counts().items():
            self._tell(f"{noun}: {count}")
        return ExitStatus.EQUAL if made.is_empty else ExitStatus.DIFFERENT

    def _compare(self, source: Picture, target: Picture) -> ExitStatus:
        keeps_others = self.others is Others.KEEP
        count = 0
        for line in differences.find(source, target, keeps_others=keeps_others):
            self._tell(line)
            count += 1
        if count:
            self._tell(f"{count} differences")
            return ExitStatus.DIFFERENT
        self._tell(f"equal: {len(source.providers)} providers, {len(source.consumers)} consumers")
        return ExitStatus.EQUAL

    def _tell(self, line: str) -> None:
        self.told.write(f"{line}\n")

    def _warn(self, line: str) -> None:
        self.warned.write(f"innkeeper placement-import: {line}\n")
