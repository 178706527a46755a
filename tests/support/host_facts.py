"""Sets facts about the hosts of a table, and calls one filter or weigher."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Any

import numpy as np

from innkeeper.domain.placing import Network, RequestSpec
from innkeeper.snapshot.columns import HostTable
from tests.support.tables import names_where

WHOLE = slice(None)
HALF = 2**64


def passed_by(chooser: Any, table: HostTable, spec: RequestSpec) -> set[str]:
    """Return the hosts that pass a filter; check that a call for some rows agrees."""
    mask = chooser.mask(table, spec, WHOLE)
    some = np.arange(table.host_count)[::-2]
    for rows in (some, *(slice(i, i + 1) for i in range(table.host_count))):
        part = chooser.mask(table, spec, rows)
        if mask is None:
            assert part is None
        else:
            assert part.dtype == np.bool_
            assert part.tolist() == mask[rows].tolist()
    return set(table.names) if mask is None else names_where(table, mask)


def weights_by(weigher: Any, table: HostTable, spec: RequestSpec) -> dict[str, float]:
    """Return the weights from a weigher; check that a call for some rows agrees."""
    column = weigher.column(table, spec, WHOLE)
    assert np.isfinite(column).all()
    some = np.arange(table.host_count)[::-2]
    for rows in (some, *(slice(i, i + 1) for i in range(table.host_count))):
        assert weigher.column(table, spec, rows).tolist() == column[rows].tolist()
    return dict(zip(table.names, column.tolist(), strict=True))


def in_aggregates(table: HostTable, members: Mapping[str, tuple[int, ...]]) -> HostTable:
    """Put hosts into aggregates by their ids; returns the table."""
    for name, ids in members.items():
        index = table.index_by_name[name]
        table.aggregate_codes[index] = table.aggregates.code(frozenset(ids))
        table.note(index)
    return table


def say(table: HostTable, metadata: Mapping[int, Mapping[str, str]]) -> HostTable:
    """Set the metadata of aggregates; returns the table."""
    for aggregate_id, each in metadata.items():
        table.aggregates.set_metadata(aggregate_id, each)
    return table


def at_addresses(table: HostTable, addresses: Mapping[str, str]) -> HostTable:
    """Set the addresses of hosts; returns the table."""
    for name, text in addresses.items():
        address, index = ipaddress.ip_address(text), table.index_by_name[name]
        table.ip_versions[index] = address.version
        table.ip_high[index], table.ip_low[index] = divmod(int(address), HALF)
    return table


def near(text: str) -> Network:
    """Parse a range of addresses as in a hint."""
    network = ipaddress.ip_network(text, strict=False)
    return Network(network.version, int(network.network_address), network.prefixlen)


def with_servers(
    table: HostTable, servers: Mapping[str, Mapping[str, int]], busy: Mapping[str, int] = {}
) -> HostTable:
    """Put servers on hosts; returns the table. ``busy`` counts those with a task, by host."""
    table.knows_servers = True
    for name, counts in servers.items():
        index = table.index_by_name[name]
        for project_id, count in counts.items():
            table.add_server(index, project_id, count)
        table.busy_counts[index] = 0
    for name, count in busy.items():
        table.busy_counts[table.index_by_name[name]] = count
    return table
