"""Boots on a snapshot that is outdated by writes of other processes."""

from __future__ import annotations

from innkeeper.domain.compute import Booted, BootRequest
from innkeeper.domain.errors import Refusal
from innkeeper.domain.slices import Scheduling
from innkeeper.snapshot.follower import Follower
from innkeeper.systems.compute.boot.boot import boot_together
from innkeeper.systems.compute.boot.context import DecisionContext
from innkeeper.systems.compute.boot.drivers import Schedulers
from innkeeper.systems.compute.boot.plans_ahead import PlansAhead
from innkeeper.systems.compute.boot.recordings import Recorder
from tests.support.clouds import UNLIMITED, Cloud


def boot_outdated(
    cloud: Cloud, *requests: BootRequest, follower: Follower | None = None, attempts_max: int = 10
) -> list[Booted | Refusal]:
    """Boot on the table as it is, without catching up with the store."""
    scheduling = Scheduling(claim_attempts_max=attempts_max)
    executor = follower or cloud.executor.follower
    schedulers = Schedulers(scheduling)
    recorder = Recorder(scheduling, schedulers, keep=None)
    context = DecisionContext(executor, schedulers, scheduling, UNLIMITED, recorder)
    with cloud.store.write() as tx:
        executor.begin(tx)
        outcomes = boot_together(tx, context, requests, PlansAhead(context))
        cloud.executor.follow(tx)
    return outcomes
