"""Simulates agents whose hosts have servers and volumes, and which crash and lose answers.

The agents know nothing but their orders. ``connected`` and ``data`` are what is really there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from random import Random

import sqlalchemy as sa

from innkeeper.domain.compute import Agent, Server
from innkeeper.domain.ids import ServerId
from innkeeper.domain.orders import OrderKind, WorkOrder
from innkeeper.domain.volumes import AttachOrigin, AttachStatus
from innkeeper.store.queries.compute import servers as server_rows
from innkeeper.store.tables.volumes import volume_attachments, volumes
from tests.support.machines import COMING, FAILS, GOING, Machines, Work
from tests.support.moves import Movers

OF_DATA = frozenset({OrderKind.MAKE_VOLUME, OrderKind.GROW_VOLUME, OrderKind.DROP_VOLUME})
LOSES_ANSWERS = 0.1


class VolumeMachines(Machines):
    """Both agents; ``connected`` has the volumes of each server by host and id."""

    def __init__(self, movers: Movers, dice: Random) -> None:
        super().__init__(movers, dice)
        self.connected: dict[tuple[str, ServerId], set[str]] = {}
        self.data: dict[str, int] = {}

    def tell(self) -> None:
        """Report a result. Its answer may get lost, so that it is reported again."""
        if self._results and self.dice.random() < LOSES_ANSWERS:
            self._results.insert(0, self._results[0])
        super().tell()

    def crash(self, agent: Agent) -> None:
        """Restart an agent: it forgets its orders and results, and gets the orders again."""
        for (agent_id, _), queue in self._queues.items():
            if agent_id != agent.id:
                continue
            for doing in queue:
                self._taken.discard(doing.order.id)
            if queue and queue[0].has_begun:
                # It died before the order took effect, or between the effect and the report.
                if self.dice.random() < 0.5:
                    self._end(queue[0])
                else:
                    self._put(queue[0].place, queue[0].before)
            queue.clear()
        for order, _ in self._results:
            if order.agent_id == agent.id:
                self._taken.discard(order.id)
        self._results = [each for each in self._results if each[0].agent_id != agent.id]

    def _end(self, doing: Work) -> bool:
        order, place = doing.order, doing.place
        if order.kind in OF_DATA:
            return self.dice.random() >= FAILS and self._change_data(order)
        if order.kind in (OrderKind.ATTACH_VOLUME, OrderKind.DETACH_VOLUME):
            return self.dice.random() >= FAILS and self._connect(order, place)
        if order.kind == OrderKind.BUILD:
            return self._build(order, place)
        is_ok = super()._end(doing)
        if order.kind == OrderKind.SEND and is_ok:
            self.connected.pop(place, None)
        elif is_ok and order.kind in (*COMING, OrderKind.RETURN) and order.kind != OrderKind.RESIZE:
            self._list(order, place)
        elif is_ok and order.kind in (*GOING, OrderKind.DEPART):
            self.connected.pop(place, None)
        if place not in self.there:
            self.connected.pop(place, None)
        return is_ok

    def _list(self, order: WorkOrder, place: tuple[str, ServerId]) -> None:
        self.connected[place] = {str(each["volume_id"]) for each in order.body.get("volumes", ())}

    def _build(self, order: WorkOrder, place: tuple[str, ServerId]) -> bool:
        if self.dice.random() < FAILS:
            return False
        self.there[place] = int(order.body["flavor"]["vcpus"])
        self._list(order, place)
        return True

    def _connect(self, order: WorkOrder, place: tuple[str, ServerId]) -> bool:
        volume = str(order.body["volume_id"])
        if order.kind == OrderKind.DETACH_VOLUME:
            self.connected.get(place, set()).discard(volume)
        elif place not in self.there or volume not in self.data:
            return False
        else:
            self.connected.setdefault(place, set()).add(volume)
        return True

    def _change_data(self, order: WorkOrder) -> bool:
        volume, size_gb = str(order.server_uuid), int(order.body["size_gb"])
        if order.kind == OrderKind.MAKE_VOLUME:
            self.data.setdefault(volume, size_gb)
        elif order.kind == OrderKind.DROP_VOLUME:
            self.data.pop(volume, None)
        elif volume in self.data:
            self.data[volume] = size_gb
        return True

    # -- judgement -------------------------------------------------------------------------

    def _attachments(self) -> dict[tuple[str, str], str]:
        """Return the statuses of the attachments by agents, by server and volume."""
        columns = volume_attachments.c
        query = sa.select(columns.server_uuid, columns.volume_uuid, columns.status)
        query = query.where(columns.origin == AttachOrigin.SERVER)
        rows = self.movers.cloud.read(lambda tx: tx.execute(query).all())
        return {(server, volume): status for server, volume, status in rows}

    def loose(self, abandoned: set[tuple[str | None, ServerId]]) -> Iterator[str]:
        """Yield volumes that are connected without an attachment, or without data.

        Another server might get such a volume. Servers that were abandoned on a host that was down
        are left out.
        """
        known = self._attachments()
        for (host, server), mine in self.connected.items():
            if (host, server) in abandoned:
                continue
            for volume in sorted(mine):
                if (server, volume) not in known:
                    yield f"{volume} is connected to {server} on {host}, without an attachment"
                if volume not in self.data:
                    yield f"{volume} is connected to {server} on {host}, and has no data"

    def unequal(self, failed: Collection[ServerId]) -> Iterator[str]:
        """Yield what differs between the service and the hosts, once nothing is in progress."""
        wanted: dict[tuple[str, ServerId], set[str]] = {}
        known = self._attachments()
        for (server, volume), status in known.items():
            if status in (AttachStatus.ATTACHING, AttachStatus.DETACHING):
                yield f"{volume} is still {status} at {server}"
            row = self._server(server)
            if row is None:
                yield f"{volume} is attached to {server}, which is gone"
            elif row.host is not None and status == AttachStatus.ATTACHED:
                wanted.setdefault((row.host, ServerId(server)), set()).add(volume)
        for place in sorted({*self.connected, *wanted}):
            found, expected = self.connected.get(place, set()), wanted.get(place, set())
            # A server whose build or move failed may be without its volumes on its host, and may
            # have volumes elsewhere, but they are still its own.
            mine = {volume for server, volume in known if server == place[1]}
            if place[1] in failed and found <= mine:
                continue
            if found != expected:
                yield f"{place} has {found}, but the service says {expected}"
        yield from self._lost_data()

    def _server(self, uuid: str) -> Server | None:
        found: Server | None = self.movers.cloud.read(
            lambda tx: server_rows.by_uuid(tx, ServerId(uuid))
        )
        return found

    def _lost_data(self) -> Iterator[str]:
        query = sa.select(volumes.c.uuid, volumes.c.status, volumes.c.size_gb)
        rows = self.movers.cloud.read(lambda tx: tx.execute(query).all())
        for uuid in sorted(self.data.keys() - {row.uuid for row in rows}):
            yield f"the data of {uuid} is left"
        for uuid, status, size_gb in rows:
            if status in ("creating", "extending", "deleting"):
                yield f"{uuid} is still {status}"
            if status in ("available", "in-use") and self.data.get(uuid) != size_gb:
                yield f"{uuid} is {status} with {size_gb} GiB, but has {self.data.get(uuid)} GiB"
