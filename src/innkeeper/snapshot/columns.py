"""Define the host table, with one row per host and one array per fact.

Only one thread at a time uses a table. It edits the rows in place between decisions, because with
several thousand hosts, a copy for every claim would take longer than the decision.

Always true: every column has ``host_count`` rows, and row *i* is the same host in all columns. The
rows show every change up to ``change_id``. The tests check this with ``snapshot.audit``.

The free amounts in a row may be outdated. Only a claim can prove that they are still free.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from innkeeper.domain.ids import AgentId, Generation, HostIndex, ProviderId
from innkeeper.snapshot.aggregates import AggregateSets, Verdict
from innkeeper.snapshot.amounts import ROWS_MIN, Amount, AmountTable, Indexes, Mask, Rows
from innkeeper.snapshot.calendar import Calendar
from innkeeper.snapshot.capabilities import CapabilityColumn, CapabilityColumns
from innkeeper.snapshot.codes import Codes
from innkeeper.snapshot.dedications import Dedications
from innkeeper.snapshot.kinds import Kinds
from innkeeper.snapshot.pools import PoolTable
from innkeeper.snapshot.residents import Residents

NEVER_S = -np.inf
"""The time of the last heartbeat for agents that have not sent any."""


class HostTable(AmountTable):
    """The columns of all hosts, as of the change ``change_id``.

    Providers that are not hosts have no row and are never chosen. ``calendar`` has the hosts of the
    freepool, and the holds of leases on them. ``pools`` has the pools that lend to hosts. Without
    pools, ``knows_memberships`` is False, and ``root_ids`` and ``membership_codes`` are not
    maintained.
    """

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = self._add_list(str)
        self.index_by_name: dict[str, HostIndex] = {}
        self.zones: dict[str, int] = {}
        self.agents: dict[AgentId, int] = {}
        self.agent_ids: list[AgentId] = []
        self._heard_s: npt.NDArray[np.float64] = np.zeros(0)
        self._silent_since_s: float | None = None
        self._stale_since_s: float | None = None
        self.agent_seen_s: npt.NDArray[np.float64] = self._heard_s
        self._has_hosts: Mask | None = None
        self._kinds: Kinds | None = None
        self._capabilities: list[Mapping[str, Any]] = self._add_list(dict)
        self._capability_columns = CapabilityColumns(self._capabilities)
        self.pools = PoolTable()
        self.aggregates = AggregateSets()
        self.residents = Residents()
        self.dedications = Dedications()
        self.calendar = Calendar()
        self._calendar_rows: tuple[int, npt.NDArray[np.int64], Indexes] | None = None
        self.pcloud_names: list[str] = self._add_list(str)
        self.knows_memberships = False
        self._add_column("fact", "is_open", np.bool_)
        self._add_column("fact", "zone_codes", np.int32)
        self._add_column("fact", "agent_codes", np.int32)
        self._add_column("fact", "root_ids", np.int64)
        self._add_column("fact", "membership_codes", np.int32)
        self._add_column("fact", "aggregate_codes", np.int32)
        self._add_column("fact", "dedication_codes", np.int32)
        self._add_column("fact", "is_dedication_open", np.bool_)
        self._add_column("fact", "needed_from_s", np.float64)
        self._add_column("fact", "server_counts", np.int32)
        self._add_column("fact", "busy_counts", np.int32)
        self._add_column("fact", "facts_seen_s", np.float64)
        self._add_column("fact", "ip_versions", np.uint8)
        self._add_column("fact", "ip_high", np.uint64)
        self._add_column("fact", "ip_low", np.uint64)

    # These arrays are views. They are renewed when the number of hosts changes.
    is_open: Mask
    """Whether the host is enabled, and not forced down."""
    zone_codes: Codes
    agent_codes: Codes
    root_ids: npt.NDArray[np.int64]
    """The id of the root provider of the host's tree."""
    membership_codes: Codes
    """The code (in ``pools``) of the set of Placement aggregates that the host's tree is in."""
    aggregate_codes: Codes
    """The code (in ``aggregates``) of the set of Compute aggregates that the host is in."""
    dedication_codes: Codes
    """The code (in ``dedications``) of the host's dedication."""
    is_dedication_open: Mask
    """Whether the host is dedicated, and open for new servers of its pcloud, lease or slots."""
    needed_from_s: npt.NDArray[np.float64]
    """For a host of the freepool, the Unix time from which a lease needs the host, or at which the
    host leaves the freepool. It is infinite if there is no such time, and 0 while a lease has
    the host or slots on it. For all other hosts it is 0."""
    server_counts: Codes
    busy_counts: Codes
    """The number of servers that are being built, resized, migrated or shelved."""
    facts_seen_s: npt.NDArray[np.float64]
    """The Unix time of the last report of capabilities, in seconds."""
    ip_versions: npt.NDArray[np.uint8]
    ip_high: npt.NDArray[np.uint64]
    ip_low: npt.NDArray[np.uint64]
    """The host's IP address in two halves of 64 bits. An IPv4 address is in the lower half."""

    # -- rows ------------------------------------------------------------------------------

    @property
    def host_count(self) -> int:
        """The number of hosts."""
        return self.row_count

    def ensure_rows(self, hosts: Iterable[tuple[ProviderId, str]]) -> None:
        """Add the missing rows of the given hosts, and set the names of all given hosts."""
        pairs = list(hosts)
        before = self.row_count
        self.add_rows(provider_id for provider_id, _ in pairs)
        if self.row_count != before:
            self._capability_columns.forget()
        for provider_id, name in pairs:
            index = self.index_of[provider_id]
            if self.names[index] != name:
                self._unname(self.names[index], index)
                self.names[index] = name
                self.index_by_name[name] = index

    def remove_row(self, provider_id: ProviderId) -> None:
        """Remove a host; see :meth:`AmountTable.remove_row`."""
        index = self.index_of.get(provider_id)
        if index is None:
            return
        self._unname(self.names[index], index)
        self.dedications.leave(provider_id)
        # The last row moves into the place of the removed row.
        self.dedications.forget_rows()
        self.residents.replace(provider_id, {})
        super().remove_row(provider_id)
        if index < self.row_count:
            self.index_by_name[self.names[index]] = index
        self._capability_columns.forget()
        self._has_hosts = None
        self._silent_since_s = self._stale_since_s = None

    def calendar_rows(self) -> Indexes:
        """Return the row of each host in the calendar, or -1 for hosts without a row."""
        ids, known = self.calendar.provider_ids, self._calendar_rows
        # The calendar replaces its array of ids whenever it gets or loses a host.
        if known is None or known[0] != self.epoch or known[1] is not ids:
            rows: Indexes = np.full(ids.shape, -1, dtype=np.intp)
            order = np.argsort(self.provider_ids)
            at = np.searchsorted(self.provider_ids, ids, sorter=order)
            is_within = at < self.row_count
            found = order[at[is_within]]
            is_same = self.provider_ids[found] == ids[is_within]
            rows[np.flatnonzero(is_within)[is_same]] = found[is_same]
            known = self._calendar_rows = (self.epoch, ids, rows)
        return known[2]

    def _unname(self, name: str, index: HostIndex) -> None:
        # If two hosts swap names, the name may already belong to the other host.
        if self.index_by_name.get(name) == index:
            del self.index_by_name[name]

    # -- facts -----------------------------------------------------------------------------

    def zone_code(self, zone: str) -> int:
        """Return the code of an availability zone. A new zone gets the next code."""
        return self.zones.setdefault(zone, len(self.zones))

    def has_zone(self, zone: str) -> bool:
        """Return whether any host is in this zone. A zone without hosts keeps its code."""
        code = self.zones.get(zone)
        return code is not None and bool((self.zone_codes == code).any())

    def zones_there(self) -> list[str]:
        """Return the names of the zones with hosts."""
        return sorted(zone for zone in self.zones if self.has_zone(zone))

    def agent_code(self, agent_id: AgentId) -> int:
        """Return the code of an agent. A new agent gets the next code."""
        code = self.agents.get(agent_id)
        if code is None:
            code = self.agents[agent_id] = len(self.agents)
            self._has_hosts = None
            self.agent_ids.append(agent_id)
            if code == self._heard_s.shape[0]:
                wider = np.full(max(ROWS_MIN, 2 * code), NEVER_S)
                wider[:code] = self._heard_s
                self._heard_s = wider
            self.agent_seen_s = self._heard_s[: code + 1]
        return code

    def set_heartbeat(self, agent_id: AgentId, moment_s: float) -> None:
        """Set the time of an agent's last heartbeat."""
        code = self.agent_code(agent_id)
        if self.agent_seen_s[code] != moment_s:
            self.agent_seen_s[code] = moment_s
            self._silent_since_s = None

    def silent_since_s(self) -> float:
        """Return the oldest of the agents' last heartbeats. Agents without hosts do not count."""
        if self._silent_since_s is None:
            heard = self.agent_seen_s[self.agent_has_hosts()]
            self._silent_since_s = float(heard.min(initial=np.inf))
        return self._silent_since_s

    def set_facts_seen(self, index: HostIndex, moment_s: float) -> None:
        """Set the time of the last report of a host's capabilities."""
        if self.facts_seen_s[index] != moment_s:
            self.facts_seen_s[index] = moment_s
            self._stale_since_s = None

    def stale_since_s(self) -> float:
        """Return the oldest of the times at which the hosts' capabilities were last reported."""
        if self._stale_since_s is None:
            self._stale_since_s = float(self.facts_seen_s.min(initial=np.inf))
        return self._stale_since_s

    def set_capabilities(self, index: HostIndex, facts: Mapping[str, Any]) -> None:
        """Replace the capabilities of a host."""
        self._capability_columns.replace(index, facts)

    def capabilities_of(self, index: HostIndex) -> Mapping[str, Any]:
        """Return all capabilities of one host."""
        return self._capabilities[index]

    def all_capabilities(self) -> list[Mapping[str, Any]]:
        """Return the capabilities of all hosts, by row."""
        return list(self._capabilities)

    def capability(self, name: str) -> CapabilityColumn:
        """Return a capability's column, which is valid until the table changes."""
        return self._capability_columns.column(name)

    def kinds(self) -> Kinds:
        """Return the kinds of hosts. The result is valid until the next change of the table."""
        if self._kinds is None:
            self._kinds = Kinds(self)
        else:
            self._kinds.refresh(self)
        return self._kinds

    def agent_has_hosts(self) -> Mask:
        """Return for each agent, by code, whether it has hosts."""
        if self._has_hosts is None:
            counts = np.bincount(self.agent_codes, minlength=len(self.agent_ids))
            self._has_hosts = counts > 0
        return self._has_hosts

    def set_agent(self, index: HostIndex, agent_id: AgentId) -> None:
        """Set the agent of a host."""
        self.agent_codes[index] = self.agent_code(agent_id)
        self._has_hosts = None
        self._silent_since_s = None

    def agent_of(self, index: HostIndex) -> AgentId:
        """Return the agent of a host."""
        return self.agent_ids[int(self.agent_codes[index])]

    def rows_named(self, names: Iterable[str]) -> Indexes:
        """Return the rows of the hosts with these names. Unknown names are ignored."""
        found = [self.index_by_name[name] for name in names if name in self.index_by_name]
        return np.array(found, dtype=np.intp)

    # -- dedicated hosts ---------------------------------------------------------------------

    def dedicate(self, index: HostIndex, code: int, name: str, *, is_open: bool) -> None:
        """Set the dedication of a host, and its name in its pcloud."""
        if self.dedication_codes[index] != code or self.is_dedication_open[index] != is_open:
            self.dedications.forget_rows()
        self.dedication_codes[index] = code
        self.is_dedication_open[index] = is_open
        self.needed_from_s[index] = 0.0
        self.pcloud_names[index] = name
        self.dedications.enter(ProviderId(int(self.provider_ids[index])), code, name)

    def rows_called(self, codes: Iterable[int], name: str) -> Indexes:
        """Return the rows of the hosts with this name in the pclouds with these codes."""
        rows = [self.index_of[each] for each in self.dedications.called(codes, name)]
        return np.array(rows, dtype=np.intp)

    # -- aggregates and servers ------------------------------------------------------------

    @property
    def has_aggregates(self) -> bool:
        """Whether any host was ever in an aggregate."""
        return self.aggregates.are_there

    def by_aggregates(self, verdict: Verdict, rows: Rows) -> Mask:
        """Return the result of ``verdict`` for the metadata of each host's aggregates."""
        return self.aggregates.judge(verdict, self.aggregate_codes[rows])

    def servers_of(self, project_id: str) -> tuple[Indexes, npt.NDArray[np.float64]]:
        """Return the rows of hosts with servers of a project, and the numbers of these servers."""
        mine = self.residents.of_project(project_id)
        rows = np.array([self.index_of[each] for each in mine], dtype=np.intp)
        return rows, np.array(list(mine.values()), dtype=np.float64)

    def add_server(self, index: HostIndex, project_id: str, more: int) -> None:
        """Count ``more`` new servers, which are busy. A negative number subtracts servers."""
        if self.knows_servers:
            self.server_counts[index] += more
            self.busy_counts[index] += more
            provider_id = ProviderId(int(self.provider_ids[index]))
            self.residents.add(provider_id, project_id, more)
            self.note(index)

    # -- what hosts borrow -----------------------------------------------------------------

    def borrows(self, name: str, rows: Rows) -> Mask:
        """Return for each host whether it must borrow a class because it has no capacity of it."""
        # Free plus used is the capacity, no matter how much is allocated.
        lacks: Mask = self.free[name][rows] + self.used[name][rows] <= 0.0
        return lacks

    def lent(self, name: str, amount: int, rows: Rows) -> Mask | None:
        """Return per row whether a pool can lend ``amount``, or None if no pool lends the class."""
        able = self.pools.able(name, amount)
        if able is None:
            return None
        given: Mask = able[self.membership_codes[rows]] & self.borrows(name, rows)
        return given

    def served_by(self, pools: Collection[int]) -> Mask:
        """Return for each host whether at least one of these pools serves it."""
        served: Mask = self.pools.served_by(pools)[self.membership_codes]
        return served

    def left(self, name: str, rows: Rows) -> Amount:
        """Return the free amount of a class on each host.

        For a host that borrows the class, this is the largest free amount of one pool.
        """
        most = self.pools.most(name) if self.pools.row_count else None
        if most is None:
            return self.free[name][rows]
        left: Amount = np.where(
            self.borrows(name, rows), most[self.membership_codes[rows]], self.free[name][rows]
        )
        return left

    def greatest(self, name: str) -> float:
        """Return the largest capacity of a class on one host or pool, or 1 if all are 0."""
        mine = super().greatest(name)
        return max(mine, self.pools.greatest(name)) if self.pools.row_count else mine

    # -- claims before their commit ---------------------------------------------------------

    def generation_of(self, provider_id: ProviderId) -> Generation | None:
        """Return the generation of a host or pool in this table, or None if it has no row."""
        for table in (self, self.pools):
            index = table.index_of.get(provider_id)
            if index is not None:
                return table.generation(index)
        return None

    def shows(self, provider_id: ProviderId, generation: int) -> bool:
        """Return whether a host's or pool's row shows this generation or a later one."""
        return super().shows(provider_id, generation) or self.pools.shows(provider_id, generation)

    def leaves_out(self, provider_id: ProviderId) -> bool:
        """Return whether a provider is neither a host nor a pool that lends to hosts."""
        return provider_id not in self.index_of and provider_id not in self.pools.index_of

    def follow_claims(
        self, provider_id: ProviderId, seen: int, generation: Generation, taken: Mapping[str, int]
    ) -> bool:
        """Apply claims to a host or pool; see :meth:`AmountTable.follow_claims`."""
        is_done = super().follow_claims(provider_id, seen, generation, taken)
        return is_done or self.pools.follow_claims(provider_id, seen, generation, taken)

    def expect_claim(self, providers: Iterable[ProviderId]) -> None:
        """Advance the generations of these providers before the commit of a claim."""
        for provider_id in providers:
            self._move(provider_id, 1)

    def expect_no_claim(self, providers: Iterable[ProviderId]) -> None:
        """Undo :meth:`expect_claim` for a rejected claim. Undo the latest expected claim first."""
        for provider_id in providers:
            self._move(provider_id, -1)

    def _move(self, provider_id: ProviderId, step: int) -> None:
        index = self.index_of.get(provider_id)
        if index is not None:
            self.generations[index] += step
        else:
            self.pools.generations[self.pools.index_of[provider_id]] += step


def renumber(coded: AggregateSets | Dedications | PoolTable, codes: Codes) -> None:
    """Remove unused codes if there are many. The codes in the column ``codes`` are updated."""
    if coded.has_many_codes:
        live = np.flatnonzero(np.bincount(codes)).tolist()
        codes[:] = coded.keep_codes(live)[codes]
