"""Functions for all operations that add a host to a pcloud or remove a host from it.

Always true: when a host joins or leaves a pcloud, the dedication and ratios in the host's row
change in the same transaction. Decisions read only the host's row.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from innkeeper.domain.compute import Host
from innkeeper.domain.hosts import Dedication
from innkeeper.domain.pclouds import Pcloud, PcloudHost
from innkeeper.store.queries.pclouds import actions as pcloud_actions
from innkeeper.store.queries.pclouds import hosts as pcloud_hosts
from innkeeper.store.queries.pclouds import pclouds
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.grouping import dedications, owned_aggregates
from innkeeper.systems.compute.hosts import hosts
from innkeeper.systems.compute.moves import cleanup
from innkeeper.systems.pclouds.context import PcloudContext


def host_of(tx: Tx, host_id: int) -> Host:
    """Return the machine with this row id, which is a host of a pcloud."""
    found = hosts.by_row(tx, host_id)
    assert found is not None, "the row of a host in a pool is never deleted"
    return found


def why_not_empty(tx: Tx, host: Host) -> str | None:
    """Return why a host is not empty, or ``None``. See :func:`cleanup.why_not_empty`."""
    return cleanup.why_not_empty(tx, host)


def pcloud_of(tx: Tx, member: PcloudHost) -> Pcloud:
    return pclouds.by_rows(tx, [member.pcloud_id])[member.pcloud_id]


def dedicate(tx: Tx, pcloud: Pcloud, member: PcloudHost, now: datetime) -> None:
    """Write to a host's row which pcloud the host is in, and whether the host takes servers."""
    present = pcloud_hosts.by_host(tx, member.host_id)
    assert present is not None, "it is in the pcloud"
    state = Dedication.OPEN if present.is_open else Dedication.CLOSED
    dedications.dedicate(tx, host_of(tx, member.host_id), state, pcloud.uuid, now)


def join(
    tx: Tx,
    pcloud: Pcloud,
    host: Host,
    name: str,
    units: int,
    context: PcloudContext,
    *,
    is_enabled: bool,
) -> PcloudHost:
    """Add a free host to a pcloud. The pcloud's owner pays for the host from now on."""
    pcloud_hosts.add(
        tx,
        {
            "host_id": host.id,
            "pcloud_id": pcloud.id,
            "name": name,
            "units": units,
            "is_enabled": is_enabled,
            "is_replaced": False,
            "allocated_at": context.now,
        },
    )
    owned_aggregates.add_host(tx, pcloud.aggregate_id, pcloud.uuid, host, context.now)
    dedications.set_ratios(tx, host, pcloud.ratios, context.now)
    member = pcloud_hosts.by_host(tx, host.id)
    assert member is not None, "it was just written"
    begin_billing(tx, pcloud, [member], context.now)
    dedicate(tx, pcloud, member, context.now)
    return member


def begin_billing(tx: Tx, pcloud: Pcloud, found: Sequence[PcloudHost], now: datetime) -> None:
    """Begin billing periods for some hosts of a pcloud, at the expense of the pcloud's owner."""
    rows = [
        {
            "pcloud_uuid": pcloud.uuid,
            "project_id": pcloud.project_id,
            "host_id": member.host_id,
            "host_name": member.name,
            "flavor_id": member.flavor_id,
            "units": member.units,
            "started_at": now,
        }
        for member in found
    ]
    pcloud_hosts.begin_billing(tx, rows)


def leave(tx: Tx, pcloud: Pcloud, member: PcloudHost, now: datetime) -> None:
    """Remove an empty host from a pcloud.

    The host is free again. Its ratios are those that its agent reports.
    """
    host = host_of(tx, member.host_id)
    pcloud_hosts.end_billing(tx, [host.id], now)
    pcloud_hosts.remove(tx, host.id)
    owned_aggregates.remove_host(tx, pcloud.aggregate_id, pcloud.uuid, host, now)
    dedications.set_ratios(tx, host, {}, now)
    dedications.dedicate(tx, host, Dedication.POOLED, None, now)


def record(
    tx: Tx,
    pcloud: Pcloud,
    action: str,
    context: PcloudContext,
    *,
    host_name: str | None = None,
    detail: str | None = None,
) -> None:
    """Record an action on a pcloud. The pcloud's owner can read the record."""
    owner, initiator, now = pcloud.project_id, context.initiator, context.now
    pcloud_actions.add(
        tx, pcloud.uuid, owner, action, initiator, now, host_name=host_name, detail=detail
    )
