"""Fill the host table from the store: all of it, or the rows of some providers.

Always true afterwards: each row that was asked for equals what the transaction sees, and a
provider that is no host (any more) has no row. So do the pools among them, and nobody else.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import UTC, datetime

from innkeeper.domain.ids import ProviderId
from innkeeper.snapshot import pool_loader
from innkeeper.snapshot.amount_loader import load_amounts
from innkeeper.snapshot.columns import HostTable
from innkeeper.store import changes
from innkeeper.store.queries import agents, hosts
from innkeeper.store.queries.hosts import HostRow
from innkeeper.store.transactions import Tx


def load_all(tx: Tx) -> HostTable:
    """Make the table of all hosts as ``tx`` sees them."""
    table = HostTable()
    # Before the rows: a change that comes in between is then read twice, never missed.
    table.change_id = changes.newest(tx)
    see_agents(tx, table, None)
    load(tx, table, None)
    return table


def load(tx: Tx, table: HostTable, ids: Collection[ProviderId] | None) -> set[ProviderId]:
    """Read the rows of these providers anew, or of all.

    Gives the hosts that were edited beside them, since what is near them has changed.
    """
    found = hosts.rows_for_snapshot(tx, ids)
    wanted = {each.provider_id for each in found}
    for provider_id in list(table.index_of) if ids is None else ids:
        if provider_id not in wanted:
            table.remove_row(provider_id)
    if found:
        table.ensure_rows((each.provider_id, each.name) for each in found)
        _load_facts(table, found)
        # All hosts are asked for without a list: a list of 100,000 ids does not help databases.
        load_amounts(tx, table, None if ids is None else wanted)
    others = None if ids is None else [each for each in ids if each not in wanted]
    return pool_loader.load(tx, table, wanted, others)


def _load_facts(table: HostTable, found: Sequence[HostRow]) -> None:
    for each in found:
        index = table.index_of[each.provider_id]
        table.clear_row(index)
        table.is_open[index] = not (each.is_disabled or each.is_forced_down)
        table.zone_codes[index] = table.zone_code(each.availability_zone)
        table.set_agent(index, each.agent_id)
        table.set_capabilities(index, each.capabilities)


def see_agents(tx: Tx, table: HostTable, since: datetime | None) -> tuple[datetime | None, int]:
    """Take over when agents were heard, all or those since a moment.

    Gives the latest moment, and how many agents it was about.
    """
    rows = agents.last_seen(tx) if since is None else agents.seen_since(tx, since)
    latest = since
    for agent_id, seen_at in rows:
        # First the code: a new agent's lengthens the column.
        code = table.agent_code(agent_id)
        table.agent_seen_s[code] = seconds(seen_at)
        if latest is None or seen_at > latest:
            latest = seen_at
    return latest, len(rows)


def seconds(moment: datetime) -> float:
    """A naive moment in UTC as seconds."""
    return moment.replace(tzinfo=UTC).timestamp()
