"""What projects used in a time: their servers, and how long each ran."""

from __future__ import annotations

from datetime import datetime

from innkeeper.domain.errors import Invalid
from innkeeper.domain.usage import ServerRun
from innkeeper.store.queries.compute import server_runs
from innkeeper.store.transactions import Tx


def runs(
    tx: Tx,
    start: datetime,
    stop: datetime,
    *,
    project_id: str | None,
    marker: str | None,
    limit: int | None,
) -> list[ServerRun]:
    """Servers that ran between two moments, behind the one with the uuid ``marker``.

    Those of all projects without a ``project_id``, and all of them without a ``limit``.
    """
    if start > stop:
        raise Invalid("Invalid start time. The start time cannot occur after the end time.")
    after_row = 0
    if marker is not None:
        found = server_runs.row_of(tx, marker)
        if found is None or project_id not in (None, found[1]):
            raise Invalid(f"marker [{marker}] not found")
        after_row = found[0]
    return server_runs.in_window(
        tx, start, stop, project_id=project_id, after_row=after_row, limit=limit
    )
