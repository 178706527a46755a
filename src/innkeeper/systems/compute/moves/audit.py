"""What servers and migrations hold, checked against what their flavors take."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from innkeeper.domain.auditing import Finding, Invariant
from innkeeper.domain.moves import (
    COUNTED_TWICE,
    IN_FLIGHT,
    LEFT_AT_DESTINATION,
    Migration,
    MigrationKind,
    MigrationStatus,
)
from innkeeper.store.by_ids import Only
from innkeeper.store.queries.compute import audit, reports_audit
from innkeeper.store.queries.compute import servers as server_rows
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.boot import specs
from innkeeper.systems.compute.flavors import demands
from innkeeper.systems.compute.moves import moving
from innkeeper.systems.compute.moves.moving import MIGRATION_TYPE

ROOM = "compute"
TOO_LITTLE = Invariant(
    ROOM,
    "too-little",
    "a server or migration holds what its flavor takes",
    "Put back what it held, with the amounts of its flavor.",
    "claims for a server what it lacks, if all of it is of its host and there is room",
)
TOO_MUCH = Invariant(
    ROOM,
    "too-much",
    "a server or migration holds no more than its flavor takes",
    "Find out what it uses, and replace its allocations with the amounts of its flavor.",
)
ENDED_MIGRATION = Invariant(
    ROOM,
    "ended-migration",
    "a migration that is over holds nothing",
    "Delete its allocations.",
    "gives back what it holds",
)
UNKNOWN_MIGRATION = Invariant(
    ROOM,
    "unknown-migration",
    "what is held for a migration is of one that is known",
    "Find out what uses it, and delete the allocations if nothing does.",
)
IDLE_TASK = Invariant(
    ROOM,
    "idle-task",
    "someone does what is being done",
    "Reset the server's state.",
    "has the server be what it was, if it is not on its way to another host",
)
LOST_MIGRATION = Invariant(
    ROOM,
    "lost-migration",
    "a migration that is not over has its server",
    "Delete the migration's allocations once its hosts have nothing of the server.",
)
DOUBLE_MOVE = Invariant(
    ROOM,
    "double-move",
    "a server is on its way to one host",
    "Reset the server's state, which ends all of its moves.",
)
INVARIANTS = (
    TOO_LITTLE,
    TOO_MUCH,
    ENDED_MIGRATION,
    UNKNOWN_MIGRATION,
    IDLE_TASK,
    LOST_MIGRATION,
    DOUBLE_MOVE,
)


def findings(tx: Tx) -> Iterator[Finding]:
    """Everything about what is held by who moves, or stays, that is not right."""
    yield from wrong_amounts(tx, audit.open_migrations(tx))
    for uuid, status in audit.consumers_without_migration(tx, MIGRATION_TYPE):
        if status is None:
            yield UNKNOWN_MIGRATION.broken(uuid, f"{uuid} is unknown and holds capacity")
        else:
            yield ENDED_MIGRATION.broken(uuid, f"{uuid} is {status} and holds capacity")
    for uuid, task in audit.idle_tasks(tx):
        yield IDLE_TASK.broken(uuid, f"{uuid} is {task}, and nobody is told")
    for uuid, server in reports_audit.orphaned_migrations(tx):
        yield LOST_MIGRATION.broken(uuid, f"{uuid} moves {server}, which is not there")
    for uuid, count in reports_audit.double_moves(tx):
        yield DOUBLE_MOVE.broken(uuid, f"{uuid} is on its way {count} times")


class _Takes:
    """What flavors take together with images; worked out once for servers that are alike."""

    def __init__(self) -> None:
        self._known: dict[str, Mapping[str, int]] = {}

    def amounts(
        self, flavor: Mapping[str, Any], properties: Mapping[str, Any]
    ) -> Mapping[str, int]:
        key = repr((flavor, properties))
        found = self._known.get(key)
        if found is None:
            texts = {name: str(value) for name, value in properties.items()}
            found = self._known[key] = demands.of(specs.flavor_of(flavor), texts).amounts
        return found


def wrong_amounts(tx: Tx, moves: Sequence[Migration], only: Only = None) -> Iterator[Finding]:
    """Servers, all or these, and what moves of them, that do not hold what they take."""
    takes = _Takes()
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
            # A server that holds nothing at all is told of already.
            if uuid in held:
                yield from _compare("server", uuid, held[uuid], takes.amounts(own, properties))
            for each in leaving.get(uuid, ()):
                has = held.get(each.uuid, {})
                if has or each.status != MigrationStatus.REVERTING:
                    takes_there = takes.amounts(_left(each), properties)
                    yield from _compare("migration", each.uuid, has, takes_there)


def _left(each: Migration) -> Mapping[str, Any]:
    """The flavor of what a migration holds: what goes back has left the new one behind."""
    return each.new_flavor if each.status in LEFT_AT_DESTINATION else each.old_flavor


def _compare(
    what: str, uuid: str, held: Mapping[str, int], wanted: Mapping[str, int]
) -> Iterator[Finding]:
    if held == wanted:
        return
    is_more = any(amount > wanted.get(name, 0) for name, amount in held.items())
    yield (TOO_MUCH if is_more else TOO_LITTLE).broken(
        uuid, f"{what} {uuid} holds {dict(held)}; its flavor takes {dict(wanted)}"
    )


def counted_beside(tx: Tx) -> dict[str, tuple[int, int]]:
    """What projects are counted with beside their servers, because these may go back."""
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
        vcpus, memory_mb = moving.larger(each, shown)
        had = more.get(server.project_id, (0, 0))
        more[server.project_id] = (had[0] + vcpus, had[1] + memory_mb)
    return more
