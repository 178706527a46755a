"""Find the differences between a pod and its routings, the records of where resources are.

Always true: a difference counts only if a second look confirms it. So a door (gateway) may serve
requests during a comparison. A resource counts as lost only if its pod answers that the resource
does not exist.
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
"""The maximum number of pods that are compared at once. All resources of these pods are in memory,
and each resource takes 3 kB."""
AT_ONCE = 100
"""The maximum number of resources that are looked up at once in the second look. The client has a
limit of its own."""
UNSETTLED = 2
"""A routing that changed within this many request timeouts is not compared, because the pod may not
show the change yet."""


class Read(Protocol):
    """Runs a function in a read-only transaction."""

    async def __call__(self, work: Callable[[Tx], T], /) -> T:
        """Return the result of the function."""


@dataclass(frozen=True, slots=True)
class PodComparison:
    """The differences of a pod, and the number of routings that the pod has confirmed."""

    differences: Sequence[PodDifference]
    known: int


@dataclass(frozen=True, slots=True)
class Comparing:
    """Compares pods with routings. ``turns`` limits how many pods are compared at once."""

    read: Read
    client: PodClient
    timeout_s: float
    clock: Clock
    turns: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(PODS_AT_ONCE))

    async def compare(self, pod: Pod, login: PodLogin) -> PodComparison:
        """Return the differences between a pod and its routings. Raises :class:`PodSilent`.

        ``login`` is the administrator's login of this service.
        """
        # Poll the pod before its turn, so that a pod that does not answer takes no turn.
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
                # Skip differences that are new in the last look, because they have had no second
                # look.
                found += [each for each in last if (each.fault, each.uuid) in kept]
        return PodComparison(found, await self.read(lambda tx: checks.count(tx, pod)))

    async def _look_again(
        self,
        held: HeldResources,
        kind: str,
        found: Sequence[PodDifference],
        told: dict[str, PodResource],
    ) -> None:
        """Ask the pod for each resource that differs, and update ``told`` with the answers."""
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
