"""Apply a pcloud's ratios to its hosts in steps, because each transaction blocks other writers.

Always true: a rollout changes hosts in the order of their rows, and stores the last row that it has
changed. The hosts up to this row have the new ratios. When no rollout is in progress, all hosts of
the pcloud have the pcloud's ratios. A host gets these ratios when it joins the pcloud, and loses
them when it leaves. The ratios are stored before the first step, and each step applies the stored
ratios. So a rollout continues after a crash.
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
"""The number of hosts whose ratios one transaction changes. More hosts would block other writers
for longer."""
BEGINNING = 0
"""The stored position of a rollout that has not changed any host."""


def begin(
    tx: Tx, pcloud: Pcloud, context: PcloudContext, at_once: int = ROLLED_OUT_AT_ONCE
) -> None:
    """Begin a rollout, and apply the new ratios to the first hosts.

    If a rollout is in progress, it begins again.
    """
    pclouds.roll_out(tx, pcloud.id, BEGINNING)
    go_on(tx, pcloud.uuid, context, at_once)


def go_on(tx: Tx, uuid: str, context: PcloudContext, at_once: int = ROLLED_OUT_AT_ONCE) -> int:
    """Apply the ratios to the next hosts of a pcloud. Return the number of remaining hosts."""
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
    """Return the number of hosts that still have the previous ratios, by the pcloud's row id.

    Pclouds without such hosts are omitted.
    """
    return pcloud_hosts.counts_behind(tx, [each.id for each in found if each.is_rolling_out])


def due(tx: Tx) -> list[str]:
    """Return the ids of the pclouds with a rollout in progress."""
    return [each.uuid for each in pclouds.rolling_out(tx)]
