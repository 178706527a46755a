"""Conditions on the name, owner, series, time and computed status of leases."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from innkeeper.domain.lease_searches import LeaseSearch
from innkeeper.domain.leases import LeaseEventKind, LeaseEventState, LeaseStatus
from innkeeper.store.tables.leases import lease_events, leases


def narrowed(query: sa.Select[Any], wanted: LeaseSearch) -> sa.Select[Any]:
    """Return a query for leases, extended by the conditions of a search."""
    same = {"name": leases.c.name, "project_id": leases.c.project_id}
    same["series_uuid"] = leases.c.series_uuid
    for name, column in same.items():
        value = getattr(wanted, name)
        if value is not None:
            query = query.where(column == value)
    if wanted.since is not None:
        query = query.where(leases.c.end_at > wanted.since)
    if wanted.until is not None:
        query = query.where(leases.c.start_at < wanted.until)
    if wanted.status is not None:
        query = query.where(_has_status(wanted.status))
    return query


def _has_status(status: str) -> sa.ColumnElement[bool]:
    """Return the condition that a lease has this status (see :attr:`.Lease.status`)."""
    failed = _is(LeaseEventKind.START, LeaseEventState.FAILED) | _is(
        LeaseEventKind.END, LeaseEventState.FAILED
    )
    if status == LeaseStatus.FAILED:
        return failed
    ended = _is(LeaseEventKind.END, LeaseEventState.DONE)
    if status == LeaseStatus.ENDED:
        return ended & ~failed
    ending = leases.c.ended_at.is_not(None) | _is(LeaseEventKind.END, LeaseEventState.BEGUN)
    if status == LeaseStatus.ENDING:
        return ending & ~ended & ~failed
    states = {
        LeaseStatus.PENDING: LeaseEventState.WAITING,
        LeaseStatus.STARTING: LeaseEventState.BEGUN,
        LeaseStatus.ACTIVE: LeaseEventState.DONE,
    }
    return _is(LeaseEventKind.START, states[status]) & ~ending & ~ended & ~failed


def _is(kind: str, state: str) -> sa.ColumnElement[bool]:
    """Return the condition that a lease's event of this kind has this state."""
    return sa.exists().where(
        lease_events.c.lease_id == leases.c.id,
        lease_events.c.kind == kind,
        lease_events.c.state == state,
    )
