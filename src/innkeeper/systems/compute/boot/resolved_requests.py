"""Resolved boot requests, and the test whether two requests resolve to the same spec.

Always true: while the database does not change, two requests with the same :data:`RequestKey`
resolve to the same spec. Only the seed, the time, and the number of servers that the quota allows
may differ.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from innkeeper.domain.compute import BootRequest, Flavor
from innkeeper.domain.images import Image
from innkeeper.domain.placing import RequestSpec
from innkeeper.snapshot.loader import seconds

RequestKey = tuple[str, str, str, str | None, str | None, str | None, bool]
"""The fields of a plain request that its spec depends on, except for the seed and the time."""


class ResolvedRequest(msgspec.Struct, frozen=True):
    """A boot request with everything that it refers to.

    ``facts`` is the flavor in the form that is stored with a server. ``filters`` are the filters
    that the request names instead of the default filters. ``unread`` has a message for each hint
    that no filter or weigher reads. The hints in ``request`` are stored with each server of the
    request.
    """

    request: BootRequest
    flavor: Flavor
    facts: Mapping[str, Any]
    image: Image | None
    spec: RequestSpec
    group_id: int | None = None
    filters: tuple[str, ...] | None = None
    unread: Mapping[str, str] = msgspec.field(default_factory=dict)

    def like(self, request: BootRequest, count: int) -> ResolvedRequest:
        """Return the resolved form of another request with the same :data:`RequestKey`.

        ``count`` is the number of servers that the quota of the other request's project allows.
        """
        if count != request.count_max:
            request = msgspec.structs.replace(request, count_max=count)
        spec = msgspec.structs.replace(
            self.spec, now_s=seconds(request.now), seed=request.seed, count=count
        )
        return msgspec.structs.replace(self, request=request, spec=spec)


def key_of(request: BootRequest) -> RequestKey | None:
    """Return the key of a plain request, or ``None`` if the request is not plain.

    A plain request has no hints, volumes or build plan entries, and stays in this zone. Requests
    with the same key resolve to the same spec, except for the seed, the time and the count.
    """
    is_plain = not (
        request.hints
        or request.has_volumes
        or request.is_volume_backed
        or request.entries
        or request.is_across_zones
        or request.may_be_elsewhere
        or request.destination is not None
        or request.definitions is not None
    )
    if not is_plain:
        return None
    return (
        request.project_id,
        request.user_id,
        request.flavor_id,
        request.image_id,
        request.availability_zone,
        request.forced_host,
        request.is_admin,
    )
