"""Find out how routings (the records of where resources are) differ from what their pod has.

Always true: a difference counts only if a second look still finds it. So a door (gateway) may work
during a comparison. A resource counts as lost only if its pod answers that it does not exist.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Protocol, TypeVar

from innkeeper.clients.pod_logins import PodLogin
from innkeeper.clients.pods import PodClient
from innkeeper.domain.door import SERVER, VOLUME, PodResource
from innkeeper.domain.ids import Clock
from innkeeper.domain.pods import Pod
from innkeeper.engine.pods import measuring
from innkeeper.engine.pods.held_resources import HeldResources
from innkeeper.store.transactions import Tx
from innkeeper.systems.pods import checks
from innkeeper.systems.pods.checks import PodDifference

T = TypeVar("T")
KINDS = (SERVER, VOLUME)
PODS_AT_ONCE = 2
"""The number of pods compared at once. All resources of these pods are in memory, and each takes 3
kB."""
AT_ONCE = 100
"""The number of resources that are looked at for the second time at once. The client has a limit of
its own."""
UNSETTLED = 2
"""If a routing changed within this many request timeouts, the pod may not show the change of the
resource yet."""


class Read(Protocol):
    """Runs a function in a transaction that reads."""

    async def __call__(self, work: Callable[[Tx], T], /) -> T:
        """Return the result of the function."""


@dataclass(frozen=True, slots=True)
class PodComparison:
    """The differences of a pod, and the number of routings to it that it has confirmed."""

    differences: Sequence[PodDifference]
    known: int


@dataclass(frozen=True, slots=True)
class Comparing:
    """Compares pods with routings. ``turns`` limits how many are compared at once."""

    read: Read
    client: PodClient
    timeout_s: float
    clock: Clock
    turns: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(PODS_AT_ONCE))

    async def compare(self, pod: Pod, login: PodLogin) -> PodComparison:
        """Return how the routings of a pod differ from what the pod has. Raises :class:`PodSilent`.

        ``login`` is the administrator's login of this service.
        """
        # A pod that does not answer must not use up the turn of another pod.
        await measuring.poll(self.client, login, self.timeout_s)
        async with self.turns:
            return await self._compare(pod, login)

    async def _compare(self, pod: Pod, login: PodLogin) -> PodComparison:
        held = HeldResources(self.client, login, self.timeout_s)
        found: list[PodDifference] = []
        for kind in KINDS:
            told = await held.every(kind)
            first = await self._differences(pod, kind, told)
            if first:
                await self._look_again(held, kind, first, told)
                kept = {(each.fault, each.uuid) for each in first}
                last = await self._differences(pod, kind, told)
                # A new difference has not had its second look.
                found += [each for each in last if (each.fault, each.uuid) in kept]
        return PodComparison(found, await self.read(lambda tx: checks.count(tx, pod)))

    async def _look_again(
        self,
        held: HeldResources,
        kind: str,
        found: Sequence[PodDifference],
        told: dict[str, PodResource],
    ) -> None:
        """Ask for each resource that differs, and correct what the pod ``told``."""
        doubtful = list(dict.fromkeys(each.uuid for each in found))
        for start in range(0, len(doubtful), AT_ONCE):
            part = doubtful[start : start + AT_ONCE]
            answers = await asyncio.gather(*(held.one(kind, uuid) for uuid in part))
            for uuid, answer in zip(part, answers, strict=True):
                if answer is None:
                    told.pop(uuid, None)
                else:
                    told[uuid] = answer

    async def _differences(
        self, pod: Pod, kind: str, told: dict[str, PodResource]
    ) -> list[PodDifference]:
        before = self.clock() - timedelta(seconds=self.timeout_s * UNSETTLED)
        return await self.read(lambda tx: checks.compare(tx, pod, kind, told, before))
