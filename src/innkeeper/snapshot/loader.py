"""Read the host table from the database, either completely or for some providers.

Always true afterwards: the requested rows of hosts and pools match the database as the transaction
sees it. All other requested providers have no row.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from ipaddress import ip_address

import numpy as np

from innkeeper.domain.hosts import OF_LEASES, TAKING_SERVERS, Dedication
from innkeeper.domain.ids import HostIndex, ProviderId
from innkeeper.snapshot import calendar_loader, pool_loader
from innkeeper.snapshot.amount_loader import load_amounts
from innkeeper.snapshot.columns import NEVER_S, HostTable, renumber
from innkeeper.snapshot.dedications import FREEPOOL, GENERAL, POOLED, of_reservation
from innkeeper.store import changes
from innkeeper.store.queries.compute import agents, aggregates, dedications, hosts, residents
from innkeeper.store.queries.compute.hosts import HostRow
from innkeeper.store.transactions import Tx


def load_all(tx: Tx, *, with_servers: bool = False) -> HostTable:
    """Read the table of all hosts. ``with_servers`` includes the numbers of servers."""
    table = HostTable()
    table.knows_servers = with_servers
    # ``tx`` must have a consistent snapshot, or be the only writer. Otherwise, a claim that is
    # committed between the two reads would be counted twice: once in the amounts, and once in the
    # feed.
    table.bookmark = changes.newest(tx)
    read_heartbeats(tx, table, None)
    load(tx, table, None)
    return table


def load(tx: Tx, table: HostTable, ids: Collection[ProviderId] | None) -> set[ProviderId]:
    """Read the rows of these providers, or of all providers if ``ids`` is None.

    Return the hosts whose rows were edited only because their pools changed.
    """
    found = hosts.rows_for_snapshot(tx, ids)
    host_ids = {each.provider_id for each in found}
    for provider_id in list(table.index_of) if ids is None else ids:
        if provider_id not in host_ids:
            table.remove_row(provider_id)
    if found:
        table.ensure_rows((each.provider_id, each.name) for each in found)
        _load_facts(table, found)
        _load_dedications(tx, table, found)
        # For all hosts, the query has no list of ids, because a list of 100,000 ids would be slow.
        some = None if ids is None else host_ids
        load_amounts(tx, table, some)
        _load_aggregates(tx, table, some)
        if table.knows_servers:
            _load_servers(tx, table, some)
    leased = [each.provider_id for each in found if each.dedication in OF_LEASES]
    _set_needs(table, leased, calendar_loader.load(tx, table.calendar, ids, leased))
    others = None if ids is None else [each for each in ids if each not in host_ids]
    return pool_loader.load(tx, table, host_ids, others)


def _load_facts(table: HostTable, found: Sequence[HostRow]) -> None:
    for each in found:
        index = table.index_of[each.provider_id]
        table.clear_row(index)
        table.is_open[index] = not (each.is_disabled or each.is_forced_down)
        table.zone_codes[index] = table.zone_code(each.availability_zone)
        table.set_agent(index, each.agent_id)
        table.set_capabilities(index, each.capabilities)
        table.set_facts_seen(
            index, NEVER_S if each.reported_at is None else seconds(each.reported_at)
        )
        _set_address(table, index, each.host_ip)


def _load_dedications(tx: Tx, table: HostTable, found: Sequence[HostRow]) -> None:
    mine = [each for each in found if each.dedicated_to is not None]
    leased = {str(e.dedicated_to) for e in mine if e.dedication in OF_LEASES}
    taken = {str(e.dedicated_to) for e in mine if e.dedication not in OF_LEASES}
    names = dedications.names(tx, [each.provider_id for each in mine])
    for facts in dedications.pcloud_facts(tx, sorted(taken)):
        table.dedications.set_facts(facts.uuid, facts.projects, facts.taken_in)
    for uuid, projects in dedications.reservation_projects(tx, sorted(leased)).items():
        table.dedications.set_facts(of_reservation(uuid), projects, [])
    for each in found:
        index = table.index_of[each.provider_id]
        if each.dedication is None and table.dedication_codes[index] == GENERAL:
            # Usually, the host was and still is a general host.
            continue
        code = GENERAL if each.dedication is None else POOLED
        if each.dedication == Dedication.FREEPOOL:
            code = table.dedications.code(FREEPOOL)
        if each.dedicated_to is not None:
            is_leased = each.dedication in OF_LEASES
            key = of_reservation(each.dedicated_to) if is_leased else each.dedicated_to
            code = table.dedications.code(key)
        table.dedicate(
            index, code, names.get(each.provider_id, ""), is_open=each.dedication in TAKING_SERVERS
        )
    renumber(table.dedications, table.dedication_codes)


def _set_needs(
    table: HostTable, leased: Collection[ProviderId], needs: Mapping[ProviderId, datetime]
) -> None:
    for provider_id in leased:
        needed_at = needs.get(provider_id)
        index = table.index_of[provider_id]
        table.needed_from_s[index] = np.inf if needed_at is None else seconds(needed_at)


def _set_address(table: HostTable, index: HostIndex, text: str) -> None:
    try:
        address = ip_address(text)
    except ValueError:
        # An agent may report a name instead of an address. No address range contains a name.
        table.ip_versions[index] = 0
        return
    number = int(address)
    table.ip_versions[index] = address.version
    table.ip_high[index], table.ip_low[index] = number >> 64, number & 2**64 - 1


def _load_aggregates(tx: Tx, table: HostTable, ids: Collection[ProviderId] | None) -> None:
    members = aggregates.for_snapshot(tx, ids)
    for number, metadata in aggregates.metadata_of(tx, {each for _, each in members}).items():
        table.aggregates.set_metadata(number, metadata)
    sets: dict[ProviderId, set[int]] = {}
    for provider_id, number in members:
        sets.setdefault(provider_id, set()).add(number)
    for provider_id in table.index_of if ids is None else ids:
        code = table.aggregates.code(frozenset(sets.get(provider_id, ())))
        table.aggregate_codes[table.index_of[provider_id]] = code
    renumber(table.aggregates, table.aggregate_codes)


def _load_servers(tx: Tx, table: HostTable, ids: Collection[ProviderId] | None) -> None:
    counts: dict[ProviderId, dict[str, int]] = {}
    busy: dict[ProviderId, int] = {}
    for provider_id, project_id, count, busy_count in residents.for_snapshot(tx, ids):
        counts.setdefault(provider_id, {})[project_id] = count
        busy[provider_id] = busy.get(provider_id, 0) + busy_count
    for provider_id in list(table.index_of) if ids is None else ids:
        mine = counts.get(provider_id, {})
        index = table.index_of[provider_id]
        table.residents.replace(provider_id, mine)
        table.server_counts[index] = sum(mine.values())
        table.busy_counts[index] = busy.get(provider_id, 0)


def read_facts_seen(tx: Tx, table: HostTable, since: datetime | None) -> datetime | None:
    """Read the times of the hosts' capability reports. Return the latest time.

    With ``since``, read only the reports since that time.
    """
    latest = since
    for provider_id, reported_at in hosts.reported_since(tx, since):
        index = table.index_of.get(provider_id)
        if index is not None:
            table.set_facts_seen(index, seconds(reported_at))
        if latest is None or reported_at > latest:
            latest = reported_at
    return latest


def read_heartbeats(
    tx: Tx, table: HostTable, since: datetime | None
) -> tuple[datetime | None, int]:
    """Read the heartbeats of all agents, or only those since a time.

    Returns the time of the latest heartbeat, and the number of agents.
    """
    rows = agents.last_seen(tx) if since is None else agents.seen_since(tx, since)
    latest = since
    for agent_id, seen_at in rows:
        table.set_heartbeat(agent_id, seconds(seen_at))
        if latest is None or seen_at > latest:
            latest = seen_at
    return latest, len(rows)


def seconds(moment: datetime) -> float:
    """Convert a naive datetime in UTC to seconds."""
    return moment.replace(tzinfo=UTC).timestamp()
