"""Claims as large as the largest cloud can make them."""

from __future__ import annotations

import sqlite3
from datetime import datetime

from innkeeper.domain.ids import Generation, ProviderId
from innkeeper.domain.placement import Claim
from innkeeper.store.queries import capacity, registration
from innkeeper.store.transactions import Store
from innkeeper.systems.placement import claims

PARAMETERS_MAX = 32_766
"""What SQLite takes in one statement, unless a distribution allows it more."""
MANY = PARAMETERS_MAX + 1000


def test_a_batch_can_claim_of_more_providers_than_a_statement_has_parameters(
    store: Store,
) -> None:
    now = datetime(2026, 1, 1)  # noqa: DTZ001 - the core's clock is naive and in UTC
    with store.write() as tx:
        driver = tx.connection.driver_connection
        if isinstance(driver, sqlite3.Connection):
            driver.setlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER, PARAMETERS_MAX)
        new = [(f"30000000-0000-4000-8000-{n:012}", f"host {n}") for n in range(MANY)]
        registration.add_providers(tx, new, now)
        ids = [ProviderId(pid) for pid, _ in capacity.generation_rows(tx, None)]
        seen = {provider_id: Generation(0) for provider_id in ids}
        assert claims.commit_together(tx, [Claim((), seen)], now) == [None]
        moved = {generation for _, generation in capacity.generation_rows(tx, None)}
    assert (len(ids), moved) == (MANY, {1})
