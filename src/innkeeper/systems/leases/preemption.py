"""Warn and delete preemptible servers in time for the leases that need their hosts.

Always true: a server is deleted only if it got a warning on its present host, and only after the
grace time in the warning. A warning, its notification and its metadata item on the server are
written in one transaction. A deletion and the end of its warning are also written in one
transaction. All state is in the database, so any process can continue at any time. A lease gets a
host, or slots on a host, only when no preemptible server is left on the host.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import islice

from innkeeper.domain.compute import Task
from innkeeper.domain.errors import NotFound
from innkeeper.domain.ids import ServerId
from innkeeper.domain.moves import ActionName
from innkeeper.domain.preemption import LEAD_S, Preemption, ThreatenedServer, reach_s
from innkeeper.store.queries.leases import preemptions
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.moves import deletions, resizing
from innkeeper.systems.compute.servers import history, servers
from innkeeper.systems.leases import notifications
from innkeeper.systems.leases.context import LeaseContext

SERVERS_AT_ONCE = 100
"""The maximum number of servers that one transaction warns or deletes. The transaction blocks all
other writers."""
METADATA = "preempted_at"
"""The metadata item that shows when a warned server may be deleted."""
_LEAD = timedelta(seconds=LEAD_S)


@dataclass(frozen=True, slots=True)
class PreemptionWork:
    """The due work: servers to warn or delete, warnings to end, and moves to confirm.

    ``warned`` has the warnings of all servers that have one.
    """

    warned: Mapping[ServerId, Preemption]
    warn: tuple[ThreatenedServer, ...]
    delete: tuple[ServerId, ...]
    forget: tuple[Preemption, ...]
    confirm: tuple[ServerId, ...]

    @property
    def count(self) -> int:
        """The number of work items."""
        return len(self.warn) + len(self.delete) + len(self.forget) + len(self.confirm)


def look(tx: Tx, context: LeaseContext) -> PreemptionWork:
    """Return some of the due work, without doing it."""
    reach = timedelta(seconds=reach_s(context.leasing.preemption_grace_s))
    needs = preemptions.needed(tx, context.now + reach)
    found = preemptions.threatened(tx, needs, context.seen_since) if needs else []
    warned = preemptions.warned(tx)
    urgent = [row for row, needed_at in needs.items() if needed_at - _LEAD <= context.now]
    to_warn = (each for each in found if _is_to_warn(each, warned))
    to_delete = (each.uuid for each in found if _is_to_delete(each, warned, context.now))
    over = warned.keys() - {each.uuid for each in found}
    return PreemptionWork(
        warned,
        tuple(islice(to_warn, SERVERS_AT_ONCE)),
        tuple(islice(to_delete, SERVERS_AT_ONCE)),
        tuple(warned[uuid] for uuid in sorted(over)[:SERVERS_AT_ONCE]),
        tuple(preemptions.to_confirm(tx, urgent)[:SERVERS_AT_ONCE]) if urgent else (),
    )


def _is_to_warn(each: ThreatenedServer, warned: Mapping[ServerId, Preemption]) -> bool:
    known = warned.get(each.uuid)
    return not each.is_deleting and (known is None or known.host != each.host)


def _is_to_delete(
    each: ThreatenedServer, warned: Mapping[ServerId, Preemption], now: datetime
) -> bool:
    if each.needed_at - _LEAD > now:
        return False
    if each.is_deleting:
        # If the agent of a server is down, the row of the server is deleted without the agent.
        return each.is_stuck
    known = warned.get(each.uuid)
    return known is not None and known.host == each.host and known.delete_at <= now


def work(tx: Tx, context: LeaseContext) -> int:
    """Do some of the due work. Return the number of completed work items."""
    due = look(tx, context)
    _warn(tx, due.warn, context)
    _delete(tx, due, context)
    _forget(tx, due.forget, context)
    initiator = replace(context.initiator, may_override=True)
    for uuid in due.confirm:
        # A lease needs the source of the move, which still has a copy of the server.
        resizing.confirm(tx, uuid, initiator, now=context.now)
    return due.count


def _warn(tx: Tx, chosen: Iterable[ThreatenedServer], context: LeaseContext) -> None:
    grace = timedelta(seconds=context.leasing.preemption_grace_s)
    given = [
        Preemption(
            each.uuid, each.host, context.now, max(context.now + grace, each.needed_at - _LEAD)
        )
        for each in chosen
    ]
    preemptions.add(tx, given)
    for each in given:
        server = servers.get(tx, each.server_uuid)
        shown = {**server.metadata, METADATA: each.delete_at.isoformat(timespec="seconds")}
        servers.write(tx, server, {"metadata": shown}, context.now)
        action = ActionName.PREEMPTION_WARNING
        history.record(tx, server.uuid, action, context.initiator, context.now)
        notifications.add_of_server(tx, notifications.PREEMPTION_WARNING, server, each, context)


def _delete(tx: Tx, due: PreemptionWork, context: LeaseContext) -> None:
    for uuid in due.delete:
        given = due.warned.get(uuid)
        if given is not None:
            server = servers.get(tx, uuid)
            notifications.add_of_server(tx, notifications.PREEMPTED, server, given, context)
    deletions.delete_these(
        tx,
        due.delete,
        context.now,
        service_down_time_s=context.service_down_time_s,
        initiator=context.initiator,
    )
    preemptions.remove(tx, due.delete)


def _forget(tx: Tx, over: Collection[Preemption], context: LeaseContext) -> None:
    """End the warnings of servers that are gone, or whose hosts are not needed any more."""
    preemptions.remove(tx, [each.server_uuid for each in over])
    for each in over:
        try:
            server = servers.get(tx, each.server_uuid)
        except NotFound:
            continue
        if server.task_state == Task.DELETING:
            continue
        rest = {name: value for name, value in server.metadata.items() if name != METADATA}
        servers.write(tx, server, {"metadata": rest}, context.now)
        kind = notifications.PREEMPTION_CANCELLED
        notifications.add_of_server(tx, kind, server, each, context)
