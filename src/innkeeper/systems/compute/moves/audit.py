"""What servers and migrations hold, checked against what their flavors take."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from innkeeper.domain.auditing import Finding
from innkeeper.domain.moves import (
    COUNTED_TWICE,
    IN_FLIGHT,
    LEFT_AT_DESTINATION,
    Migration,
    MigrationKind,
)
from innkeeper.domain.moves import MigrationStatus as Stage
from innkeeper.store.queries import compute_audit
from innkeeper.store.queries import servers as rows
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute import demands, specs
from innkeeper.systems.compute.moves import moving
from innkeeper.systems.compute.moves.moving import MIGRATION_TYPE

ROOM = "compute"


def findings(tx: Tx) -> Iterator[Finding]:
    """Everything about what is held by who moves, or stays, that is not right."""
    yield from _wrong_amounts(tx, compute_audit.open_migrations(tx))
    for uuid, status in compute_audit.loose_migrations(tx, MIGRATION_TYPE):
        yield Finding(
            ROOM,
            "a migration that is over holds nothing",
            f"{uuid} is {status or 'unknown'} and holds capacity",
        )
    for uuid, task in compute_audit.idle_tasks(tx):
        yield Finding(
            ROOM, "someone does what is being done", f"{uuid} is {task}, and nobody is told"
        )


def _wrong_amounts(tx: Tx, moves: Sequence[Migration]) -> Iterator[Finding]:
    flying = {each.server_uuid: each for each in moves if each.status in IN_FLIGHT}
    leaving: dict[str, list[Migration]] = {}
    for each in moves:
        leaving.setdefault(each.server_uuid, []).append(each)
    for placed in compute_audit.placed_servers(tx):
        uuids = [row[1] for row in placed]
        beside = [each.uuid for uuid in uuids for each in leaving.get(uuid, ())]
        held = compute_audit.holdings(tx, [*uuids, *beside])
        for _, uuid, flavor, properties in placed:
            own = flying[uuid].new_flavor if uuid in flying else flavor
            # A server that holds nothing at all is told of already.
            if uuid in held:
                yield from _compare("server", uuid, held[uuid], own, properties)
            for each in leaving.get(uuid, ()):
                has = held.get(each.uuid, {})
                if has or each.status != Stage.REVERTING:
                    yield from _compare("migration", each.uuid, has, _left(each), properties)


def _left(each: Migration) -> Mapping[str, Any]:
    """The flavor of what a migration holds: what goes back has left the new one behind."""
    return each.new_flavor if each.status in LEFT_AT_DESTINATION else each.old_flavor


def _compare(
    what: str,
    uuid: str,
    held: Mapping[str, int],
    flavor: Mapping[str, Any],
    properties: Mapping[str, Any],
) -> Iterator[Finding]:
    texts = {name: str(value) for name, value in properties.items()}
    wanted = demands.of(specs.flavor_of(flavor), texts).amounts
    if held != wanted:
        yield Finding(
            ROOM,
            f"a {what} holds what its flavor takes",
            f"{uuid} holds {dict(held)}; its flavor takes {dict(wanted)}",
        )


def counted_beside(tx: Tx) -> dict[str, tuple[int, int]]:
    """What projects are counted with beside their servers, because these may go back."""
    counted = [
        each
        for each in compute_audit.open_migrations(tx)
        if each.kind == MigrationKind.RESIZE and each.status in COUNTED_TWICE
    ]
    known = {each.uuid: each for each in rows.alive(tx, [m.server_uuid for m in counted])}
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
