"""Create a series of leases, one for each day or week, with a single request.

Always true: a series is created in one transaction. The leases of a series do not overlap, so they
do not compete for hosts. Afterwards, each lease of the series can be changed and ended on its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from innkeeper.domain.errors import (
    ConcurrentUpdate,
    Conflict,
    Invalid,
    NotEnough,
    NotFound,
    QuotaExceeded,
)
from innkeeper.domain.lease_searches import LeaseSearch
from innkeeper.domain.leases import LAST_MOMENT, Lease, LeaseRequest, LeaseStatus, Window
from innkeeper.store.queries.leases import holds
from innkeeper.store.queries.leases import leases as lease_queries
from innkeeper.store.transactions import Tx, step
from innkeeper.systems.compute.boot.context import DecisionContext
from innkeeper.systems.leases import leases, nearest, refusals
from innkeeper.systems.leases.context import LeaseContext
from innkeeper.systems.leases.refusals import DATE

LEASES_MAX = 100
"""The maximum number of leases of one series."""
HOLDS_MAX = 5000
"""The maximum number of reserved hosts in a series, added up over all leases."""
ENDED_AT_ONCE = 5
"""The maximum number of leases that one transaction ends."""
OVER = (LeaseStatus.ENDING, LeaseStatus.ENDED)


@dataclass(frozen=True, slots=True)
class Recurrence:
    """How a lease is repeated.

    The lease is repeated after each ``period``. ``count`` is the number of leases. ``until`` is the
    latest start of a lease. With ``may_skip``, windows in which the lease does not fit are left
    out. Without ``may_skip``, the lease must fit in all windows.
    """

    period: timedelta
    count: int | None = None
    until: datetime | None = None
    may_skip: bool = False

    def windows(self, first: Window, cleaning: timedelta) -> list[Window]:
        """Return the windows of all leases of the series.

        Raises :class:`Invalid` if the leases overlap, are too many, or end too late.
        """
        if first.end - first.start + cleaning > self.period:
            raise Invalid("Malformed parameter recurrence: the leases of a series would overlap.")
        if self.until is not None and self.until < first.start:
            raise Invalid("Malformed parameter recurrence: 'until' is before the first start.")
        found: list[Window] = []
        window = first
        while len(found) != self.count and (self.until is None or window.start <= self.until):
            if len(found) == LEASES_MAX:
                raise Invalid(
                    f"Malformed parameter recurrence: a series has at most {LEASES_MAX} leases."
                )
            found.append(window)
            if LAST_MOMENT - window.end < self.period:
                if self.count is not None and len(found) < self.count:
                    raise Invalid("Malformed parameter recurrence: the last lease ends too late.")
                break
            window = Window(window.start + self.period, window.end + self.period)
        return found


@dataclass(frozen=True, slots=True)
class SkippedWindow:
    """A window in which a lease did not fit, and the reason."""

    window: Window
    reason: str


@dataclass(frozen=True, slots=True)
class Series:
    """The created leases in order of time, and the windows that were skipped."""

    leases: tuple[Lease, ...]
    skipped: tuple[SkippedWindow, ...] = ()


def create(
    tx: Tx,
    decision: DecisionContext,
    requests: Sequence[LeaseRequest],
    context: LeaseContext,
    *,
    may_skip: bool,
    holds_max: int = HOLDS_MAX,
) -> Series:
    """Create the leases of a series, each with :func:`.leases.create`.

    With ``may_skip``, leases that do not fit or that exceed a quota are left out. If no lease fits,
    the first error is raised.

    Without ``may_skip``, any such lease raises an error. The error says which lease does not fit,
    and the earliest start of the first lease with which all leases would fit.
    """
    made: list[Lease] = []
    skipped: list[SkippedWindow] = []
    errors: list[Conflict | QuotaExceeded] = []
    held = 0
    for place, each in enumerate(requests):
        try:
            with step(tx, "lease_of_series"):
                made.append(leases.create(tx, decision, each, context, with_nearest=False))
        except ConcurrentUpdate:
            raise
        except (Conflict, QuotaExceeded) as error:
            if not may_skip:
                raise _of_lease(error, decision, requests, place, context) from error
            errors.append(error)
            skipped.append(SkippedWindow(each.window, error.message))
        else:
            # The sum is checked after each lease, so that a refusal comes early. All other writers
            # wait for this transaction.
            held += _held_by(tx, made[-1])
            if held > holds_max:
                raise Invalid(f"The leases of a series hold at most {holds_max} hosts together.")
    if not made:
        raise errors[0]
    return Series(tuple(made), tuple(skipped))


def _of_lease(
    error: Conflict | QuotaExceeded,
    decision: DecisionContext,
    requests: Sequence[LeaseRequest],
    place: int,
    context: LeaseContext,
) -> Conflict | QuotaExceeded:
    """Add two facts to an error: the lease that failed, and when the whole series would fit."""
    window = requests[place].window
    start = window.start.strftime(DATE)
    why = error.message.rstrip(".")
    message = f"{why}. The error is about lease {place + 1}, which starts at {start}."
    if not isinstance(error, NotEnough):
        kind = QuotaExceeded if isinstance(error, QuotaExceeded) else Conflict
        return kind(message, code=error.code)
    demands = [each.demand for each in requests[place].reservations]
    windows = [each.window for each in requests]
    first = nearest.first_window(decision.follower.table, demands, windows, place, context)
    if first is not None:
        message += (
            " The earliest first start with which all leases would fit is "
            f"{first.start.strftime(DATE)}."
        )
    details = {
        **error.details,
        **{"lease": place + 1, "start_date": start, "end_date": window.end.strftime(DATE)},
        **refusals.window_keys(first),
    }
    return NotEnough(message, code=error.code, details=details)


def _held_by(tx: Tx, lease: Lease) -> int:
    found = holds.of_reservations(tx, [each.id for each in lease.reservations])
    return sum(map(len, found.values()))


def leases_of(tx: Tx, series_uuid: str) -> list[Lease]:
    """Return the leases of a series in order of time, without deleted leases.

    Raises :class:`NotFound` if no such lease exists.
    """
    wanted = LeaseSearch(series_uuid=series_uuid)
    found = lease_queries.page(tx, project_id=None, before=None, limit=LEASES_MAX, wanted=wanted)
    if not found:
        raise unknown(series_uuid)
    return sorted(found, key=lambda each: (each.start_at, each.id))


def unknown(series_uuid: str) -> NotFound:
    """Return the error for a series that does not exist, or that the caller must not see."""
    return NotFound(f"Object with {{'series_id': '{series_uuid[:36]}'}} not found")


def end_some(
    tx: Tx, series_uuid: str, may_end: Callable[[Lease], bool], context: LeaseContext
) -> int:
    """Delete a few leases of a series that are not over and that the caller may end.

    Return the number of leases that are left to end.
    """
    found = leases_of(tx, series_uuid)
    running = [each for each in found if each.status not in OVER and may_end(each)]
    # The latest leases are deleted first, so that no lease begins between two calls.
    for each in running[::-1][:ENDED_AT_ONCE]:
        leases.delete(tx, each, context)
    return max(0, len(running) - ENDED_AT_ONCE)
