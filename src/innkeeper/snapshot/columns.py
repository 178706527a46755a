"""Capacity as columns: one row per host, one array per fact.

One thread owns a table and edits its rows in place, between decisions; nobody else reads it.
Copying the columns at every claim would take longer than deciding, from some thousand hosts on.

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
"""When somebody was heard who was not heard yet."""


class HostTable(AmountTable):
    """Columns of all hosts as of ``change_id``.

    Whatever else has inventory has no row here, and so is never chosen; ``pools`` are those
    that lend to hosts.
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
        """Whether ``root_ids`` and ``membership_codes`` are kept; without pools they need not
        be."""
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

    # Facts that every host has. Views, made anew when the number of hosts changes.
    is_open: Mask
    """Enabled, and not declared down by an operator."""
    zone_codes: Codes
    agent_codes: Codes
    root_ids: npt.NDArray[np.int64]
    """The roots of the trees that the hosts' providers are in."""
    membership_codes: Codes
    """Which of Placement's aggregates the host's tree is in, as :class:`PoolTable` numbers
    their sets."""
    aggregate_codes: Codes
    """Which of the compute room's aggregates the host is in, as ``aggregates`` numbers them."""
    dedication_codes: Codes
    """For whom the host is, as ``dedications`` has it by codes."""
    is_dedication_open: Mask
    """Dedicated, and open to servers of those for whom it is."""
    server_counts: Codes
    busy_counts: Codes
    """Servers that are being built, moved or otherwise make the host work."""
    facts_seen_s: npt.NDArray[np.float64]
    """When its agent last said what the host is capable of."""
    ip_versions: npt.NDArray[np.uint8]
    ip_high: npt.NDArray[np.uint64]
    ip_low: npt.NDArray[np.uint64]
    """The host's address, in two halves; one of version 4 is in the lower half."""

    # -- rows ------------------------------------------------------------------------------

    @property
    def host_count(self) -> int:
        """How many hosts there are."""
        return self.row_count

    def ensure_rows(self, hosts: Iterable[tuple[ProviderId, str]]) -> None:
        """Have a row for each of these hosts; new ones come at the end."""
        wanted = list(hosts)
        had = self.row_count
        self.add_rows(provider_id for provider_id, _ in wanted)
        if self.row_count != had:
            self._capability_columns.forget()
        for provider_id, name in wanted:
            self._rename(self.index_of[provider_id], name)

    def remove_row(self, provider_id: ProviderId) -> None:
        """Forget a host; see :meth:`AmountTable.remove_row`."""
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

    def _rename(self, index: HostIndex, name: str) -> None:
        old = self.names[index]
        if old != name:
            self._unname(old, index)
            self.names[index] = name
            self.index_by_name[name] = index

    def _unname(self, name: str, index: HostIndex) -> None:
        # Two hosts that change names at once: the name may be the other's already.
        if self.index_by_name.get(name) == index:
            del self.index_by_name[name]

    # -- facts -----------------------------------------------------------------------------

    def zone_code(self, zone: str) -> int:
        """The code of an availability zone; a new one gets the next."""
        return self.zones.setdefault(zone, len(self.zones))

    def has_zone(self, zone: str) -> bool:
        """Whether any host is in this zone; codes outlive the hosts that they were made for."""
        code = self.zones.get(zone)
        return code is not None and bool((self.zone_codes == code).any())

    def zones_there(self) -> list[str]:
        """The zones that have hosts, by name."""
        return sorted(zone for zone in self.zones if self.has_zone(zone))

    def agent_code(self, agent_id: AgentId) -> int:
        """The code of an agent; a new one gets the next."""
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

    def hear(self, agent_id: AgentId, moment_s: float) -> None:
        """Note when an agent was last heard."""
        # First the code: a new agent's lengthens the column.
        code = self.agent_code(agent_id)
        self.agent_seen_s[code] = moment_s
        self._silent_since_s = None

    def silent_since_s(self) -> float:
        """When the one of all agents with hosts was heard whom nobody heard for longest."""
        if self._silent_since_s is None:
            heard = self.agent_seen_s[self.agent_has_hosts()]
            self._silent_since_s = float(heard.min(initial=np.inf))
        return self._silent_since_s

    def see_facts(self, index: HostIndex, moment_s: float) -> None:
        """Note when an agent last said what a host is capable of."""
        self.facts_seen_s[index] = moment_s
        self._stale_since_s = None

    def stale_since_s(self) -> float:
        """When the oldest of all that is known of hosts' capabilities was said."""
        if self._stale_since_s is None:
            self._stale_since_s = float(self.facts_seen_s.min(initial=np.inf))
        return self._stale_since_s

    def set_capabilities(self, index: HostIndex, facts: Mapping[str, Any]) -> None:
        """Replace what a host is capable of."""
        self._capability_columns.replace(index, facts)

    def capabilities_of(self, index: HostIndex) -> Mapping[str, Any]:
        """All that one host is capable of."""
        return self._capabilities[index]

    def all_capabilities(self) -> list[Mapping[str, Any]]:
        """What each host is capable of, row by row."""
        return list(self._capabilities)

    def capability(self, name: str) -> CapabilityColumn:
        """The column of a capability. Nested facts have dots in their names.

        It shows the table as it is now; ask again after a change.
        """
        return self._capability_columns.column(name)

    def kinds(self) -> Kinds:
        """The kinds of hosts as they are now. Nobody keeps them: ask again after a change."""
        if self._kinds is None:
            self._kinds = Kinds(self)
        else:
            self._kinds.refresh(self)
        return self._kinds

    def agent_has_hosts(self) -> Mask:
        """Which agents speak for a host now; the others' silence is of no interest."""
        if self._has_hosts is None:
            counts = np.bincount(self.agent_codes, minlength=len(self.agent_ids))
            self._has_hosts = counts > 0
        return self._has_hosts

    def set_agent(self, index: HostIndex, agent_id: AgentId) -> None:
        """Say who speaks for a host."""
        self.agent_codes[index] = self.agent_code(agent_id)
        self._has_hosts = None
        self._silent_since_s = None

    def agent_of(self, index: HostIndex) -> AgentId:
        """Who speaks for a host."""
        return self.agent_ids[int(self.agent_codes[index])]

    def rows_named(self, names: Iterable[str]) -> Indexes:
        """The rows of the hosts among these names that there are."""
        found = [self.index_by_name[name] for name in names if name in self.index_by_name]
        return np.array(found, dtype=np.intp)

    # -- dedicated hosts ---------------------------------------------------------------------

    def dedicate(self, index: HostIndex, code: int, name: str, *, is_open: bool) -> None:
        """Set for whom a host is, and its name in its pcloud."""
        if self.dedication_codes[index] != code or self.is_dedication_open[index] != is_open:
            self.dedications.forget_rows()
        self.dedication_codes[index] = code
        self.is_dedication_open[index] = is_open
        self.pcloud_names[index] = name
        self.dedications.enter(ProviderId(int(self.provider_ids[index])), code, name)

    def rows_called(self, codes: Iterable[int], name: str) -> Indexes:
        """The rows of the hosts that have this name in a pcloud of one of these codes."""
        rows = [self.index_of[each] for each in self.dedications.called(codes, name)]
        return np.array(rows, dtype=np.intp)

    def renumber_dedications(self) -> None:
        """Forget the codes that no host has any more, once they are the most."""
        if self.dedications.has_many_codes:
            numbers = self.dedications.keep_codes(np.unique(self.dedication_codes).tolist())
            self.dedication_codes[:] = numbers[self.dedication_codes]

    # -- aggregates and servers ------------------------------------------------------------

    @property
    def has_aggregates(self) -> bool:
        """Whether any host ever was in an aggregate."""
        return self.aggregates.are_there

    def by_aggregates(self, verdict: Verdict, rows: Rows) -> Mask:
        """Judge hosts by the metadata of all aggregates that each of them is in."""
        return self.aggregates.judge(verdict, self.aggregate_codes[rows])

    def servers_of(self, project_id: str) -> tuple[Indexes, npt.NDArray[np.float64]]:
        """The rows with servers of a project, and how many each has."""
        mine = self.residents.of_project(project_id)
        rows = np.array([self.index_of[each] for each in mine], dtype=np.intp)
        return rows, np.array(list(mine.values()), dtype=np.float64)

    def renumber_aggregates(self) -> None:
        """Forget sets of aggregates that no host is in any more, once they are the most.

        All codes may change.
        """
        if self.aggregates.has_many_codes:
            live = np.flatnonzero(np.bincount(self.aggregate_codes)).tolist()
            numbers = self.aggregates.keep_codes(live)
            self.aggregate_codes[:] = numbers[self.aggregate_codes]

    def add_server(self, index: HostIndex, project_id: str, more: int) -> None:
        """Count servers in that are about to be built, or out if ``more`` is negative."""
        if self.knows_servers:
            self.server_counts[index] += more
            self.busy_counts[index] += more
            provider_id = ProviderId(int(self.provider_ids[index]))
            self.residents.add(provider_id, project_id, more)
            self.note(index)

    # -- what hosts borrow -----------------------------------------------------------------

    def borrows(self, name: str, rows: Rows) -> Mask:
        """Where hosts have nothing of a class themselves, and so take it from pools."""
        # Free and used are the capacity; what is closed has none, whoever still holds of it.
        lacks: Mask = self.free[name][rows] + self.used[name][rows] <= 0.0
        return lacks

    def lent(self, name: str, amount: int, rows: Rows) -> Mask | None:
        """Where a pool gives ``amount`` to a host that borrows; None if no pool has any."""
        able = self.pools.able(name, amount)
        if able is None:
            return None
        given: Mask = able[self.membership_codes[rows]] & self.borrows(name, rows)
        return given

    def served_by(self, pools: Collection[int]) -> Mask:
        """Where hosts borrow of one of these pools, if of any."""
        served: Mask = self.pools.served_by(pools)[self.membership_codes]
        return served

    def left(self, name: str, rows: Rows) -> Amount:
        """What a host has left of a class; one that borrows, what one of its pools has."""
        most = self.pools.most(name) if self.pools.row_count else None
        if most is None:
            return self.free[name][rows]
        at_hand: Amount = np.where(
            self.borrows(name, rows), most[self.membership_codes[rows]], self.free[name][rows]
        )
        return at_hand

    def renumber_memberships(self) -> None:
        """Forget sets of aggregates that no host is in any more, once they are the most.

        All codes may change.
        """
        if self.pools.has_many_codes:
            live = np.bincount(self.membership_codes, minlength=self.pools.code_count)
            numbers = self.pools.keep_codes(np.flatnonzero(live).tolist())
            self.membership_codes[:] = numbers[self.membership_codes]

    def greatest(self, name: str) -> float:
        """See :meth:`AmountTable.greatest`; what pools have counts as well."""
        mine = super().greatest(name)
        return max(mine, self.pools.greatest(name)) if self.pools.row_count else mine

    # -- claims that are on their way ------------------------------------------------------

    def generation_of(self, provider_id: ProviderId) -> Generation | None:
        """The generation at which a host or a pool is shown; None for who has no row."""
        for table in (self, self.pools):
            index = table.index_of.get(provider_id)
            if index is not None:
                return table.generation(index)
        return None

    def shows(self, provider_id: ProviderId, generation: int) -> bool:
        """See :meth:`AmountTable.shows`; pools have rows of their own."""
        is_hosts = super().shows(provider_id, generation)
        return is_hosts or self.pools.shows(provider_id, generation)

    def follow_claims(
        self, provider_id: ProviderId, seen: int, generation: Generation, taken: Mapping[str, int]
    ) -> bool:
        """See :meth:`AmountTable.follow_claims`; pools have rows of their own."""
        of_its_own = super().follow_claims(provider_id, seen, generation, taken)
        return of_its_own or self.pools.follow_claims(provider_id, seen, generation, taken)

    def expect_claim(self, providers: Iterable[ProviderId]) -> None:
        """Show these providers as they will be once a claim on them is committed."""
        for provider_id in providers:
            self._move(provider_id, 1)

    def expect_no_claim(self, providers: Iterable[ProviderId]) -> None:
        """Undo :meth:`expect_claim`, the latest first: that claim was refused."""
        for provider_id in providers:
            self._move(provider_id, -1)

    def _move(self, provider_id: ProviderId, step: int) -> None:
        index = self.index_of.get(provider_id)
        if index is not None:
            self.generations[index] += step
        else:
            self.pools.generations[self.pools.index_of[provider_id]] += step
