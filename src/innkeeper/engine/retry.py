"""Every retry of the service in one table: who repeats what, how often, and how it ends.

Always true: a retry on which a client waits is bounded in number or in time. An attempt is
repeated only if nothing of it remains, or if it is looked up first. Pauses are drawn at random
around their lengths: processes that failed together must not come back together.

The code takes its numbers from the rows. Floors below this one cannot import them, so a loop
there has numbers of its own, and a test compares. Clients of the service (the agent, the import
of another Placement) have retries of their own.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from threading import Event
from typing import TypeVar

import structlog

from innkeeper.domain.errors import (
    Busy,
    Collided,
    ConcurrentUpdate,
    Doubtful,
    Overtaken,
    ProviderChanged,
    Refusal,
    Unreachable,
)
from innkeeper.domain.slices import Settings

LOG = structlog.get_logger("innkeeper.decisions")
T = TypeVar("T")

LOOK_UPS_MAX = 3
"""How often a boot is looked up whose commit was not answered."""
JITTER_OF = 1_000
REPEAT_WITHIN_S = 3.0
"""No repeat of a batch begins later: others wait for the thread meanwhile, and are better
refused."""
CAUSE = "Another thread concurrently updated the resource provider data. Please retry your update"
"""Clients of Placement know a conflict that they should repeat by these words."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A number that operators choose, by its name in the settings."""

    name: str
    of: Callable[[Settings], float]


@dataclass(frozen=True, slots=True)
class Retry:
    """One row of the table.

    ``errors`` are those after which something is repeated, in the modules ``where``.
    ``attempts_max`` counts the first attempt too, so 1 is no retry at all. After ``within_s``
    no attempt is begun. ``pauses_s`` come before the repeats, the last one again and again.
    ``answer`` is what the client sees in the end; where :func:`again` raises the error, it is
    the message itself.
    """

    errors: tuple[type[Exception], ...]
    happened: str
    repeated: str
    where: tuple[str, ...]
    answer: str
    attempts_max: int | Setting | None = None
    within_s: float | Setting | None = None
    pauses_s: tuple[float, ...] = ()

    def attempts(self, settings: Settings) -> int:
        """How often it is tried at most; only of a row with a bound in number."""
        most = self.attempts_max
        assert most is not None, "bounded in time, not in number"
        return int(most.of(settings)) if isinstance(most, Setting) else most


# -- a writer came between ---------------------------------------------------------------------

CLAIM = Retry(
    errors=(ProviderChanged,),
    happened="a host changed after the plan had looked at it",
    repeated="the look, the plan and the claim, in the same transaction",
    where=("systems/compute/boot/boot.py",),
    attempts_max=Setting("claim_attempts_max", lambda it: it.scheduling.claim_attempts_max),
    answer="409: The chosen hosts kept changing; trying again may help.",
)
ALLOCATIONS = Retry(
    errors=(Overtaken,),
    happened="another writer came between the look at a provider and the write",
    repeated="the whole write of allocations, in a transaction of its own",
    where=("entrypoints/api/placement/allocations.py",),
    attempts_max=Setting(
        "allocation_conflict_retry_count", lambda it: it.placing.allocation_conflict_retry_count
    ),
    answer="Inventory and/or allocations changed while attempting to allocate: " + CAUSE,
)
RESHAPE = Retry(
    errors=(Overtaken,),
    happened="another writer came between the look at a provider and the write",
    repeated="the whole reshape, in a transaction of its own",
    where=("entrypoints/api/placement/reshaper.py",),
    attempts_max=ALLOCATIONS.attempts_max,
    answer="update conflict: " + CAUSE,
)
WHOLE_HOSTS = Retry(
    errors=(Overtaken,),
    happened="another writer came between the look at a host and the write",
    repeated="the whole act on pclouds, host flavors, aggregates or leases, in a transaction "
    "of its own",
    where=(
        "entrypoints/api/pclouds",
        "entrypoints/api/compute/grouping/aggregates.py",
        "entrypoints/api/leases",
    ),
    # As many as of allocations. It is no setting: a writer that loses this often has found
    # something else than bad luck.
    attempts_max=10,
    answer="Other requests changed the same hosts each time that this one was tried. Nothing "
    "was changed. Repeat the request.",
)
ALL_ELSE = Retry(
    errors=(Overtaken, ConcurrentUpdate),
    happened="another writer came between, or a generation is not the one that the client named",
    repeated="nothing: the client looks again and decides",
    where=("systems",),
    attempts_max=1,
    answer="409, with the reason",
)

# -- the database ------------------------------------------------------------------------------

PASSING = Retry(
    errors=(Collided, Unreachable),
    happened="another transaction was in the way, or the database was gone before the commit "
    "was sent; nothing was changed",
    repeated="the whole batch, or the read, on another connection",
    where=("engine/batches.py", "engine/readers.py"),
    attempts_max=4,
    within_s=REPEAT_WITHIN_S,
    # A collision is over by then, and a dead connection is replaced. A fail-over takes longer;
    # the client is told so, and waits for it.
    pauses_s=(0.05, 0.2, 0.6),
    answer="503",
)
WAITED = Retry(
    errors=(Busy,),
    happened="other writers held the database for busy_timeout_s",
    repeated="nothing: every command of the batch would wait as long",
    where=("engine/batches.py",),
    attempts_max=1,
    answer="503",
)
ONE_BY_ONE = Retry(
    errors=(Exception,),
    happened="a batch failed for another reason, such as a full disk or a defect in one of its "
    "commands; nothing was changed",
    repeated="each command alone, up to the first that finds the database gone or busy",
    where=("engine/batches.py",),
    attempts_max=2,
    answer="what the command alone met: 500, or 503",
)
DOUBT = Retry(
    errors=(Doubtful,),
    happened="the commit was sent and its answer did not arrive",
    repeated="boots, which are looked up first by the ids of their servers; nothing else",
    where=("engine/batches.py",),
    attempts_max=1 + LOOK_UPS_MAX,
    answer="503 that says that nobody knows",
)
NEXT_TURN = Retry(
    errors=(Refusal,),
    happened="periodic work was refused, for any of these reasons",
    repeated="the task at its next turn, since what was due is still due",
    where=("engine/periodic.py",),
    pauses_s=(10.0,),
    answer="nobody waits for it; the log tells",
)

# -- a start -----------------------------------------------------------------------------------

START = Retry(
    errors=(Unreachable, Busy, Doubtful),
    happened="the database was not there when a service started",
    repeated="the step of the start, which looks first whether it is done",
    where=("entrypoints/worker/database_wait.py",),
    within_s=Setting("database_wait_s", lambda it: it.storing.database_wait_s),
    pauses_s=(0.25, 0.5, 1.0, 2.0, 4.0, 5.0),
    answer="the program ends with status 3",
)
START_ON_FILE = Retry(
    # A file that cannot be opened does not come by itself, nor does room on its disk.
    errors=(Busy,),
    happened="another process held the file of the database when a service started",
    repeated=START.repeated,
    where=START.where,
    within_s=START.within_s,
    pauses_s=START.pauses_s,
    answer=START.answer,
)
UPGRADE = Retry(
    errors=(Busy,),
    happened="another program was bringing the schema up",
    repeated="the look whether it is up",
    where=("store/schema.py",),
    within_s=600.0,
    pauses_s=(0.2, 0.4, 0.8, 1.6, 3.2, 5.0),
    answer="the program ends and says so",
)
GALERA_WRITER = Retry(
    errors=(Unreachable,),
    happened="several programs named another Galera node the writer at the same time",
    repeated="the look for the writer",
    where=("store/backends/galera.py",),
    attempts_max=3,
    answer="as of any database that is not there",
)

TABLE = (
    CLAIM,
    ALLOCATIONS,
    RESHAPE,
    WHOLE_HOSTS,
    ALL_ELSE,
    PASSING,
    WAITED,
    ONE_BY_ONE,
    DOUBT,
    NEXT_TURN,
    START,
    START_ON_FILE,
    UPGRADE,
    GALERA_WRITER,
)


async def again(attempt: Callable[[], Awaitable[T]], retry: Retry, attempts_max: int) -> T:
    """Wait for ``attempt``, and for another one after each error of the row's.

    Each attempt is a command of its own, which looks at the store anew. What a lost one wrote
    is undone. Raises :class:`ConcurrentUpdate` with the row's answer if ``attempts_max`` of
    them were lost.
    """
    for _ in range(attempts_max):
        try:
            return await attempt()
        except retry.errors as error:
            LOG.info("write_overtaken", cause=str(error))
    LOG.warning("write_given_up", attempts=attempts_max)
    raise ConcurrentUpdate(retry.answer)


class Repeats:
    """The attempts at one piece of work that the database could not take."""

    def __init__(self) -> None:
        self._begun_s = time.perf_counter()
        self._pauses = iter(PASSING.pauses_s)

    def wait(self) -> bool:
        """Wait until it is time for the next attempt; at once False if there is to be none."""
        pause_s = next(self._pauses, None)
        if pause_s is None or time.perf_counter() - self._begun_s > REPEAT_WITHIN_S:
            return False
        Event().wait(pause_s * (0.5 + _jitter()))
        return True


def _jitter() -> float:
    """Some number from 0 to 1 that processes do not share: the last digits of a fine clock.

    What failed at the same moment must not come back at the same moment.
    """
    return time.perf_counter_ns() // 100 % JITTER_OF / JITTER_OF
