"""Runs an import: read both services, check for objections, write, read again, and compare.

Always true: the first write begins only after both services were read and no objection was found.
With ``dry_run`` or ``verify_only``, nothing is written.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import TextIO

from innkeeper.clients.placement import PlacementApi
from innkeeper.domain.versions import Version
from innkeeper.entrypoints.cli.placement_import import differences, objections, plan
from innkeeper.entrypoints.cli.placement_import.objections import Others
from innkeeper.entrypoints.cli.placement_import.pictures import Picture
from innkeeper.entrypoints.cli.placement_import.reading import KINDS_SINCE, Reader
from innkeeper.entrypoints.cli.placement_import.writing import PlanWriter
from innkeeper.terminal.progress import StepProgress

SOURCE_LEAST = Version(1, 28)
"""The version of OpenStack's Rocky. Older services do not report the generations of consumers."""
TARGET_LEAST = KINDS_SINCE
"""Older versions cannot store the types of consumers, and cannot move providers."""


class ExitStatus(IntEnum):
    """The exit statuses of the command."""

    EQUAL = 0
    DIFFERENT = 1
    FAILED = 2


@dataclass(frozen=True, slots=True)
class PlacementImport:
    """One run of the import.

    It prints differences and counts to ``output``, and failures to ``errors``.
    """

    source: PlacementApi
    target: PlacementApi
    others: Others
    dry_run: bool
    verify_only: bool
    jobs: int
    progress: StepProgress
    wait: Callable[[float], object]
    output: TextIO
    errors: TextIO

    def run(self) -> ExitStatus:
        """Run the import, and return the exit status.

        Raises an error if a service rejects a request.
        """
        self.source.negotiate(SOURCE_LEAST)
        self.target.negotiate(TARGET_LEAST)
        if self.source.url == self.target.url:
            return self._fail(f"The source and the target are the same, {self.source.url}.")
        source, target = self._read_both()
        if self.verify_only:
            return self._compare(source, target)
        found = list(objections.find(source, target, self.others))
        if found:
            return self._fail(*found, "Nothing was written.")
        steps = plan.make(source, target, self.others)
        if self.dry_run:
            for noun, count in steps.counts().items():
                self._print(f"{noun}: {count}")
            return ExitStatus.EQUAL if steps.is_empty else ExitStatus.DIFFERENT
        if not steps.is_empty:
            writer = PlanWriter(self.target, target, self.jobs, self.progress, self.wait)
            writer.carry_out(steps)
            source, target = self._read_both()
        return self._compare(source, target)

    def _read_both(self) -> tuple[Picture, Picture]:
        reads_usages = not self.dry_run
        target = Reader(self.target, self.jobs, self.progress).read(with_usages=reads_usages)
        # If the target is empty, there are no usages to compare with. Not reading them saves many
        # requests.
        reads_usages = reads_usages and bool(target.providers)
        source = Reader(self.source, self.jobs, self.progress).read(with_usages=reads_usages)
        return source, target

    def _compare(self, source: Picture, target: Picture) -> ExitStatus:
        keeps_others = self.others is Others.KEEP
        count = 0
        for line in differences.find(source, target, keeps_others=keeps_others):
            self._print(line)
            count += 1
        if count:
            self._print(f"{count} differences")
            return ExitStatus.DIFFERENT
        self._print(f"equal: {len(source.providers)} providers, {len(source.consumers)} consumers")
        return ExitStatus.EQUAL

    def _print(self, line: str) -> None:
        self.output.write(f"{line}\n")

    def _fail(self, *lines: str) -> ExitStatus:
        for line in lines:
            self.errors.write(f"innkeeper placement-import: {line}\n")
        return ExitStatus.FAILED
