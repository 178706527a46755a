"""Capacity as columns: one row per host, one array per fact.

One thread owns a table and edits its rows in place, between decisions; nobody else reads it.
Copying the columns at every claim would take longer than deciding, from some thousand hosts on.

Always true, and compared with the store by ``snapshot.audit`` in the tests: every column has
``host_count`` rows, and row *i* is the same host in all of them; the rows show every change up
to ``change_id``.

May be false: that a host still has what its row says. Only a claim proves that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from innkeeper.domain.ids import AgentId, ChangeId, ClassId, Generation, HostIndex, ProviderId
from innkeeper.snapshot.capabilities import CapabilityColumn, column_of, lookup

Mask = npt.NDArray[np.bool_]
Amount = npt.NDArray[np.float64]
"""Whole numbers kept as doubles, which are exact up to 2**53: comparing and weighing need no
conversion then, which would take as long as the work itself."""
Codes = npt.NDArray[np.int32]

ROWS_MIN = 64
AMOUNT_MAX = float(2**53)


@dataclass(frozen=True, slots=True)
class UnitBounds:
    """The strictest unit rules of a class over all hosts that have some of it."""

    greatest_min: float
    least_max: float
    has_steps: bool


class HostTable:
    """Columns of all hosts as of ``change_id``.

    ``free`` and ``used`` are keyed by resource class name; a host without inventory of a
    class has nothing free of it, and zeros for its units.
    """

    def __init__(self) -> None:
        self.host_count = 0
        self.change_id = ChangeId(0)
        self.class_ids: dict[str, ClassId] = {}
        self.names: list[str] = []
        self.index_of: dict[ProviderId, HostIndex] = {}
        self.index_by_name: dict[str, HostIndex] = {}
        self.zones: dict[str, int] = {}
        self.agents: dict[AgentId, int] = {}
        self.agent_ids: list[AgentId] = []
        self._heard_s: npt.NDArray[np.float64] = np.zeros(0)
        self.agent_seen_s: npt.NDArray[np.float64] = self._heard_s
        self._unit_bounds: dict[str, UnitBounds] = {}
        self._has_hosts: Mask | None = None
        self._capabilities: list[Mapping[str, Any]] = []
        self._capability_columns: dict[str, CapabilityColumn] = {}
        self._rows = 0
        self._full: dict[tuple[str, str], npt.NDArray[Any]] = {}
        self.free: dict[str, Amount] = {}
        self.used: dict[str, Amount] = {}
        self.min_units: dict[str, Amount] = {}
        self.max_units: dict[str, Amount] = {}
        self.step_sizes: dict[str, Amount] = {}
        self.traits: dict[str, Mask] = {}
        self._add_column("fact", "provider_ids", np.int64)
        self._add_column("fact", "generations", np.int64)
        self._add_column("fact", "is_open", np.bool_)
        self._add_column("fact", "zone_codes", np.int32)
        self._add_column("fact", "agent_codes", np.int32)

    # Facts that every host has. Views, made anew when the number of hosts changes.
    provider_ids: npt.NDArray[np.int64]
    generations: npt.NDArray[np.int64]
    is_open: Mask
    """Enabled, and not declared down by an operator."""
    zone_codes: Codes
    agent_codes: Codes

    # -- rows ------------------------------------------------------------------------------

    def ensure_rows(self, hosts: Iterable[tuple[ProviderId, str]]) -> None:
        """Have a row for each of these hosts; new ones come at the end."""
        fresh: list[tuple[ProviderId, str]] = []
        for provider_id, name in hosts:
            index = self.index_of.get(provider_id)
            if index is None:
                fresh.append((provider_id, name))
            else:
                self._rename(index, name)
        if not fresh:
            return
        start = self.host_count
        while self._rows < start + len(fresh):
            self._grow()
        self.host_count = start + len(fresh)
        for offset, (provider_id, name) in enumerate(fresh):
            index = HostIndex(start + offset)
            self.index_of[provider_id] = index
            self.index_by_name[name] = index
        self.names += [name for _, name in fresh]
        self._capabilities += [{} for _ in fresh]
        self._capability_columns.clear()
        self._renew_views()
        self.provider_ids[start:] = [provider_id for provider_id, _ in fresh]

    def remove_row(self, provider_id: ProviderId) -> None:
        """Forget a host. The last row moves into its place, so no holes are ever scanned."""
        index = self.index_of.pop(provider_id, None)
        if index is None:
            return
        last = self.host_count - 1
        self._unname(self.names[index], index)
        if index != last:
            for column in self._full.values():
                column[index] = column[last]
            moved = ProviderId(int(self._full["fact", "provider_ids"][index]))
            self.names[index] = self.names[last]
            self._capabilities[index] = self._capabilities[last]
            self.index_of[moved] = index
            self.index_by_name[self.names[index]] = index
        self.names.pop()
        self._capabilities.pop()
        for column in self._full.values():
            column[last] = 0
        self.host_count = last
        self._capability_columns.clear()
        self._has_hosts = None
        self._unit_bounds.clear()
        self._renew_views()

    def clear_row(self, index: HostIndex) -> None:
        """Take away all amounts and traits of a host, before they are set anew."""
        for (kind, _), column in self._full.items():
            if kind != "fact":
                column[index] = 0

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
                wider = np.zeros(max(ROWS_MIN, 2 * code))
                wider[:code] = self._heard_s
                self._heard_s = wider
            self.agent_seen_s = self._heard_s[: code + 1]
        return code

    def ensure_class(self, name: str) -> None:
        """Have the columns of a resource class."""
        if name not in self.free:
            self._add_column("free", name, np.float64)
            self._add_column("used", name, np.float64)
            self._add_column("min_unit", name, np.float64)
            self._add_column("max_unit", name, np.float64)
            self._add_column("step_size", name, np.float64)

    def ensure_trait(self, name: str) -> Mask:
        """The column of a trait: True where the host has it."""
        if name not in self.traits:
            self._add_column("trait", name, np.bool_)
        return self.traits[name]

    def set_capabilities(self, index: HostIndex, facts: Mapping[str, Any]) -> None:
        """Replace what a host is capable of."""
        if self._capabilities[index] != facts:
            self._capabilities[index] = facts
            self._capability_columns.clear()

    def capabilities_of(self, index: HostIndex) -> Mapping[str, Any]:
        """All that one host is capable of."""
        return self._capabilities[index]

    def capability(self, name: str) -> CapabilityColumn:
        """The column of a capability. Nested facts have dots in their names.

        Built at its first use after a change: capabilities change seldom, and most are never
        asked for.
        """
        column = self._capability_columns.get(name)
        if column is None:
            column = column_of([lookup(each, name) for each in self._capabilities])
            self._capability_columns[name] = column
        return column

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

    def agent_of(self, index: HostIndex) -> AgentId:
        """Who speaks for a host."""
        return self.agent_ids[int(self.agent_codes[index])]

    # -- amounts ---------------------------------------------------------------------------

    def take(self, index: HostIndex, amounts: Mapping[str, int]) -> None:
        """Deplete a row. :meth:`give_back` with the same amounts is the exact inverse."""
        for name, amount in amounts.items():
            self.free[name][index] -= amount
            self.used[name][index] += amount

    def give_back(self, index: HostIndex, amounts: Mapping[str, int]) -> None:
        """Undo :meth:`take`."""
        for name, amount in amounts.items():
            self.free[name][index] += amount
            self.used[name][index] -= amount

    def generation(self, index: HostIndex) -> Generation:
        """The provider's generation as of this table."""
        return Generation(int(self.generations[index]))

    def expect_claim(self, providers: Iterable[ProviderId]) -> None:
        """Show these providers as they will be once a claim on them is committed."""
        for provider_id in providers:
            self.generations[self.index_of[provider_id]] += 1

    def expect_no_claim(self, providers: Iterable[ProviderId]) -> None:
        """Undo :meth:`expect_claim`, the latest first: that claim was refused."""
        for provider_id in providers:
            self.generations[self.index_of[provider_id]] -= 1

    def set_units(self, name: str, at: Any, units: Sequence[Amount | float]) -> None:
        """Set min_unit, max_unit and step_size of a class for some rows."""
        columns = (self.min_units[name], self.max_units[name], self.step_sizes[name])
        for column, values in zip(columns, units, strict=True):
            column[at] = values
        self._unit_bounds.pop(name, None)

    def gives(self, name: str, amount: int, rows: slice) -> Mask | None:
        """Where the unit rules allow one allocation of ``amount``; None if they do everywhere.

        The same rule as :func:`innkeeper.domain.amounts.gives`, for all hosts at once.
        """
        bounds = self._unit_bounds.get(name)
        if bounds is None:
            bounds = self._unit_bounds[name] = self._bounds(name)
        if bounds.greatest_min <= amount <= bounds.least_max and not bounds.has_steps:
            # The usual case: the strictest rule of all allows it, so nobody is asked.
            return None
        least = self.min_units[name][rows]
        given: Mask = (least <= amount) & (self.max_units[name][rows] >= amount)
        if bounds.has_steps:
            # Where nothing of the class is, the step is 0; division by it must not be tried.
            steps = np.maximum(self.step_sizes[name][rows], 1.0)
            given &= (least == amount) | (np.fmod(float(amount), steps) == 0.0)
        return given

    def _bounds(self, name: str) -> UnitBounds:
        is_there = self.max_units[name] > 0
        if not is_there.any():
            return UnitBounds(0.0, np.inf, has_steps=False)
        return UnitBounds(
            float(self.min_units[name][is_there].max()),
            float(self.max_units[name][is_there].min()),
            has_steps=bool((self.step_sizes[name][is_there] > 1).any()),
        )

    # -- storage ---------------------------------------------------------------------------

    def _add_column(self, kind: str, name: str, dtype: npt.DTypeLike) -> None:
        self._full[kind, name] = np.zeros(self._rows, dtype=dtype)
        self._view(kind, name)

    def _grow(self) -> None:
        # Doubling: adding n hosts one by one copies each row a constant number of times.
        self._rows = max(ROWS_MIN, self._rows * 2)
        for key, column in self._full.items():
            wider = np.zeros(self._rows, dtype=column.dtype)
            wider[: column.shape[0]] = column
            self._full[key] = wider

    def _renew_views(self) -> None:
        for kind, name in self._full:
            self._view(kind, name)

    def _view(self, kind: str, name: str) -> None:
        view = self._full[kind, name][: self.host_count]
        if kind == "fact":
            setattr(self, name, view)
        else:
            self._keyed[kind][name] = view

    @property
    def _keyed(self) -> dict[str, dict[str, Any]]:
        return {
            "free": self.free,
            "used": self.used,
            "min_unit": self.min_units,
            "max_unit": self.max_units,
            "step_size": self.step_sizes,
            "trait": self.traits,
        }
