"""Checks the final state of a measured run, because the rate of an unsafe run is meaningless.

Always true: the state is checked after the service has stopped, with queries that do not share
code with the service.
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

BOOTED = """
SELECT s.uuid,
       SUM(CASE WHEN a.resource_provider_id = s.provider_id THEN 1 ELSE 0 END),
       SUM(CASE WHEN a.resource_provider_id = s.provider_id THEN 0
                WHEN p.parent_provider_id = s.provider_id AND a.used = 1 THEN 0
                ELSE 1 END)
  FROM servers s
  LEFT JOIN allocations a ON a.consumer_id = s.uuid
  LEFT JOIN resource_providers p ON p.id = a.resource_provider_id
 WHERE s.deleted_at IS NULL
 GROUP BY s.uuid
"""
STORED = """
SELECT v.uuid, COUNT(a.id),
       SUM(CASE WHEN a.resource_provider_id = v.provider_id AND a.used = v.size_gb
                THEN 1 ELSE 0 END)
  FROM volumes v LEFT JOIN allocations a ON a.consumer_id = v.uuid
 GROUP BY v.uuid
"""
LEASED = f"""
SELECT l.uuid, COUNT(DISTINCT r.id),
       CASE WHEN SUM(h.units) BETWEEN r.hosts_min AND r.hosts_max THEN 1 ELSE 0 END
  FROM leases l
  LEFT JOIN reservations r ON r.lease_id = l.id
  LEFT JOIN holds h ON h.reservation_id = r.id
 WHERE l.user_id <> '{OTHERS}'
 GROUP BY l.uuid, r.hosts_min, r.hosts_max
"""  # noqa: S608 - a constant of ours


class Unsafe(Exception):
    """The final state violates an invariant, so the run's figures are meaningless."""


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of acknowledged object. ``expected`` is the row of each object without its id."""

    word: str
    query: str
    expected: tuple[int, ...]


SERVERS = Kind("server", PLACED, (CLASSES_HELD, 1, 1))
CONSUMERS = Kind("consumer", HELD, (CLASSES_HELD, 1))
VOLUMES = Kind("volume", STORED, (1, 1))
"""Volumes that have exactly one allocation: of their size, on their pool."""
LEASED_SERVERS = Kind("server", BOOTED, (CLASSES_HELD, 0))
"""Servers that have their amounts on their own host, and no other allocation except a slot
there."""
LEASES = Kind("lease", LEASED, (1, 1))
"""Leases that have one reservation, which holds as many units as it requested."""


def judge(directory: Path, acknowledged: Sequence[str]) -> None:
    """Raise :class:`Unsafe` unless exactly the acknowledged servers exist, each with a host."""
    _judge(directory, None, {SERVERS: acknowledged})


def judge_claims(directory: Path, acknowledged: Sequence[str]) -> None:
    """Raise :class:`Unsafe` unless exactly the acknowledged consumers hold their amounts."""
    _judge(directory, None, {CONSUMERS: acknowledged})


def judge_volumes(directory: Path, servers: Sequence[str], volumes: Sequence[str]) -> None:
    """Raise :class:`Unsafe` unless exactly these servers and volumes exist, with allocations."""
    _judge(directory, None, {SERVERS: servers, VOLUMES: volumes})


def judge_both(
    directory: Path, url: str | None, servers: Sequence[str], claims: Sequence[str]
) -> None:
    """Raise :class:`Unsafe` unless exactly these servers and claims exist, on the same hosts."""
    _judge(directory, url, {SERVERS: servers, CONSUMERS: [*servers, *claims]})


def judge_leases(directory: Path, leases: Sequence[str], servers: Sequence[str]) -> None:
    """Raise :class:`Unsafe` unless exactly these measured leases and servers exist."""
    _judge(directory, None, {LEASES: leases, LEASED_SERVERS: servers})


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
    """Yield a sentence for each violation in a database that should have exactly these objects."""
    with store.read() as tx:
        for host, class_id, used in tx.execute(sa.text(OVERSOLD)):
            yield f"Host {host} has allocations of {used} of class {class_id}, over its capacity."
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
            yield f"The {kind.word} {uuid} was acknowledged, but its row is {found.get(uuid)}."
    extra = len(found.keys() - known)
    if extra:
        yield f"{extra} {kind.word}s exist without an acknowledgement."
