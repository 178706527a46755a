"""Check migrations, and compare the allocations of servers and migrations with their flavors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from innkeeper.domain.auditing import Finding, Invariant
from innkeeper.domain.moves import (
    COUNTED_TWICE,
    IN_FLIGHT,
    LEFT_AT_DESTINATION,
    Migration,
    MigrationKind,
    MigrationStatus,
    larger,
)
from innkeeper.store.by_ids import Only
from innkeeper.store.queries.compute import audit, reports_audit
from innkeeper.store.queries.compute import servers as server_rows
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.flavors import demands, flavors
from innkeeper.systems.compute.moves.moving import MIGRATION_TYPE

_invariant = partial(Invariant, "compute")
TOO_LITTLE = _invariant(
    "too-little",
    "a server or migration has all allocations that its flavor needs",
    "Restore the missing allocations with the amounts of the flavor.",
    "claims the missing amounts, if all allocations of the server are on its host and the host has "
    "enough free capacity",
)
TOO_MUCH = _invariant(
    "too-much",
    "a server or migration has no more allocations than its flavor needs",
    "Find out what the server uses, and replace the allocations with the amounts of the flavor.",
)
ENDED_MIGRATION = _invariant(
    "ended-migration",
    "a migration that has ended has no allocations",
    "Delete the migration's allocations.",
    "releases the allocations",
)
UNKNOWN_MIGRATION = _invariant(
    "unknown-migration",
    "every consumer of the type MIGRATION is an existing migration",
    "Find out what uses the capacity, and delete the allocations if nothing does.",
)
IDLE_TASK = _invariant(
    "idle-task",
    "a server with a task state has a pending order",
    "Reset the server's state.",
    "clears the task state, if the server is not moving to another host",
)
LOST_MIGRATION = _invariant(
    "lost-migration",
    "the server of an open migration exists",
    "Delete the migration's allocations once nothing of the server is left on its hosts.",
)
DOUBLE_MOVE = _invariant(
    "double-move",
    "a server has at most one move in progress",
    "Reset the server's state, which ends all of its moves.",
)
INVARIANTS = (
    *(TOO_LITTLE, TOO_MUCH, ENDED_MIGRATION, UNKNOWN_MIGRATION),
    *(IDLE_TASK, LOST_MIGRATION, DOUBLE_MOVE),
)


def findings(tx: Tx) -> Iterator[Finding]:
    """Yield all findings about migrations, and about allocations of servers and migrations."""
    yield from wrong_amounts(tx, audit.open_migrations(tx))
    for uuid, status in audit.consumers_without_migration(tx, MIGRATION_TYPE):
        if status is None:
            yield UNKNOWN_MIGRATION.broken(
                uuid, f"migration {uuid} does not exist but has allocations"
            )
        else:
            yield ENDED_MIGRATION.broken(uuid, f"migration {uuid} is {status} but has allocations")
    for uuid, task in audit.idle_tasks(tx):
        yield IDLE_TASK.broken(uuid, f"server {uuid} is {task}, but no agent has an order for it")
    for uuid, server in reports_audit.orphaned_migrations(tx):
        yield LOST_MIGRATION.broken(
            uuid, f"migration {uuid} is of server {server}, which does not exist"
        )
    for uuid, count in reports_audit.double_moves(tx):
        yield DOUBLE_MOVE.broken(uuid, f"server {uuid} has {count} moves in progress")


def wrong_amounts(tx: Tx, moves: Sequence[Migration], only: Only = None) -> Iterator[Finding]:
    """Yield findings about servers and migrations with wrong allocations.

    ``moves`` are all open migrations. ``only`` has the uuids of the servers to check. ``None``
    means all servers.
    """
    known: dict[str, Mapping[str, int]] = {}

    def needs(flavor: Mapping[str, Any], properties: Mapping[str, Any]) -> Mapping[str, int]:
        # Many servers have the same flavor and image, so their amounts are computed only once.
        key = repr((flavor, properties))
        if key not in known:
            texts = {name: str(value) for name, value in properties.items()}
            known[key] = demands.of(flavors.of_facts(flavor), texts).amounts
        return known[key]

    flying = {each.server_uuid: each for each in moves if each.status in IN_FLIGHT}
    leaving: dict[str, list[Migration]] = {}
    for each in moves:
        leaving.setdefault(each.server_uuid, []).append(each)
    for placed in audit.placed_servers(tx, only):
        uuids = [row[1] for row in placed]
        beside = [each.uuid for uuid in uuids for each in leaving.get(uuid, ())]
        held = audit.holdings(tx, placed, beside)
        for _, uuid, flavor, properties in placed:
            own = flying[uuid].new_flavor if uuid in flying else flavor
            # A server without any allocations is reported as an "unbacked-server".
            if uuid in held:
                yield from _compare("server", uuid, held[uuid], needs(own, properties))
            for each in leaving.get(uuid, ()):
                has = held.get(each.uuid, {})
                if has or each.status != MigrationStatus.REVERTING:
                    # While a resize is reverted, the migration has the amounts of the new flavor.
                    is_new = each.status in LEFT_AT_DESTINATION
                    needed = needs(each.new_flavor if is_new else each.old_flavor, properties)
                    yield from _compare("migration", each.uuid, has, needed)


def _compare(
    what: str, uuid: str, held: Mapping[str, int], needed: Mapping[str, int]
) -> Iterator[Finding]:
    if held == needed:
        return
    is_more = any(amount > needed.get(name, 0) for name, amount in held.items())
    yield (TOO_MUCH if is_more else TOO_LITTLE).broken(
        uuid, f"{what} {uuid} has the allocations {dict(held)}, but its flavor needs {dict(needed)}"
    )


def counted_beside(tx: Tx) -> dict[str, tuple[int, int]]:
    """Return the quota usage that is reserved to revert resizes, as (vcpus, MB) by project id."""
    counted = [
        each
        for each in audit.open_migrations(tx)
        if each.kind == MigrationKind.RESIZE and each.status in COUNTED_TWICE
    ]
    known = {each.uuid: each for each in server_rows.alive(tx, [m.server_uuid for m in counted])}
    more: dict[str, tuple[int, int]] = {}
    for each in counted:
        server = known.get(each.server_uuid)
        if server is None:
            continue
        shown = {"vcpus": server.vcpus, "memory_mb": server.memory_mb}
        vcpus, memory_mb = larger(each, shown)
        had = more.get(server.project_id, (0, 0))
        more[server.project_id] = (had[0] + vcpus, had[1] + memory_mb)
    return more
