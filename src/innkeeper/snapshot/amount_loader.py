"""Read inventories, usages, traits and generations into the columns of a table.

Always true afterwards: the requested rows match the database as the transaction sees it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from innkeeper.domain.ids import ProviderId
from innkeeper.snapshot.amounts import AmountTable
from innkeeper.store.queries.placement import capacity
from innkeeper.store.queries.placement.names import class_ids
from innkeeper.store.transactions import Tx

Rows = Sequence[Any]


def load_amounts(tx: Tx, table: AmountTable, ids: Collection[ProviderId] | None) -> Rows:
    """Fill the rows of these providers, or of all providers if ``ids`` is None.

    Return the traits that were read, as pairs of a provider id and a trait name. The caller must
    have cleared the rows. Providers without a row in the table are ignored.
    """
    at, generations = _columns(table, capacity.generation_rows(tx, ids), 1)
    table.generations[at] = generations
    # The mapping is replaced, so that a renamed class is no longer found by its old name.
    table.class_ids = class_ids(tx)
    names = {class_id: name for name, class_id in table.class_ids.items()}
    _load_inventories(table, capacity.inventory_rows(tx, ids), names)
    _load_used(table, capacity.used_rows(tx, ids), names)
    traits = capacity.trait_rows(tx, ids)
    for provider_id, name in traits:
        index = table.index_of.get(provider_id)
        if index is not None:
            table.ensure_trait(name)[index] = True
    return traits


def _columns(table: AmountTable, rows: Rows, *positions: int) -> tuple[npt.NDArray[Any], ...]:
    """Return where the rows belong in the table, and their values at each of ``positions``.

    Rows of providers that are not in the table are left out.
    """
    index_of = table.index_of
    mine = [row for row in rows if row[0] in index_of]
    at = np.fromiter((index_of[row[0]] for row in mine), dtype=np.intp, count=len(mine))
    return (at, *(np.array([row[position] for row in mine]) for position in positions))


def _by_class(table: AmountTable, rows: Rows, names: dict[Any, str]) -> Iterator[tuple[str, Rows]]:
    """Yield each class with its rows, after adding the columns of the class to the table.

    A class gets no columns if no provider in the table has it. There may be thousands of such
    classes, because every reservation of slots has its own class.
    """
    by_class: dict[int, list[Any]] = {}
    for row in rows:
        if row[0] in table.index_of:
            by_class.setdefault(row[1], []).append(row)
    for class_id, some in by_class.items():
        table.ensure_class(names[class_id])
        yield names[class_id], some


def _load_inventories(table: AmountTable, rows: Rows, names: dict[Any, str]) -> None:
    for name, some in _by_class(table, rows, names):
        at, total, reserved, ratio = _columns(table, some, 2, 3, 7)
        # Amounts are whole numbers, so rounding the capacity down changes no comparison.
        units = np.floor((total - reserved) * ratio)
        table.set_capacity(name, at, units)
        _, *units = _columns(table, some, 4, 5, 6)
        table.set_units(name, at, units)


def _load_used(table: AmountTable, rows: Rows, names: dict[Any, str]) -> None:
    for name, some in _by_class(table, rows, names):
        at, used = _columns(table, some, 2)
        amounts = used.astype(np.float64)
        table.used[name][at] = amounts
        table.free[name][at] -= amounts
