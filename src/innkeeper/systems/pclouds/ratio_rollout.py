"""Apply a pcloud's ratios to its hosts in steps, because each transaction blocks other writers.

Always true: during a rollout, the hosts up to the row that it has reached have the pcloud's ratios.
Otherwise, all hosts have them. A host gets them when it joins, and loses them when it leaves. The
ratios are stored before the first step. Each step applies the stored ratios, even after a crash.
"""

from __future__ import annotations

from collections.abc import Sequence

from innkeeper.domain.pclouds import Pcloud
from innkeeper.store.queries.pclouds import hosts as pcloud_hosts
from innkeeper.store.queries.pclouds import pclouds
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.grouping import dedications
from innkeeper.systems.pclouds import members
from innkeeper.systems.pclouds.context import PcloudContext

ROLLED_OUT_AT_ONCE = 20
"""The number of hosts whose ratios one transaction changes, which blocks all other writers."""
BEGINNING = 0
"""A position before all rows."""


def begin(
    tx: Tx, pcloud: Pcloud, context: PcloudContext, at_once: int = ROLLED_OUT_AT_ONCE
) -> None:
    """Take the first step towards new ratios. A rollout in progress is restarted."""
    pclouds.roll_out(tx, pcloud.id, BEGINNING)
    go_on(tx, pcloud.uuid, context, at_once)


def go_on(tx: Tx, uuid: str, context: PcloudContext, at_once: int = ROLLED_OUT_AT_ONCE) -> int:
    """Apply the ratios to some more hosts of a pcloud. Return the number of remaining hosts."""
    pcloud = pclouds.by_uuid(tx, uuid)
    if pcloud is None or pcloud.rolled_out_to is None:
        return 0
    rows = pcloud_hosts.behind(tx, pcloud.id, pcloud.rolled_out_to, at_once)
    for host_id in rows:
        host = members.host_of(tx, host_id)
        dedications.set_ratios(tx, host, pcloud.ratios, context.now)
    left = pcloud_hosts.count_behind(tx, pcloud.id, rows[-1]) if rows else 0
    pclouds.roll_out(tx, pcloud.id, rows[-1] if left else None)
    return left


def left(tx: Tx, found: Sequence[Pcloud]) -> dict[int, int]:
    """Return the number of hosts that still have previous ratios, by pcloud row id.

    Pclouds that have none of these hosts are omitted.
    """
    return pcloud_hosts.counts_behind(tx, [each.id for each in found if each.is_rolling_out])


def due(tx: Tx) -> list[str]:
    """Return the ids of the pclouds with a rollout in progress."""
    return [each.uuid for each in pclouds.rolling_out(tx)]
