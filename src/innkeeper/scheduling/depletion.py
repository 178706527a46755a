"""Virtual depletion: taking a server's amounts from its host and pools, and giving them back.

Always true: :func:`give_back` is the exact inverse of :func:`take`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from innkeeper.domain.ids import HostIndex, ProviderId
from innkeeper.domain.placing import BuildPlan, Entry, Loan, RequestSpec
from innkeeper.scheduling.dice import draw
from innkeeper.snapshot.columns import HostTable

POOL_TURNS = 2**32
"""The first turn of draws among pools. Draws among hosts have lower turns, so pools do not affect
them."""


def loans(hosts: HostTable, spec: RequestSpec, index: HostIndex, turn: int) -> tuple[Loan, ...]:
    """Choose the pool with the most left for each class that a server on this host borrows.

    Pools with equal amounts are equally likely. The host must have passed the filters.
    """
    if not hosts.pools.row_count:
        return ()
    row = slice(index, index + 1)
    result: list[Loan] = []
    for number, (name, amount) in enumerate(spec.amounts.items()):
        if not hosts.borrows(name, row)[0]:
            continue
        best = hosts.pools.best(name, amount, int(hosts.membership_codes[index]))
        # One draw per server and class.
        place = draw(spec.seed, POOL_TURNS + turn * len(spec.amounts) + number, len(best))
        pool = best[place]
        provider_id = ProviderId(int(hosts.pools.provider_ids[pool]))
        result.append(Loan(pool, provider_id, name, amount))
    return tuple(result)


def own(spec: RequestSpec, lent: Sequence[Loan]) -> Mapping[str, int]:
    """Return the amounts that a server takes from its host, not from pools."""
    if not lent:
        return spec.amounts
    names = {each.class_name for each in lent}
    return {name: amount for name, amount in spec.amounts.items() if name not in names}


def take(hosts: HostTable, spec: RequestSpec, entry: Entry) -> None:
    """Deplete the host and the pools of an entry, and count the server."""
    hosts.take(entry.index, own(spec, entry.loans))
    for each in entry.loans:
        hosts.pools.take(each.index, {each.class_name: each.amount})
    hosts.add_server(entry.index, spec.project_id, 1)


def give_back(hosts: HostTable, spec: RequestSpec, entry: Entry) -> None:
    """Undo :func:`take`."""
    hosts.give_back(entry.index, own(spec, entry.loans))
    for each in entry.loans:
        hosts.pools.give_back(each.index, {each.class_name: each.amount})
    hosts.add_server(entry.index, spec.project_id, -1)


class Aside:
    """Context manager that gives entries back to the table, and takes them again at the end.

    Afterwards, their rows count as edited, because caches may have the intermediate state.
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
    """Give back everything that a plan took."""
    for entry in plan.entries:
        give_back(hosts, spec, entry)
