"""What each way in and out of a pcloud has in common for one host of it.

Always true: what is said here of a host is said in its own row as well, where decisions read
it, and its ratios are those of its pcloud, in the transaction of the change.
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
    """The machine behind a pcloud's host."""
    found = hosts.by_row(tx, host_id)
    assert found is not None, "a host in a pool is not forgotten"
    return found


def why_not_empty(tx: Tx, host: Host) -> str | None:
    """See :func:`cleanup.why_not_empty`; who takes such a host next waits for its agent."""
    return cleanup.why_not_empty(tx, host)


def pcloud_of(tx: Tx, member: PcloudHost) -> Pcloud:
    """The pcloud that a host is in."""
    return pclouds.by_rows(tx, [member.pcloud_id])[member.pcloud_id]


def show(tx: Tx, pcloud: Pcloud, member: PcloudHost, now: datetime) -> None:
    """Have decisions see how a host of a pcloud is now."""
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
    """Put a free host into a pcloud, which pays for it from now on."""
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
    made = pcloud_hosts.by_host(tx, host.id)
    assert made is not None, "it was just written"
    begin_billing(tx, pcloud, [made], context.now)
    show(tx, pcloud, made, context.now)
    return made


def begin_billing(tx: Tx, pcloud: Pcloud, found: Sequence[PcloudHost], now: datetime) -> None:
    """Write that a pcloud's owner pays for some of its hosts from now on."""
    pcloud_hosts.begin_billing(
        tx,
        [
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
        ],
    )


def leave(tx: Tx, pcloud: Pcloud, member: PcloudHost, now: datetime) -> None:
    """Take an empty host out of a pcloud: it is free again, with its own ratios."""
    host = host_of(tx, member.host_id)
    pcloud_hosts.end_billing(tx, [host.id], now)
    pcloud_hosts.remove(tx, host.id)
    owned_aggregates.remove_host(tx, pcloud.aggregate_id, pcloud.uuid, host, now)
    dedications.set_ratios(tx, host, {}, now)
    dedications.dedicate(tx, host, Dedication.POOLED, None, now)


def tell(
    tx: Tx,
    pcloud: Pcloud,
    action: str,
    context: PcloudContext,
    *,
    host_name: str | None = None,
    detail: str | None = None,
) -> None:
    """Write what is done to a pcloud, for its owner to read."""
    pcloud_actions.add(
        tx,
        pcloud.uuid,
        pcloud.project_id,
        action,
        context.asker,
        context.now,
        host_name=host_name,
        detail=detail,
    )
