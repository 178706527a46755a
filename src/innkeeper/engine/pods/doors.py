"""The parts of the door, which forwards requests for servers and volumes to pods."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from innkeeper.domain.slices import Settings
from innkeeper.engine.pods.clouds import SETTLE_PERIOD_S, SETTLES, PodClouds
from innkeeper.engine.pods.creating import Creating
from innkeeper.engine.pods.forwarding import Forwarding
from innkeeper.engine.pods.lists import Lists
from innkeeper.engine.pods.lookups import Lookups
from innkeeper.engine.pods.provisioning import Provisioning
from innkeeper.engine.pods.reconciling import Reconciling
from innkeeper.engine.pods.recovery import Recovery
from innkeeper.engine.pods.tenants import Tenants
from innkeeper.engine.pods.volume_parts import VolumeParts
from innkeeper.store import periodic


@dataclass(frozen=True, slots=True)
class Door:
    """The parts of a door (a gateway to pods), for use in one event loop."""

    clouds: PodClouds
    settings: Settings
    creating: Creating
    forwarding: Forwarding
    lists: Lists
    recovery: Recovery
    volume_parts: VolumeParts
    lookups: Lookups
    reconciling: Reconciling


def door_of(settings: Settings, clouds: PodClouds | None) -> Door | None:
    """Return the door if this service is a gateway, or else ``None``.

    Raises ``ValueError`` if a gateway does not administer pods.
    """
    if settings.podding.role != "gateway":
        return None
    if clouds is None:
        raise ValueError("The role 'gateway' needs 'pods' in the setting 'apis'.")
    tenants = Tenants(clouds)
    provisioning = Provisioning(clouds, tenants)
    creating = Creating(clouds, settings, tenants, provisioning)
    return Door(
        clouds,
        settings,
        creating,
        Forwarding(clouds, settings, tenants, provisioning, creating.acknowledged),
        Lists(clouds, tenants, provisioning),
        Recovery(clouds, tenants, creating),
        VolumeParts(clouds, settings, tenants, creating),
        Lookups(clouds, tenants),
        Reconciling(clouds),
    )


class DoorUpkeep:
    """The periodic work of a door (a gateway to pods), as the worker threads call it."""

    def __init__(self, door: Door) -> None:
        self._door = door

    @property
    def tasks(self) -> tuple[Callable[[], int], Callable[[], int]]:
        """The two periodic functions: one settles open routings, the other checks pods."""
        return self.settle, self.check

    def settle(self) -> int:
        """Settle open routings, if it is this process's turn.

        Return the number of settled routings.
        """
        return asyncio.run(self._settle())

    def check(self) -> int:
        """Check due pods, if it is this process's turn. Return the number of repairs."""
        return asyncio.run(self._beside(lambda door: door.reconciling.check()))

    async def _settle(self) -> int:
        now = self._door.clouds.clock()
        is_ours = await self._door.clouds.engine.write(
            lambda tx: periodic.take_turn(tx, SETTLES, SETTLE_PERIOD_S, now)
        )
        return await self._beside(lambda door: door.recovery.settle()) if is_ours else 0

    async def _beside(self, work: Callable[[Door], Awaitable[int]]) -> int:
        beside = self._door.clouds.beside()
        here = door_of(self._door.settings, beside)
        assert here is not None, "a door is beside a door"
        try:
            return await work(here)
        finally:
            await beside.client.close()
