"""Checks the final state of a measured run: without safety a rate is worth nothing.

Always true: the state is checked after the service has stopped, by queries that are written
here and are not the service's own.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import sqlalchemy as sa

from benchmarks.fleet import OTHERS
from benchmarks.running import database_at, store_in
from innkeeper.store.transactions import Store

CLASSES_HELD = 3
OVERSOLD = """
SELECT p.name, a.resource_class_id, SUM(a.used)
  FROM allocations a
  JOIN resource_providers p ON p.id = a.resource_provider_id
  LEFT JOIN inventories i ON i.resource_provider_id = a.resource_provider_id
                         AND i.resource_class_id = a.resource_class_id
 GROUP BY p.name, a.resource_class_id, i.total, i.reserved, i.allocation_ratio
HAVING SUM(a.used) > COALESCE((i.total - i.reserved) * i.allocation_ratio, 0)
"""
PLACED = """
SELECT s.uuid, COUNT(a.id), COUNT(DISTINCT a.resource_provider_id),
       MIN(CASE WHEN a.resource_provider_id = s.provider_id THEN 1 ELSE 0 END)
  FROM servers s LEFT JOIN allocations a ON a.consumer_id = s.uuid
 WHERE s.deleted_at IS NULL
 GROUP BY s.uuid
"""
HELD = f"""
SELECT c.uuid, COUNT(a.id), COUNT(DISTINCT a.resource_provider_id)
  FROM consumers c LEFT JOIN allocations a ON a.consumer_id = c.uuid
 WHERE c.project_id <> '{OTHERS}'
 GROUP BY c.uuid
"""  # noqa: S608 - a constant of ours


class Unsafe(Exception):
    """The final state breaks an invariant; the run's figures are worth nothing."""


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of acknowledged object; each must be found as ``expected``."""

    word: str
    query: str
    expected: tuple[int, ...]


SERVERS = Kind("server", PLACED, (CLASSES_HELD, 1, 1))
CONSUMERS = Kind("consumer", HELD, (CLASSES_HELD, 1))


def judge(directory: Path, acknowledged: Sequence[str]) -> None:
    """Raise :class:`Unsafe` unless exactly the acknowledged servers exist, all placed."""
    _judge(directory, None, {SERVERS: acknowledged})


def judge_claims(directory: Path, acknowledged: Sequence[str]) -> None:
    """Raise :class:`Unsafe` unless exactly the acknowledged consumers hold their amounts."""
    _judge(directory, None, {CONSUMERS: acknowledged})


def judge_both(directory: Path, url: str, servers: Sequence[str], claims: Sequence[str]) -> None:
    """Check a database with booted servers, and with claims on the same hosts."""
    _judge(directory, url, {SERVERS: servers, CONSUMERS: [*servers, *claims]})


def _judge(directory: Path, url: str | None, acknowledged: Mapping[Kind, Sequence[str]]) -> None:
    store = store_in(directory, url)
    try:
        found = list(problems(store, acknowledged))
    finally:
        store.dispose()
    audit = [sys.executable, "-m", "innkeeper.main", "audit", "--data-dir", str(directory)]
    environ = {**os.environ, **database_at(url)}
    done = subprocess.run(audit, capture_output=True, text=True, check=False, env=environ)
    if done.returncode != 0:
        found += (done.stdout + done.stderr).splitlines()[:20]
    if found:
        raise Unsafe("\n".join(found))


def problems(store: Store, acknowledged: Mapping[Kind, Sequence[str]]) -> Iterator[str]:
    """The violations in a database with exactly these acknowledgements, in words."""
    with store.read() as tx:
        for host, class_id, used in tx.execute(sa.text(OVERSOLD)):
            yield f"{host} has sold {used} of class {class_id}, more than it has."
        for kind, uuids in acknowledged.items():
            found = {uuid: tuple(rest) for uuid, *rest in tx.execute(sa.text(kind.query))}
            yield from _differences(kind, uuids, found)


def _differences(
    kind: Kind, acknowledged: Sequence[str], found: Mapping[str, tuple[int, ...]]
) -> Iterator[str]:
    known = set(acknowledged)
    if len(known) != len(acknowledged):
        yield f"One {kind.word} was acknowledged twice."
    for uuid in acknowledged:
        if found.get(uuid) != kind.expected:
            yield f"The {kind.word} {uuid} was acknowledged, and holds {found.get(uuid)}."
    extra = len(found.keys() - known)
    if extra:
        yield f"{extra} {kind.word}s exist without an acknowledgement."
