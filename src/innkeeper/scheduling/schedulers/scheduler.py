"""The protocol of drivers, which make build plans from requests and the host table.

A plugin is a class of this shape; ``scheduler_driver`` names it as ``package.module:Class``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from innkeeper.domain.placing import BuildPlan, RequestSpec
from innkeeper.scheduling.pipeline import Pipeline
from innkeeper.snapshot.columns import HostTable


@dataclass(frozen=True, slots=True)
class Choice:
    """How to choose among the best hosts.

    Hosts of equal weight are always equally likely. A ``subset_size`` above 1 draws from that
    many of the best hosts, which reduces conflicts between processes. Each server gets up to
    ``alternates`` alternates: the next best hosts. The first ``parts_max`` entries have their
    weights by weigher.
    """

    subset_size: int = 1
    alternates: int = 0
    parts_max: int = 0


class Scheduler(Protocol):
    """Makes build plans."""

    NAME: str
    pipeline: Pipeline
    """The filters and weighers in use, for explanations."""

    def __init__(self, pipeline: Pipeline, choice: Choice) -> None:
        """Take the configured filters and weighers; a driver may ignore some or add some."""

    def plan(self, hosts: HostTable, spec: RequestSpec) -> BuildPlan:
        """Choose a host for each of ``spec.count`` servers, while any host is left.

        The plan's amounts are already taken from the table: the caller claims them, or gives
        them back with :func:`innkeeper.scheduling.depletion.undo`.
        """
