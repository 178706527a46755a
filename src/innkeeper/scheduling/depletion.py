"""Take the amounts of planned servers from the host table, and give them back.

This *virtual depletion* changes the table in memory, but not the database.

Always true: :func:`give_back` is the exact inverse of :func:`take`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from innkeeper.domain.ids import HostIndex, ProviderId
from innkeeper.domain.placing import BuildPlan, Entry, Loan, RequestSpec
from innkeeper.scheduling.dice import draw
from innkeeper.snapshot.columns import HostTable

POOL_TURNS = 2**32
"""The turn number of the first draw among pools. Draws among hosts have lower turn numbers. Draws
among pools therefore do not affect draws among hosts."""


def loans(hosts: HostTable, spec: RequestSpec, index: HostIndex, turn: int) -> tuple[Loan, ...]:
    """Choose a pool for each class for which the host has no capacity of its own.

    The pool with the most free capacity is chosen. Of several such pools, a random one is chosen.
    The host must have passed the filters.
    """
    if not hosts.pools.row_count:
        return ()
    row = slice(index, index + 1)
    result: list[Loan] = []
    for number, (name, amount) in enumerate(spec.amounts.items()):
        if not hosts.borrows(name, row)[0]:
            continue
        best = hosts.pools.best(name, amount, int(hosts.membership_codes[index]))
        # There is one draw per server and class.
        place = draw(spec.seed, POOL_TURNS + turn * len(spec.amounts) + number, len(best))
        pool = best[place]
        provider_id = ProviderId(int(hosts.pools.provider_ids[pool]))
        result.append(Loan(pool, provider_id, name, amount))
    return tuple(result)


def own(spec: RequestSpec, lent: Sequence[Loan]) -> Mapping[str, int]:
    """Return the amounts that a server takes from its host. Amounts from pools are omitted."""
    if not lent:
        return spec.amounts
    names = {each.class_name for each in lent}
    return {name: amount for name, amount in spec.amounts.items() if name not in names}


def take(hosts: HostTable, spec: RequestSpec, entry: Entry) -> None:
    """Take an entry's amounts from its host and pools, and count its server on the host."""
    hosts.take(entry.index, own(spec, entry.loans))
    for each in entry.loans:
        hosts.pools.take(each.index, {each.class_name: each.amount})
    hosts.add_server(entry.index, spec.project_id, 1)


def give_back(hosts: HostTable, spec: RequestSpec, entry: Entry) -> None:
    """Give an entry's amounts back. This undoes :func:`take`."""
    hosts.give_back(entry.index, own(spec, entry.loans))
    for each in entry.loans:
        hosts.pools.give_back(each.index, {each.class_name: each.amount})
    hosts.add_server(entry.index, spec.project_id, -1)


class Aside:
    """A context manager that gives the amounts of entries back to the table during its block.

    At the end of the block, the amounts are taken again. All changes are recorded as edits, because
    code in the block may cache values of the changed rows.
    """

    def __init__(self, hosts: HostTable, spec: RequestSpec, entries: Sequence[Entry]) -> None:
        self._hosts, self._spec, self._entries = hosts, spec, entries

    def __enter__(self) -> Aside:
        for entry in self._entries:
            give_back(self._hosts, self._spec, entry)
        return self

    def __exit__(self, *error: object) -> None:
        for entry in self._entries:
            take(self._hosts, self._spec, entry)


def undo(hosts: HostTable, spec: RequestSpec, plan: BuildPlan) -> None:
    """Give all amounts of a plan back to the table."""
    for entry in plan.entries:
        give_back(hosts, spec, entry)
