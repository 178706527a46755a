"""Create volumes: choose pools, claim the capacity, and insert the rows of several volumes.

A batch is the volumes that one transaction creates.

Always true: volumes are planned one after the other on the same host table, so each decision sees
the amounts and the quota usage of the earlier volumes. All volumes of the batch share the reads and
writes. A refused volume does not affect the others. The host table is left unchanged. The table
gets the claims later, through the change feed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from innkeeper.domain.errors import Invalid, Refusal
from innkeeper.domain.ids import ConsumerUuid
from innkeeper.domain.placement import Claim, ConsumerClaim
from innkeeper.domain.slices import Volumes
from innkeeper.domain.volumes import (
    CONSUMER_TYPE,
    SourceImage,
    Volume,
    VolumeBusy,
    VolumeRequest,
    VolumeStatus,
    VolumeType,
    VolumeUsage,
)
from innkeeper.scheduling.volume_filters import VolumeSpec
from innkeeper.scheduling.volumes import PlacedVolume, VolumeDecision, give_back, take
from innkeeper.snapshot.columns import HostTable
from innkeeper.snapshot.follower import Follower
from innkeeper.store.queries.volumes import volumes as volume_rows
from innkeeper.store.transactions import Tx
from innkeeper.systems.placement import claims
from innkeeper.systems.volumes import choosing, quotas, types, volumes
from innkeeper.systems.volumes.types import TypeDemands


@dataclass(frozen=True, slots=True)
class NewVolume:
    """A volume to create. ``image`` is the image to copy, or ``None``."""

    request: VolumeRequest
    settings: Volumes
    image: SourceImage | None = None


@dataclass(frozen=True, slots=True)
class PlannedVolume:
    """A volume whose pool is chosen, but not claimed. ``zone`` is the volume's future zone."""

    new: NewVolume
    kind: VolumeType
    source: Volume | None
    spec: VolumeSpec
    decided: VolumeDecision
    zone: str

    @property
    def placed(self) -> PlacedVolume | None:
        """The chosen pool, or ``None`` if no pool is valid."""
        return self.decided.placed


@dataclass(frozen=True, slots=True)
class CreatedVolume:
    """A new volume, its type and its pool. A volume without a pool is in ``error``."""

    volume: Volume
    kind: VolumeType
    placed: PlacedVolume | None
    request_id: str | None


class VolumeBatch:
    """Plans volumes, and then writes them.

    This is a context manager. At the end of the context, the plans are undone in the host table.
    ``requests`` has the requests for all volumes that may be planned. A host can be chosen if it is
    up at the time of the latest request.
    """

    def __init__(
        self,
        tx: Tx,
        follower: Follower,
        requests: Sequence[VolumeRequest],
        silence_max_s: float,
        default_zone: str,
    ) -> None:
        self._tx = tx
        self._follower = follower
        self._table = follower.table
        self._silence_max_s = silence_max_s
        self._default_zone = default_zone
        self._now = max(each.now for each in requests)
        self._quotas = quotas.ProjectQuotas(tx, {each.project_id for each in requests})
        self._choices = choosing.Choices(tx, follower.table)
        self._kinds: dict[tuple[str, str, bool], tuple[VolumeType, TypeDemands]] = {}
        self._planned: list[PlannedVolume] = []

    def __enter__(self) -> VolumeBatch:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        # In reverse order, each undo restores the generations that the plan before it has seen.
        for each in reversed(self._planned):
            if each.placed is not None:
                give_back(self._table, each.spec, each.placed)
        self._planned.clear()

    def plan(self, new: NewVolume) -> PlannedVolume:
        """Choose a pool, and subtract the volume's size from the pool in the host table.

        Raises :class:`Invalid`, :class:`NotFound` or :class:`VolumeQuotaExceeded` for requests that
        cannot be met anywhere.
        """
        request, settings = new.request, new.settings
        source = None if request.source_uuid is None else _source(self._tx, request)
        size_gb = _size(request, source, new.image)
        kind, demands = self._type(request, source, settings)
        default = quotas.defaults(settings)
        self._quotas.demand(request.project_id, kind, default, size_gb=size_gb)
        spec = choosing.spec_of(
            self._tx,
            request,
            demands,
            size_gb,
            now=self._now,
            takes_hosts=settings.volumes_on_hosts,
            silence_max_s=self._silence_max_s,
            default_zone=self._default_zone,
        )
        decided = self._choices.decide(spec)
        placed = decided.placed
        zone = (spec.zone or self._default_zone) if placed is None else placed.zone
        planned = PlannedVolume(new, kind, source, spec, decided, zone)
        if placed is not None:
            # If this row differs from the database, the row must be read again after the rollback.
            self._follower.touch([placed.provider_id])
            take(self._table, spec, placed)
        self._planned.append(planned)
        self._quotas.add(request.project_id, kind, VolumeUsage(1, size_gb))
        return planned

    def _type(
        self, request: VolumeRequest, source: Volume | None, settings: Volumes
    ) -> tuple[VolumeType, TypeDemands]:
        if request.type_name is None and source is not None:
            kind = types.by_rows(self._tx, [source.type_id])[source.type_id]
            return kind, types.demands_of(kind.extra_specs)
        # All projects may use the default type.
        is_admin = request.is_admin or request.type_name is None
        key = (request.type_name or settings.default_volume_type, request.project_id, is_admin)
        found = self._kinds.get(key)
        if found is None:
            name, project_id, _ = key
            kind = types.named(self._tx, name, project_id, is_admin=is_admin)
            found = self._kinds[key] = (kind, types.demands_of(kind.extra_specs))
        return found

    def write(self) -> list[CreatedVolume]:
        """Claim and insert all planned volumes, which are then ``creating`` or in ``error``.

        Raises :class:`ProviderChanged` if a pool has changed since the host table was read. The
        caller must then roll back, because some volumes are already claimed.
        """
        planned, tx = self._planned, self._tx
        if not planned:
            return []
        ready = [_claim(self._table, each, each.placed) for each in planned if each.placed]
        for refusal in claims.commit_together(tx, ready, self._now) if ready else ():
            if refusal is not None:
                # Later decisions and quota checks assumed that this volume would be created.
                raise refusal
        volume_rows.insert_many(tx, [_values(each) for each in planned])
        self._quotas.write(tx)
        made = volumes.by_uuids(tx, [each.new.request.uuid for each in planned])
        return [_created(made, each) for each in planned]


def _created(made: Mapping[str, Volume], planned: PlannedVolume) -> CreatedVolume:
    request = planned.new.request
    return CreatedVolume(made[request.uuid], planned.kind, planned.placed, request.request_id)


def create_together(
    tx: Tx, follower: Follower, wanted: Sequence[NewVolume], silence_max_s: float, default_zone: str
) -> list[CreatedVolume | Refusal]:
    """Create volumes. A refused volume does not affect the others. See :class:`VolumeBatch`.

    If no pool is valid for a volume, the volume is created in ``error`` without an allocation. The
    volume's fault says why.
    """
    if not wanted:
        return []
    requests = [each.request for each in wanted]
    refused: dict[int, Refusal] = {}
    with VolumeBatch(tx, follower, requests, silence_max_s, default_zone) as batch:
        for index, each in enumerate(wanted):
            try:
                batch.plan(each)
            except Refusal as refusal:
                refused[index] = refusal
        created = iter(batch.write())
    return [refused[i] if i in refused else next(created) for i in range(len(wanted))]


def _claim(table: HostTable, planned: PlannedVolume, placed: PlacedVolume) -> Claim:
    request, spec = planned.new.request, planned.spec
    wanted = ConsumerClaim(
        uuid=ConsumerUuid(request.uuid),
        project_id=request.project_id,
        user_id=request.user_id,
        amounts={placed.provider_id: {table.class_ids[spec.class_name]: spec.amount}},
        seen=None,
        consumer_type=CONSUMER_TYPE,
        is_new_id=True,
    )
    return Claim((wanted,), {placed.provider_id: placed.generation})


def _values(planned: PlannedVolume) -> dict[str, Any]:
    request, source, image = planned.new.request, planned.source, planned.new.image
    placed, decided = planned.placed, planned.decided
    return {
        "uuid": request.uuid,
        "name": request.name,
        "description": request.description,
        "project_id": request.project_id,
        "user_id": request.user_id,
        "type_id": planned.kind.id,
        "size_gb": planned.spec.amount,
        "status": VolumeStatus.ERROR if placed is None else VolumeStatus.CREATING,
        "availability_zone": planned.zone,
        "provider_id": None if placed is None else placed.provider_id,
        "class_name": planned.spec.class_name,
        "host": None if placed is None else placed.host,
        "is_bootable": image is not None or (source is not None and source.is_bootable),
        "is_read_only": False,
        "is_multiattach": types.is_multiattach(planned.kind.extra_specs),
        "image_id": _image_id(image, source),
        "image_metadata": _image_metadata(image, source),
        "source_uuid": request.source_uuid,
        "metadata": dict(request.metadata),
        "fault": choosing.sentence(decided) if placed is None else None,
        "decision": choosing.report(decided),
        "created_at": request.now,
        "updated_at": request.now,
    }


def _source(tx: Tx, request: VolumeRequest) -> Volume:
    assert request.source_uuid is not None
    project_id = None if request.is_admin else request.project_id
    source = volumes.get(tx, request.source_uuid, project_id)
    if source.status not in (VolumeStatus.AVAILABLE, VolumeStatus.IN_USE):
        raise VolumeBusy(
            f"Invalid source volume {source.uuid}: its status must be available or in-use."
        )
    volumes.demand_kept(tx, source)
    return source


def _size(request: VolumeRequest, source: Volume | None, image: SourceImage | None) -> int:
    least = 0 if source is None else source.size_gb
    size_gb = least if request.size_gb is None else request.size_gb
    if size_gb < 1:
        raise Invalid("Invalid input received: the size of a volume must be at least 1 GiB.")
    if source is not None and size_gb < least:
        raise Invalid(
            f"Invalid input received: Volume size '{size_gb}'GB cannot be smaller than original "
            f"volume size {least}GB. They must be >= original volume size."
        )
    if image is not None and size_gb < image.min_disk_gb:
        raise Invalid(
            f"Invalid input received: Volume size {size_gb}GB cannot be smaller than the image "
            f"minDisk size {image.min_disk_gb}GB."
        )
    if image is not None and size_gb < image.size_gb:
        raise Invalid(
            f"Invalid input received: Size of specified image {image.size_gb}GB is larger than "
            f"volume size {size_gb}GB."
        )
    return size_gb


def _image_id(image: SourceImage | None, source: Volume | None) -> str | None:
    if image is not None:
        return image.id
    return None if source is None else source.image_id


def _image_metadata(image: SourceImage | None, source: Volume | None) -> Mapping[str, Any]:
    if image is not None:
        return dict(image.metadata)
    return {} if source is None else dict(source.image_metadata)
