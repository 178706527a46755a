"""The state that a measured run left behind: without safety a rate is worth nothing."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from innkeeper.wiring import DATABASE_FILE

CLASSES_HELD = 3
OVERSOLD = """
SELECT p.name, i.resource_class_id, SUM(a.used)
  FROM allocations a
  JOIN resource_providers p ON p.id = a.resource_provider_id
  LEFT JOIN inventories i ON i.resource_provider_id = a.resource_provider_id
                         AND i.resource_class_id = a.resource_class_id
 GROUP BY a.resource_provider_id, a.resource_class_id
HAVING SUM(a.used) > COALESCE((i.total - i.reserved) * i.allocation_ratio, 0)
"""
PLACED = """
SELECT s.uuid, COUNT(a.id), COUNT(DISTINCT a.resource_provider_id), MIN(a.resource_provider_id
       = s.provider_id)
  FROM servers s LEFT JOIN allocations a ON a.consumer_id = s.uuid
 WHERE s.deleted_at IS NULL
 GROUP BY s.uuid
"""
HELD = """
SELECT c.uuid, COUNT(a.id), COUNT(DISTINCT a.resource_provider_id)
  FROM consumers c LEFT JOIN allocations a ON a.consumer_id = c.uuid
 GROUP BY c.uuid
"""


class Unsafe(Exception):
    """The final state breaks a promise; the run's figures are worth nothing."""


def judge(directory: Path, acknowledged: Sequence[str]) -> None:
    """Raise :class:`Unsafe` unless exactly the acknowledged servers are there, all placed.

    The service must have stopped.
    """
    _judge(directory, PLACED, (CLASSES_HELD, 1, 1), "server", acknowledged)


def judge_claims(directory: Path, acknowledged: Sequence[str]) -> None:
    """Raise :class:`Unsafe` unless exactly the acknowledged consumers hold what they asked.

    The service must have stopped.
    """
    _judge(directory, HELD, (CLASSES_HELD, 1), "consumer", acknowledged)


def _judge(
    directory: Path,
    query: str,
    expected: tuple[int, ...],
    what: str,
    acknowledged: Sequence[str],
) -> None:
    found = _problems(directory / DATABASE_FILE, query, expected, what, acknowledged)
    problems = list(found)
    audit = [sys.executable, "-m", "innkeeper.main", "audit", "--data-dir", str(directory)]
    done = subprocess.run(audit, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        problems += (done.stdout + done.stderr).splitlines()[:20]
    if problems:
        raise Unsafe("\n".join(problems))


def _problems(
    database: Path,
    query: str,
    expected: tuple[int, ...],
    what: str,
    acknowledged: Sequence[str],
) -> Iterable[str]:
    store = sqlite3.connect(f"file:{database}?mode=ro", uri=True)
    try:
        for host, class_id, used in store.execute(OVERSOLD):
            yield f"{host} has sold {used} of class {class_id}, more than it has."
        placed = {uuid: tuple(rest) for uuid, *rest in store.execute(query)}
    finally:
        store.close()
    if len(set(acknowledged)) != len(acknowledged):
        yield f"One {what} was acknowledged twice."
    for uuid in acknowledged:
        if placed.get(uuid) != expected:
            yield f"The {what} {uuid} was acknowledged, and holds {placed.get(uuid)}."
    extra = len(placed.keys() - set(acknowledged))
    if extra:
        yield f"{extra} {what}s are there that nobody was told of."
