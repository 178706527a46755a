"""Apply a pcloud's ratios to its hosts in steps, since other writers wait for each transaction.

Always true: during a rollout the hosts up to the row that it has reached have the pcloud's ratios,
and otherwise all hosts have them. A host that joins gets them at once, and one that leaves loses
them. The ratios are written before the first step, so each step, also after a crash, applies the
latest ones.
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
"""Hosts that change ratios in one transaction, for which all other writers wait."""
BEGINNING = 0
"""Before every row."""


def begin(
    tx: Tx, pcloud: Pcloud, context: PcloudContext, at_once: int = ROLLED_OUT_AT_ONCE
) -> None:
    """Take the first step to new ratios, and restart a rollout that is under way."""
    pclouds.roll_out(tx, pcloud.id, BEGINNING)
    go_on(tx, pcloud.uuid, context, at_once)


def go_on(tx: Tx, uuid: str, context: PcloudContext, at_once: int = ROLLED_OUT_AT_ONCE) -> int:
    """Apply the ratios to some more hosts of a pcloud; return how many remain."""
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
    """How many hosts still have former ratios, by the rows of pclouds that have such hosts."""
    return pcloud_hosts.counts_behind(tx, [each.id for each in found if each.is_rolling_out])


def due(tx: Tx) -> list[str]:
    """The pclouds with a rollout under way."""
    return [each.uuid for each in pclouds.rolling_out(tx)]
