"""The ratios of a pcloud come to its hosts in steps: all who write wait for each transaction.

Always true: the hosts of a pcloud that is not settling have its ratios, and so have those of
one that is up to the row that it has come to; a host that joins it has them at once, and one
that leaves it none. What is wanted is written before the first step: whoever takes the next
one, after a crash as well, brings hosts over to what is wanted by then.
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
"""Hosts that are given other ratios in one transaction, for which all other writers wait."""
BEGINNING = 0
"""Every row is behind this one."""


def begin(
    tx: Tx, pcloud: Pcloud, context: PcloudContext, at_once: int = ROLLED_OUT_AT_ONCE
) -> None:
    """Take the first step to ratios that are written; from the beginning, wherever it was."""
    pclouds.roll_out(tx, pcloud.id, BEGINNING)
    go_on(tx, pcloud.uuid, context, at_once)


def go_on(tx: Tx, uuid: str, context: PcloudContext, at_once: int = ROLLED_OUT_AT_ONCE) -> int:
    """Have some more hosts of a pcloud give out what it says; tells how many are left."""
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
    """How many hosts of these pclouds may still have the ratios from before, by their rows.

    Pclouds of which all hosts have them are left out.
    """
    return pcloud_hosts.counts_behind(tx, [each.id for each in found if each.is_rolling_out])


def due(tx: Tx) -> list[str]:
    """The pclouds of which some hosts may still have the ratios from before."""
    return [each.uuid for each in pclouds.rolling_out(tx)]
