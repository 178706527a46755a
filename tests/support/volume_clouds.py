"""Volumes of a cloud for tests: make them, take their orders, and report results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from msgspec.structs import replace

from innkeeper.domain.compute import Booted
from innkeeper.domain.errors import Refusal
from innkeeper.domain.ids import ServerId
from innkeeper.domain.moves import Initiator
from innkeeper.domain.orders import WorkOrder
from innkeeper.domain.slices import Volumes
from innkeeper.domain.volumes import Attachment, BlockDevice, Volume, VolumeRequest
from innkeeper.store.tables import placement
from innkeeper.systems.compute.boot import making_volumes, reserving_volumes
from innkeeper.systems.compute.boot.making_volumes import VolumeContext
from innkeeper.systems.compute.boot.reserving_volumes import Reserved
from innkeeper.systems.compute.hosts import work
from innkeeper.systems.compute.moves import deletions
from innkeeper.systems.compute.servers import attaching
from innkeeper.systems.compute.servers.attaching import WantedVolume
from innkeeper.systems.compute.servers.results import Result
from innkeeper.systems.volumes import attachments, volumes
from innkeeper.systems.volumes.creating import CreatedVolume, NewVolume
from tests.support.clouds import AGENT, NOW, Cloud

UNLIMITED = Volumes(quota_volumes=-1, quota_gigabytes=-1)
TIMEOUT_S = 600.0
LATER = NOW + timedelta(seconds=TIMEOUT_S + 1)
WHO = Initiator("req-2", "project", "user")


@dataclass
class VolumeCloud:
    """A cloud whose agent does only what a test says."""

    cloud: Cloud
    settings: Volumes = field(default=UNLIMITED)
    now: datetime = NOW

    # -- requests ------------------------------------------------------------------------------

    def request(self, size_gb: int | None = 1, **more: Any) -> VolumeRequest:
        """Return a request for a volume; ``more`` overrides its fields."""
        ids = self.cloud.ids
        settled = {"project_id": "project", "user_id": "user", "seed": ids.seed(), "now": self.now}
        return VolumeRequest(**{"uuid": ids.uuid(), "size_gb": size_gb, **settled, **more})

    def create(self, size_gb: int | None = 1, **more: Any) -> Volume:
        """Create a volume."""
        (answer,) = self.create_together(self.request(size_gb, **more))
        if isinstance(answer, Refusal):
            raise answer
        return answer.volume

    def create_together(self, *requests: VolumeRequest) -> list[CreatedVolume | Refusal]:
        """Create volumes in one batch."""
        return self.cloud.carry_out(*(self.creating(each) for each in requests))

    def creating(self, request: VolumeRequest) -> tuple[str, Any]:
        """Return the step of a batch that creates a volume."""
        new = NewVolume(request, self.settings)
        return "decide together", (making_volumes.create_together, new, request.now)

    def made(self, size_gb: int = 1, **more: Any) -> Volume:
        """Create a volume, and have the agent make it."""
        volume = self.create(size_gb, **more)
        self.settle_all()
        return self.volume(volume.uuid)

    def extend(self, uuid: str, size_gb: int) -> None:
        """Begin to extend a volume."""
        self.cloud.write(
            lambda tx: making_volumes.extend(
                tx,
                uuid,
                "project",
                size_gb,
                self.settings,
                is_attached_ok=True,
                request_id=None,
                now=self.now,
            )
        )

    def delete(self, uuid: str, **more: Any) -> None:
        """Begin to delete a volume."""
        self.cloud.write(lambda tx: making_volumes.delete(tx, uuid, "project", self.now, **more))

    def attach(self, server: str, volume: str, **more: Any) -> None:
        """Begin to attach a volume."""
        crosses = self.settings.cross_az_attach
        wanted = WantedVolume(self.cloud.ids.uuid(), volume, **more)
        self.cloud.write(
            lambda tx: attaching.attach(
                tx, server, WHO, wanted, crosses_zones=crosses, now=self.now
            )
        )

    def detach(self, server: str, volume: str) -> None:
        """Begin to detach a volume."""
        self.cloud.write(lambda tx: attaching.detach(tx, server, WHO, volume, now=self.now))

    def delete_server(self, uuid: str) -> None:
        """Begin to delete a server."""
        self.cloud.write(
            lambda tx: deletions.delete(
                tx, uuid, self.now, service_down_time_s=60.0, may_override=True
            )
        )

    def boot(self, *devices: BlockDevice, **more: Any) -> ServerId:
        """Boot a server with these volumes."""
        request = self.cloud.request(has_volumes=True, **more)
        reserved = self.reserve(request.server_ids, *devices)
        if reserved.zone is not None:
            request = replace(request, availability_zone=reserved.zone)
        (booted,) = self.cloud.boot(request)
        assert isinstance(booted, Booted), booted
        return booted.server_ids[0]

    def reserve(
        self, servers: Sequence[ServerId], *devices: BlockDevice, is_repeat: bool = False
    ) -> Reserved:
        """Reserve volumes for servers that do not exist yet."""
        template = self.request(None)
        found: Reserved = self.cloud.decide(
            lambda tx, context: reserving_volumes.reserve(
                tx,
                VolumeContext(context, self.settings),
                devices,
                servers,
                template,
                self.cloud.ids,
                is_repeat=is_repeat,
            ),
            self.now,
        )
        return found

    # -- the agent -----------------------------------------------------------------------------

    def active(self) -> ServerId:
        """Boot a server without volumes, and have it built."""
        (booted,) = self.cloud.boot(self.cloud.request())
        assert isinstance(booted, Booted)
        self.settle_all()
        return booted.server_ids[0]

    def orders(self) -> list[WorkOrder]:
        """The orders that the agent would get."""
        found: list[WorkOrder] = self.cloud.read(lambda tx: work.waiting(tx, AGENT.id, 0, 1000))
        return found

    def kinds(self) -> list[str]:
        """The kinds of these orders."""
        return [each.kind for each in self.orders()]

    def settle(self, order: WorkOrder, *, is_ok: bool = True, now: datetime = NOW) -> bool:
        """Report an order's result; returns whether the result is new."""
        result = Result(order.id, is_ok, "" if is_ok else "broken")
        answers = self.cloud.write(lambda tx: work.record(tx, AGENT.id, [result], now))
        return bool(answers[0][1])

    def settle_all(self) -> None:
        """Carry out all orders, and those that follow from them."""
        while found := self.orders():
            for each in found:
                self.settle(each)

    def sweep(self, now: datetime = LATER) -> int:
        """Time out late orders."""
        count: int = self.cloud.write(lambda tx: work.sweep(tx, TIMEOUT_S, now))
        return count

    # -- what is there -------------------------------------------------------------------------

    def volume(self, uuid: str) -> Volume:
        """Return a volume."""
        found: Volume = self.cloud.read(lambda tx: volumes.get(tx, uuid))
        return found

    def status(self, uuid: str) -> str | None:
        """Return a volume's status; ``None`` if it is gone."""
        found = self.cloud.read(lambda tx: volumes.by_uuids(tx, [uuid]))
        return found[uuid].status if uuid in found else None

    def attachments(self, server: str) -> list[Attachment]:
        """Return the attachments of a server."""
        found: list[Attachment] = self.cloud.read(lambda tx: attachments.of_servers(tx, [server]))
        return found

    def held(self, uuid: str) -> int:
        """Return the amount that a volume holds, on whatever provider."""
        query = sa.select(sa.func.coalesce(sa.func.sum(placement.allocations.c.used), 0))
        query = query.where(placement.allocations.c.consumer_id == uuid)
        return int(self.cloud.read(lambda tx: tx.execute(query).scalar()))
