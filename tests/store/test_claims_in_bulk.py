"""Claims as large as the largest cloud can make them."""

from __future__ import annotations

import sqlite3
from datetime import datetime

from innkeeper.domain.amounts import Inventory
from innkeeper.domain.ids import ConsumerUuid, Generation, ProviderId
from innkeeper.domain.placement import Claim, ConsumerClaim
from innkeeper.store.queries.placement import allocations, capacity, names, registration
from innkeeper.store.transactions import Store, Tx
from innkeeper.systems.placement import claims, inventories

PARAMETERS_MAX = 32_766
"""SQLite's default limit of parameters per statement."""
MANY = PARAMETERS_MAX + 1000
LESS = 17_000
"""A lower limit, above the longest lists of ids."""
NOW = datetime(2026, 1, 1)  # noqa: DTZ001 - the core's clock is naive and in UTC


def limit(tx: Tx, parameters_max: int) -> None:
    driver = tx.connection.driver_connection
    if isinstance(driver, sqlite3.Connection):
        driver.setlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER, parameters_max)


def test_a_batch_can_have_more_providers_than_a_statement_has_parameters(store: Store) -> None:
    with store.write() as tx:
        limit(tx, PARAMETERS_MAX)
        new = [(f"30000000-0000-4000-8000-{n:012}", f"host {n}") for n in range(MANY)]
        registration.add_providers(tx, new, NOW)
        ids = [ProviderId(pid) for pid, _ in capacity.generation_rows(tx, None)]
        seen = {provider_id: Generation(0) for provider_id in ids}
        assert claims.commit_together(tx, [Claim((), seen)], NOW) == [None]
        moved = {generation for _, generation in capacity.generation_rows(tx, None)}
    assert (len(ids), moved) == (MANY, {1})


def test_more_consumers_than_a_statement_has_parameters_are_claimed_and_released(
    store: Store,
) -> None:
    uuids = [ConsumerUuid(f"c0000000-0000-4000-8000-{n:012}") for n in range(LESS + 1)]
    host = "30000000-0000-4000-8000-000000000000"

    def held(tx: Tx) -> list[int]:
        return [each.used for each in allocations.of_consumers(tx, uuids)]

    def replace(tx: Tx, amount: int, seen: int | None) -> None:
        amounts = {provider_id: {vcpu: amount}} if amount else {}
        generation = None if seen is None else Generation(seen)
        claims.replace(
            tx, [ConsumerClaim(uuid, "p", "u", amounts, generation) for uuid in uuids], NOW
        )

    with store.write() as tx:
        limit(tx, LESS)
        registration.add_providers(tx, [(host, "host")], NOW)
        inventories.add(tx, host, "VCPU", Inventory(total=4 * LESS), NOW)
        ((provider_id, _),) = capacity.generation_rows(tx, None)
        vcpu = names.class_ids(tx)["VCPU"]
        replace(tx, 1, None)
        replace(tx, 2, 1)
        assert held(tx) == [2] * len(uuids)
        replace(tx, 0, 2)
        assert held(tx) == []
        replace(tx, 1, None)
        assert len(claims.release(tx, uuids, NOW)) == len(uuids)
        assert held(tx) == []
        assert allocations.consumers_by_uuid(tx, uuids) == {}
