"""Create a lease, or a series of leases."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

from innkeeper.clients import lease_checks
from innkeeper.domain.errors import Invalid
from innkeeper.domain.leases import Lease, LeaseRequest, Window
from innkeeper.engine.transactions import Tx
from innkeeper.entrypoints.api.leases import bodies, external_check, options
from innkeeper.entrypoints.api.leases.leases import decided, lease_context, project_of, shown
from innkeeper.entrypoints.api.routing import Answer, Call
from innkeeper.systems.compute.boot.context import DecisionContext
from innkeeper.systems.leases import leases, series, sharing
from innkeeper.systems.leases.refusals import DATE
from innkeeper.systems.leases.series import LEASES_MAX, Recurrence, Series

RECURRENCE = "recurrence"
PERIODS = {"daily": timedelta(days=1), "weekly": timedelta(weeks=1)}
INTERVAL_MAX = 366
MODES = {"all": False, "fitting": True}
KNOWN = frozenset({"frequency", "interval", "until", "count", "mode"})


async def create(call: Call) -> Answer:
    """Create a lease or a series of leases. A lease reserves hosts, room for servers, or both."""
    chosen, body = options.take(call.body)
    project_id, ids = project_of(call), call.site.ids
    bodies.demand(body, bodies.NEEDED)
    body.setdefault("reservations", [])
    recurrence = _recurrence(call, body.pop(RECURRENCE, None))
    requests = _requests(call, body, recurrence)
    uuids = [[ids.uuid() for _ in body["reservations"]] for _ in requests]
    context, is_dry = lease_context(call), bodies.is_dry(call.last("dry_run"))

    def work(tx: Tx, decision: DecisionContext) -> Series:
        shared = sharing.others(project_id, chosen.get("shared_with", ()))
        sharing.demand_projects(tx, shared, context)
        parts = context.types.resolve_all(tx, body["reservations"], uuids[0], project_id)
        wanted = [
            replace(
                each,
                reservations=tuple(
                    replace(part, uuid=uuid) for part, uuid in zip(parts, own, strict=True)
                ),
                shared_with=shared,
                idle_grace_s=chosen.get("idle_grace_s"),
            )
            for each, own in zip(requests, uuids, strict=True)
        ]
        if recurrence is None:
            return Series((leases.create(tx, decision, wanted[0], context),))
        return series.create(tx, decision, wanted, context, may_skip=recurrence.may_skip)

    def planned(tx: Tx, decision: DecisionContext) -> tuple[Lease, ...]:
        return work(tx, decision).leases

    await external_check.ask_first(call, lease_checks.CREATE, planned)
    made = await decided(call, work, is_dry=is_dry)
    answer: dict[str, Any] = {"lease": shown(call, made.leases[0])}
    if recurrence is not None:
        answer["series"] = _shown(made)
    return Answer(200 if is_dry else 201, answer)


def _shown(made: Series) -> dict[str, Any]:
    return {
        "id": made.leases[0].series_uuid,
        "leases": [{"id": each.uuid, **_dates(each.window)} for each in made.leases],
        "skipped": [{**_dates(each.window), "reason": each.reason} for each in made.skipped],
    }


def _dates(window: Window) -> dict[str, str]:
    return {"start_date": window.start.strftime(DATE), "end_date": window.end.strftime(DATE)}


def _requests(
    call: Call, body: Mapping[str, Any], recurrence: Recurrence | None
) -> list[LeaseRequest]:
    """Return a request for each lease of the series, without reservations."""
    ids, leasing = call.site.ids, call.site.settings.leasing
    name, first = bodies.name_of(body["name"]), bodies.window_of(body, call.now)
    uuids = [ids.uuid() for _ in range(bodies.EVENT_IDS)]
    events = bodies.events_of(body, first, call.now, uuids, leasing)
    windows, series_uuid = [first], None
    if recurrence is not None:
        windows = recurrence.windows(first, timedelta(minutes=leasing.cleaning_time_min))
        series_uuid = ids.uuid()
    return [
        LeaseRequest(
            ids.uuid(),
            name,
            project_of(call),
            call.context.user_id or "",
            window,
            (),
            tuple(
                replace(each, uuid=ids.uuid(), due_at=each.due_at + (window.start - first.start))
                for each in events
            ),
            series_uuid=series_uuid,
        )
        for window in windows
    ]


def _recurrence(call: Call, given: Any) -> Recurrence | None:
    """Return how a lease is repeated, or ``None`` if it is not repeated."""
    if given is None:
        return None
    if not isinstance(given, Mapping):
        raise Invalid("Malformed parameter recurrence: use an object")
    unknown = sorted(given.keys() - KNOWN)
    if unknown:
        raise _malformed(f"there is no {unknown[0][: bodies.SHOWN_MAX]}")
    period = PERIODS.get(str(given.get("frequency")))
    if period is None:
        raise _malformed(f"frequency must be one of {', '.join(PERIODS)}")
    may_skip = MODES.get(str(given.get("mode", "all")))
    if may_skip is None:
        raise _malformed(f"mode must be one of {', '.join(MODES)}")
    count, until = given.get("count"), given.get("until")
    if (count is None) == (until is None):
        raise _malformed("either count or until must be given")
    return Recurrence(
        period * _number("interval", given.get("interval", 1), INTERVAL_MAX),
        None if count is None else _number("count", count, LEASES_MAX),
        None if until is None else bodies.moment(until, call.now),
        may_skip,
    )


def _number(name: str, given: Any, most: int) -> int:
    if not isinstance(given, int) or isinstance(given, bool) or not 1 <= given <= most:
        raise _malformed(f"{name} must be a number from 1 to {most}")
    return given


def _malformed(why: str) -> Invalid:
    return Invalid(f"Malformed parameter {RECURRENCE}: {why}")
