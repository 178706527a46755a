"""What a driver is: it makes a build plan of a request, on the host table.

A driver of one's own is a class of this shape; ``scheduler_driver`` names it as
``package.module:Class``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from innkeeper.domain.placing import BuildPlan, RequestSpec
from innkeeper.scheduling.pipeline import Pipeline
from innkeeper.snapshot.columns import HostTable


@dataclass(frozen=True, slots=True)
class Choice:
    """How to choose among the best.

    Of hosts of equal weight each is equally likely, always. With ``subset_size`` above 1 so
    are that many of the best, which keeps several deciders apart. Each server is given so many
    ``alternates`` as there are, at most. Of the first ``parts_max`` servers it is told what
    each weigher gave to their hosts.
    """

    subset_size: int = 1
    alternates: int = 0
    parts_max: int = 0


class Scheduler(Protocol):
    """Makes build plans."""

    NAME: str
    pipeline: Pipeline
    """The filters and weighers in force, for explanations."""

    def __init__(self, pipeline: Pipeline, choice: Choice) -> None:
        """Take the settings' filters and weighers; a driver may leave some out or add some."""

    def plan(self, hosts: HostTable, spec: RequestSpec) -> BuildPlan:
        """Choose a host for each of ``spec.count`` servers, as long as there are any.

        The chosen amounts are off the table when this returns: claim them, or give them back
        with :func:`innkeeper.scheduling.depletion.undo`.
        """
