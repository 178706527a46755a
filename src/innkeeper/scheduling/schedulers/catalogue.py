"""The drivers by name. One of one's own is a class of the same shape, and a line here."""

from __future__ import annotations

from collections.abc import Mapping

from innkeeper.scheduling.schedulers.all_at_once import AllAtOnce
from innkeeper.scheduling.schedulers.availability_zone import AvailabilityZone
from innkeeper.scheduling.schedulers.chance import Chance
from innkeeper.scheduling.schedulers.scheduler import Scheduler
from innkeeper.scheduling.schedulers.simple import Simple

SCHEDULERS: Mapping[str, type[Scheduler]] = {
    AllAtOnce.NAME: AllAtOnce,
    Chance.NAME: Chance,
    AvailabilityZone.NAME: AvailabilityZone,
    Simple.NAME: Simple,
}
