"""Define the table of all providers, such as hosts, their child providers and pools.

One thread owns a table and updates it before each search. No other thread reads the table.

Always true between updates: the forest matches the rows, and ``trait_names`` matches the columns of
traits.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from innkeeper.domain.ids import HostIndex, ProviderId, ProviderUuid
from innkeeper.domain.placement import SHARES
from innkeeper.snapshot.amounts import Amount, AmountTable, Mask
from innkeeper.snapshot.forests import Forest, forest_of

NO_PROVIDER = ProviderId(0)
"""The parent id of root providers. The ids of rows begin at 1."""

TRAIT_SETS_SPARE = 64
"""The cache of trait sets is cleared if it has more sets than this number plus twice the number of
rows."""


class ProviderTable(AmountTable):
    """The columns of all providers, as of the change ``change_id``.

    Unlike ``free``, ``capacities`` are not clipped to the range in which doubles are exact.
    """

    def __init__(self) -> None:
        super().__init__()
        self.capacities: dict[str, Amount] = {}
        self._keyed["capacity"] = self.capacities
        self._amounts.append("capacity")
        self.uuids: list[ProviderUuid] = self._add_list(str)
        self.row_of: dict[ProviderUuid, HostIndex] = {}
        self.trait_names: list[tuple[str, ...]] = self._add_list(tuple)
        self.aggregates: list[frozenset[str]] = self._add_list(frozenset)
        self._known_traits: dict[frozenset[str], tuple[str, ...]] = {}
        self._forest: Forest | None = None
        self._add_column("fact", "parent_ids", np.int64)
        self._add_column("fact", "root_ids", np.int64)

    parent_ids: npt.NDArray[np.int64]
    root_ids: npt.NDArray[np.int64]

    def add(self, found: Iterable[tuple[ProviderId, ProviderUuid]]) -> None:
        """Add rows for the given providers that have no row yet."""
        pairs = list(found)
        before = self.row_count
        self.add_rows(provider_id for provider_id, _ in pairs)
        if self.row_count == before:
            return
        self._forest = None
        for provider_id, uuid in pairs:
            index = self.index_of[provider_id]
            self.uuids[index] = uuid
            self.row_of[uuid] = index

    def remove_row(self, provider_id: ProviderId) -> None:
        """Remove a provider's row; see :meth:`AmountTable.remove_row`."""
        index = self.index_of.get(provider_id)
        if index is None:
            return
        del self.row_of[self.uuids[index]]
        super().remove_row(provider_id)
        if index < self.row_count:
            self.row_of[self.uuids[index]] = index
        self._forest = None

    def set_family(self, index: HostIndex, parent: ProviderId, root: ProviderId) -> None:
        """Set the parent and root of a provider. The parent of a root is ``NO_PROVIDER``."""
        if self.parent_ids[index] != parent or self.root_ids[index] != root:
            self.parent_ids[index] = parent
            self.root_ids[index] = root
            self._forest = None

    def set_aggregates(self, index: HostIndex, names: frozenset[str]) -> None:
        """Set the aggregates of a provider."""
        if self.aggregates[index] != names:
            self.aggregates[index] = names
            self._forest = None

    def set_traits(self, index: HostIndex, names: frozenset[str]) -> None:
        """Set the names of a provider's traits. The columns of traits are set separately."""
        if (SHARES in names) != (SHARES in self.trait_names[index]):
            self._forest = None
        # Many providers share a few sets of traits. Each set is stored once.
        known = self._known_traits.get(names)
        if known is None:
            if len(self._known_traits) > 2 * self.row_count + TRAIT_SETS_SPARE:
                # At this size, most cached sets are unused.
                self._known_traits.clear()
            known = self._known_traits[names] = tuple(sorted(names))
        self.trait_names[index] = known

    def set_capacity(self, name: str, at: Any, units: Amount) -> None:
        """Set the capacity of a class in these rows; see :meth:`AmountTable.set_capacity`."""
        super().set_capacity(name, at, units)
        self.capacities[name][at] = units

    def has_trait(self, names: Iterable[str]) -> Mask:
        """Return True for rows with at least one of these traits."""
        found = np.zeros(self.row_count, dtype=np.bool_)
        for name in names:
            column = self.traits.get(name)
            if column is not None:
                found |= column
        return found

    @property
    def forest(self) -> Forest:
        """The trees of the providers. They are computed at the first use after a change."""
        if self._forest is None:
            shares = self.has_trait([SHARES])
            self._forest = forest_of(
                self.provider_ids, self.parent_ids, self.root_ids, self.aggregates, shares
            )
        return self._forest
