"""Compares routings with the resources that pods report. A pod is a cloud behind this service.

A routing is the record of where a resource is.

Always true: a difference is reported only if a second look confirms it. So services may run during
an audit. A repair changes only routings, never a pod.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import TypeVar

from innkeeper.clients.pods import PodClient, PodSilent
from innkeeper.domain.auditing import Finding, Invariant, Repaired
from innkeeper.domain.errors import Conflict
from innkeeper.domain.ids import Clock
from innkeeper.domain.pod_settings import Podding
from innkeeper.domain.pods import Pod
from innkeeper.engine.database import Database
from innkeeper.engine.maintenance.audit import Undone
from innkeeper.engine.pods.clouds import login_of
from innkeeper.engine.pods.comparing import Comparing
from innkeeper.store.transactions import Tx
from innkeeper.systems.identity.secret_boxes import SecretBox
from innkeeper.systems.pods import checks, pods
from innkeeper.systems.pods.audit import ROOM
from innkeeper.systems.pods.checks import PodDifference, PodFault

T = TypeVar("T")
_invariant = partial(Invariant, ROOM)
_BY_ITSELF = "Wait for the periodic check."
SILENT = _invariant(
    "silent-pod",
    "a pod reports which servers and volumes it has",
    "Repair the connection or the login. The login must be allowed to list all projects.",
)
LOST = _invariant(
    "lost-in-pod",
    "the server or volume of a routing exists in its pod",
    _BY_ITSELF,
    "deletes the routing, so that the resource no longer counts against quotas",
)
UNKNOWN = _invariant(
    "unknown-in-pod",
    "a server or volume in a pod has a routing if it has the door's mark or belongs to a server of "
    "the door",
    "Find out who owns the resource. Delete it in the pod, unless another door made it.",
    "records a routing for the resource, if its project is known here",
)
PROJECT = _invariant(
    "wrong-project-in-pod",
    "a server or volume has the same project in its pod as in its routing",
    "Give the resource to the right project in the pod, or delete the routing.",
    "changes the routing's project to the one in the pod, if that project is known here",
)
AMOUNTS = _invariant(
    "wrong-amounts-in-pod",
    "a server or volume counts against quotas with the amounts that it has in its pod",
    _BY_ITSELF,
    "counts the amounts that the pod reports",
)
INVARIANTS: Mapping[PodFault, Invariant] = {
    PodFault.LOST: LOST,
    PodFault.UNKNOWN: UNKNOWN,
    PodFault.PROJECT: PROJECT,
    PodFault.AMOUNTS: AMOUNTS,
}
"""The invariant for each fault, in the order of repairs. The order matters, because a resource that
is lost in one pod may be unknown in another pod."""
POD_INVARIANTS = (SILENT, *INVARIANTS.values())


class PodAudit:
    """An audit that asks all pods."""

    def __init__(self, database: Database, box: SecretBox, podding: Podding, clock: Clock) -> None:
        self._database = database
        self._box = box
        self._podding = podding
        self._clock = clock
        self._found: dict[Finding, PodDifference] = {}

    def look(self) -> list[Finding]:
        """Ask all pods, and return all findings."""
        return asyncio.run(self._look())

    def repair(
        self, found: Sequence[Finding], now: datetime, *, is_dry: bool = False
    ) -> Iterator[Repaired]:
        """Repair findings of the last :meth:`look`. Yield each repair."""
        wanted = [
            (invariant.kind, self._found[each])
            for invariant in INVARIANTS.values()
            for each in found
            if each.invariant is invariant and each in self._found
        ]
        # A repair can depend on an earlier repair, so a dry run undoes all repairs together.
        for part in [wanted] if is_dry else [[each] for each in wanted]:
            done: list[Repaired] = []
            with suppress(Undone), self._database.store.write() as tx:
                for kind, difference in part:
                    text = checks.repair(tx, difference, now)
                    done += [] if text is None else [Repaired(kind, text)]
                if is_dry:
                    raise Undone
            yield from done

    async def _look(self) -> list[Finding]:
        client = PodClient(self._clock, self._podding.pod_requests_max)
        timeout_s = self._podding.pod_request_timeout_s
        comparing = Comparing(self._read, client, timeout_s, self._clock)
        try:
            every = self._database.read(pods.every)
            found = await asyncio.gather(*(self._of_pod(comparing, each) for each in every))
        finally:
            await client.close()
        return [finding for of_pod in found for finding in of_pod]

    async def _of_pod(self, comparing: Comparing, pod: Pod) -> list[Finding]:
        try:
            password = self._database.read(lambda tx: pods.password_of(tx, pod, self._box))
            told = await comparing.compare(pod, login_of(pod, password))
        except (PodSilent, Conflict) as error:
            return [SILENT.broken(pod.pod_name, f"pod {pod.pod_name}: {error}")]
        found = [
            (INVARIANTS[each.fault].broken(each.uuid, each.text), each) for each in told.differences
        ]
        self._found.update(found)
        return [finding for finding, _ in found]

    async def _read(self, work: Callable[[Tx], T], /) -> T:
        return self._database.read(work)
