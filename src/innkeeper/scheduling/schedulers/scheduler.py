"""Define the protocol of drivers. A driver makes build plans from requests and the host table.

A plugin is a class with this protocol. The setting ``scheduler_driver`` names it as
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
    """The options for choosing among the best hosts.

    Hosts of equal weight are always equally likely. With a ``subset_size`` above 1, each host is
    drawn at random from this number of best hosts. This reduces conflicts between processes. Each
    server gets up to ``alternates`` next best hosts as alternates. The first ``parts_max`` entries
    of a plan also have the parts of the weight by weigher.
    """

    subset_size: int = 1
    alternates: int = 0
    parts_max: int = 0


class Scheduler(Protocol):
    """A scheduler makes build plans. It is also called a driver."""

    NAME: str
    pipeline: Pipeline
    """The filters and weighers in use, for explanations."""

    def __init__(self, pipeline: Pipeline, choice: Choice) -> None:
        """Create the driver with the configured filters and weighers.

        It may ignore some or add others.
        """

    def plan(self, hosts: HostTable, spec: RequestSpec) -> BuildPlan:
        """Choose a host for each of ``spec.count`` servers, until no host is left.

        The method also takes the plan's amounts from the table. The caller must claim these amounts
        in the database, or give them back with :func:`innkeeper.scheduling.depletion.undo`.
        """
