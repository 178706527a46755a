"""The host table: one row per host, one array per fact.

One thread owns a table and edits its rows in place between decisions; no other thread reads it.
With several thousand hosts, a copy for every claim would take longer than the decision.

Always true, and compared with the store by ``snapshot.audit`` in the tests: every column has
``host_count`` rows, and row *i* is the same host in all of them; the rows show every change up
to ``change_id``.

May be false: that a host still has what its row says. Only a claim proves that.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from innkeeper.domain.ids import AgentId, Generation, HostIndex, ProviderId
from innkeeper.snapshot.aggregates import AggregateSets, Verdict
from innkeeper.snapshot.amounts import ROWS_MIN, Amount, AmountTable, Indexes, Mask, Rows
from innkeeper.snapshot.capabilities import CapabilityColumn, CapabilityColumns
from innkeeper.snapshot.dedications import Dedications
from innkeeper.snapshot.kinds import Kinds
from innkeeper.snapshot.pools import Codes, PoolTable
from innkeeper.snapshot.residents import Residents

NEVER_S = -np.inf
"""The time of the last heartbeat of an agent that has not sent any."""


class HostTable(AmountTable):
    """Columns of all hosts as of ``change_id``.

    Other providers have no row, and are never chosen. ``pools`` lend to hosts. Without pools,
    ``knows_memberships`` is False, and ``root_ids`` and ``membership_codes`` are not maintained.
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
        self._add_column("fact", "server_counts", np.int32)
        self._add_column("fact", "busy_counts", np.int32)
        self._add_column("fact", "facts_seen_s", np.float64)
        self._add_column("fact", "ip_versions", np.uint8)
        self._add_column("fact", "ip_high", np.uint64)
        self._add_column("fact", "ip_low", np.uint64)

    # Facts of every host: views, renewed when the number of hosts changes.
    is_open: Mask
    """Enabled, and not forced down."""
    zone_codes: Codes
    agent_codes: Codes
    root_ids: npt.NDArray[np.int64]
    """The root provider of the host's tree."""
    membership_codes: Codes
    """The set of Placement's aggregates of the host's tree, by codes of :class:`PoolTable`."""
    aggregate_codes: Codes
    """The set of Compute's aggregates of the host, by codes of ``aggregates``."""
    dedication_codes: Codes
    """The dedication of the host, by codes of ``dedications``."""
    is_dedication_open: Mask
    """Dedicated, and open for new servers of its pcloud or reservation."""
    server_counts: Codes
    busy_counts: Codes
    """Servers that are being built, resized, migrated or shelved."""
    facts_seen_s: npt.NDArray[np.float64]
    """The time of the last report of capabilities."""
    ip_versions: npt.NDArray[np.uint8]
    ip_high: npt.NDArray[np.uint64]
    ip_low: npt.NDArray[np.uint64]
    """The host's address in two halves. An IPv4 address is in the lower half."""

    # -- rows ------------------------------------------------------------------------------

    @property
    def host_count(self) -> int:
        """The number of hosts."""
        return self.row_count

    def ensure_rows(self, hosts: Iterable[tuple[ProviderId, str]]) -> None:
        """Add rows for the given hosts that have none yet, and set all names."""
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
        # The last row takes the place of this one.
        self.dedications.forget_rows()
        self.residents.replace(provider_id, {})
        super().remove_row(provider_id)
        if index < self.row_count:
            self.index_by_name[self.names[index]] = index
        self._capability_columns.forget()
        self._has_hosts = None
        self._silent_since_s = self._stale_since_s = None

    def _unname(self, name: str, index: HostIndex) -> None:
        # If two hosts swap names, the name may already belong to the other one.
        if self.index_by_name.get(name) == index:
            del self.index_by_name[name]

    # -- facts -----------------------------------------------------------------------------

    def zone_code(self, zone: str) -> int:
        """Return the code of an availability zone; a new zone gets the next code."""
        return self.zones.setdefault(zone, len(self.zones))

    def has_zone(self, zone: str) -> bool:
        """Return whether any host is in this zone; a zone without hosts keeps its code."""
        code = self.zones.get(zone)
        return code is not None and bool((self.zone_codes == code).any())

    def zones_there(self) -> list[str]:
        """Return the names of the zones with hosts."""
        return sorted(zone for zone in self.zones if self.has_zone(zone))

    def agent_code(self, agent_id: AgentId) -> int:
        """Return the code of an agent; a new agent gets the next code."""
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
        # The code first, since a new agent extends the column.
        code = self.agent_code(agent_id)
        self.agent_seen_s[code] = moment_s
        self._silent_since_s = None

    def silent_since_s(self) -> float:
        """Return the earliest of the last heartbeats of all agents with hosts."""
        if self._silent_since_s is None:
            heard = self.agent_seen_s[self.agent_has_hosts()]
            self._silent_since_s = float(heard.min(initial=np.inf))
        return self._silent_since_s

    def set_facts_seen(self, index: HostIndex, moment_s: float) -> None:
        """Set the time of the last report of a host's capabilities."""
        self.facts_seen_s[index] = moment_s
        self._stale_since_s = None

    def stale_since_s(self) -> float:
        """Return the earliest of the last capability reports of all hosts."""
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
        """Return a capability's column, valid until the next change. Nested names have dots."""
        return self._capability_columns.column(name)

    def kinds(self) -> Kinds:
        """Return the kinds of hosts, valid until the next change."""
        if self._kinds is None:
            self._kinds = Kinds(self)
        else:
            self._kinds.refresh(self)
        return self._kinds

    def agent_has_hosts(self) -> Mask:
        """Return the agents with hosts; whether other agents are down does not matter."""
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
        """Return the rows of the hosts with these names; unknown names are ignored."""
        found = [self.index_by_name[name] for name in names if name in self.index_by_name]
        return np.array(found, dtype=np.intp)

    # -- dedicated hosts ---------------------------------------------------------------------

    def dedicate(self, index: HostIndex, code: int, name: str, *, is_open: bool) -> None:
        """Set the dedication of a host, and its name in its pcloud."""
        if self.dedication_codes[index] != code or self.is_dedication_open[index] != is_open:
            self.dedications.forget_rows()
        self.dedication_codes[index] = code
        self.is_dedication_open[index] = is_open
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
        """Evaluate a condition on the metadata of all aggregates of each host."""
        return self.aggregates.judge(verdict, self.aggregate_codes[rows])

    def servers_of(self, project_id: str) -> tuple[Indexes, npt.NDArray[np.float64]]:
        """Return the rows with servers of a project, and the number of servers on each."""
        mine = self.residents.of_project(project_id)
        rows = np.array([self.index_of[each] for each in mine], dtype=np.intp)
        return rows, np.array(list(mine.values()), dtype=np.float64)

    def add_server(self, index: HostIndex, project_id: str, more: int) -> None:
        """Add servers that are about to be built; a negative ``more`` subtracts them."""
        if self.knows_servers:
            self.server_counts[index] += more
            self.busy_counts[index] += more
            provider_id = ProviderId(int(self.provider_ids[index]))
            self.residents.add(provider_id, project_id, more)
            self.note(index)

    # -- what hosts borrow -----------------------------------------------------------------

    def borrows(self, name: str, rows: Rows) -> Mask:
        """Return True where hosts have no capacity of a class, and so borrow it from pools."""
        # The capacity is free plus used, whatever is still allocated.
        lacks: Mask = self.free[name][rows] + self.used[name][rows] <= 0.0
        return lacks

    def lent(self, name: str, amount: int, rows: Rows) -> Mask | None:
        """Return True where a pool can lend ``amount`` to a host; None if no pool has the class."""
        able = self.pools.able(name, amount)
        if able is None:
            return None
        given: Mask = able[self.membership_codes[rows]] & self.borrows(name, rows)
        return given

    def served_by(self, pools: Collection[int]) -> Mask:
        """Return True where one of these pools serves a host."""
        served: Mask = self.pools.served_by(pools)[self.membership_codes]
        return served

    def left(self, name: str, rows: Rows) -> Amount:
        """Return what hosts have left of a class; for borrowers, the most that one pool has."""
        most = self.pools.most(name) if self.pools.row_count else None
        if most is None:
            return self.free[name][rows]
        left: Amount = np.where(
            self.borrows(name, rows), most[self.membership_codes[rows]], self.free[name][rows]
        )
        return left

    def greatest(self, name: str) -> float:
        """See :meth:`AmountTable.greatest`; includes pools."""
        mine = super().greatest(name)
        return max(mine, self.pools.greatest(name)) if self.pools.row_count else mine

    # -- claims before their commit ---------------------------------------------------------

    def generation_of(self, provider_id: ProviderId) -> Generation | None:
        """Return the generation of a host or pool in this table; None without a row."""
        for table in (self, self.pools):
            index = table.index_of.get(provider_id)
            if index is not None:
                return table.generation(index)
        return None

    def shows(self, provider_id: ProviderId, generation: int) -> bool:
        """See :meth:`AmountTable.shows`; includes pools."""
        is_shown = super().shows(provider_id, generation)
        return is_shown or self.pools.shows(provider_id, generation)

    def follow_claims(
        self, provider_id: ProviderId, seen: int, generation: Generation, taken: Mapping[str, int]
    ) -> bool:
        """See :meth:`AmountTable.follow_claims`; includes pools."""
        is_done = super().follow_claims(provider_id, seen, generation, taken)
        return is_done or self.pools.follow_claims(provider_id, seen, generation, taken)

    def expect_claim(self, providers: Iterable[ProviderId]) -> None:
        """Advance the generations of these providers, ahead of the commit of a claim."""
        for provider_id in providers:
            self._move(provider_id, 1)

    def expect_no_claim(self, providers: Iterable[ProviderId]) -> None:
        """Undo :meth:`expect_claim` after a claim was rejected. Undo the latest claim first."""
        for provider_id in providers:
            self._move(provider_id, -1)

    def _move(self, provider_id: ProviderId, step: int) -> None:
        index = self.index_of.get(provider_id)
        if index is not None:
            self.generations[index] += step
        else:
            self.pools.generations[self.pools.index_of[provider_id]] += step


def renumber(coded: AggregateSets | Dedications | PoolTable, codes: Codes) -> None:
    """Remove unused codes once there are many; all codes of the column may change."""
    if coded.has_many_codes:
        live = np.flatnonzero(np.bincount(codes)).tolist()
        codes[:] = coded.keep_codes(live)[codes]
