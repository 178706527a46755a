"""Fill the host table from the store: all of it, or the rows of some providers.

Always true afterwards: each row that was asked for equals what the transaction sees, and a
provider that is no host (any more) has no row.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
import numpy.typing as npt

from innkeeper.domain.ids import ProviderId
from innkeeper.snapshot.columns import AMOUNT_MAX, HostTable
from innkeeper.store import changes
from innkeeper.store.queries import agents, capacity, hosts
from innkeeper.store.queries.hosts import HostRow
from innkeeper.store.queries.names import class_ids
from innkeeper.store.transactions import Tx

Rows = Sequence[Any]


def load_all(tx: Tx) -> HostTable:
    """Make the table of all hosts as ``tx`` sees them."""
    table = HostTable()
    # Before the rows: a change that comes in between is then read twice, never missed.
    table.change_id = changes.newest(tx)
    see_agents(tx, table, None)
    load(tx, table, None)
    return table


def load(tx: Tx, table: HostTable, ids: Collection[ProviderId] | None) -> None:
    """Read the rows of these providers anew, or of all."""
    found = hosts.rows_for_snapshot(tx, ids)
    wanted = {each.provider_id for each in found}
    for provider_id in list(table.index_of) if ids is None else ids:
        if provider_id not in wanted:
            table.remove_row(provider_id)
    if not found:
        return
    table.ensure_rows((each.provider_id, each.name) for each in found)
    _load_facts(table, found)
    # All hosts are asked for without a list: a list of 100,000 ids is no help to a database.
    some = None if ids is None else wanted
    at, generations = _columns(table, capacity.generation_rows(tx, some), 1)
    table.generations[at] = generations
    # Not an update: a class that was renamed must not be found by its old name.
    table.class_ids = class_ids(tx)
    names = {class_id: name for name, class_id in table.class_ids.items()}
    _load_inventories(table, capacity.inventory_rows(tx, some), names)
    _load_used(table, capacity.used_rows(tx, some), names)
    for provider_id, name in capacity.trait_rows(tx, some):
        index = table.index_of.get(provider_id)
        if index is not None:
            table.ensure_trait(name)[index] = True


def _load_facts(table: HostTable, found: Sequence[HostRow]) -> None:
    for each in found:
        index = table.index_of[each.provider_id]
        table.clear_row(index)
        table.is_open[index] = not (each.is_disabled or each.is_forced_down)
        table.zone_codes[index] = table.zone_code(each.availability_zone)
        table.set_agent(index, each.agent_id)
        table.set_capabilities(index, each.capabilities)


def _columns(table: HostTable, rows: Rows, *positions: int) -> tuple[npt.NDArray[Any], ...]:
    """The host's index for each row, and some of the rows' columns; no hosts' rows are out."""
    index_of = table.index_of
    mine = [row for row in rows if row[0] in index_of]
    at = np.fromiter((index_of[row[0]] for row in mine), dtype=np.intp, count=len(mine))
    return (at, *(np.array([row[position] for row in mine]) for position in positions))


def _load_inventories(table: HostTable, rows: Rows, names: dict[Any, str]) -> None:
    by_class: dict[int, list[Any]] = {}
    for row in rows:
        by_class.setdefault(row[1], []).append(row)
    for class_id, some in by_class.items():
        name = names[class_id]
        table.ensure_class(name)
        mine = [row for row in some if row[0] in table.index_of]
        if not mine:
            continue
        at, total, reserved, ratio = _columns(table, mine, 2, 3, 7)
        # Allocations are whole: rounding the product down changes no comparison with it.
        units = np.floor((total - reserved) * ratio)
        table.free[name][at] = np.clip(units, 0.0, AMOUNT_MAX)
        _, *units = _columns(table, mine, 4, 5, 6)
        table.set_units(name, at, units)


def _load_used(table: HostTable, rows: Rows, names: dict[Any, str]) -> None:
    by_class: dict[int, list[Any]] = {}
    for row in rows:
        by_class.setdefault(row[1], []).append(row)
    for class_id, some in by_class.items():
        name = names[class_id]
        table.ensure_class(name)
        at, used = _columns(table, some, 2)
        if at.shape[0]:
            amounts = used.astype(np.float64)
            table.used[name][at] = amounts
            table.free[name][at] -= amounts


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
