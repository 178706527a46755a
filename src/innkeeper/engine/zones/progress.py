"""Records which servers of a boot batch over the tree are built.

A boot batch is the set of all servers of one user's request.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

import msgspec

from innkeeper.domain.compute import BootRequest
from innkeeper.domain.ids import ServerId
from innkeeper.engine.zones.tree_request import TreeBoot


@dataclass(slots=True)
class Progress:
    """The progress of a boot batch. Servers are identified by their places in the request.

    If it is not known whether a server exists, its id is in ``doubtful``, and its place gets
    another id. No server has an id in ``gone``. The rows of doubtful and gone ids stay until the
    batch is decided, or until other rows are written for it. ``refusing`` has the ids of children
    that built less than half of what they last offered. ``begun_at`` is the time at which the first
    rows were written.
    """

    ids: list[ServerId]
    own: set[int] = field(default_factory=set)
    below: set[int] = field(default_factory=set)
    doubtful: list[str] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    refusing: set[str] = field(default_factory=set)
    begun_at: datetime | None = None

    @property
    def built(self) -> set[int]:
        """The places of all servers that are built."""
        return self.own | self.below

    @property
    def below_ids(self) -> list[str]:
        """The ids of the servers that children have built."""
        return [self.ids[place] for place in sorted(self.below)]

    @property
    def own_ids(self) -> list[ServerId]:
        """The ids of the servers that this zone itself has built."""
        return [self.ids[place] for place in sorted(self.own)]

    @property
    def rows(self) -> list[str]:
        """The ids of all rows that record servers of the batch in child zones."""
        return [*self.below_ids, *self.others]

    @property
    def others(self) -> list[str]:
        """The ids of the rows whose servers are not known to be built."""
        return [*self.doubtful, *self.gone]

    def is_kept_anyway(self, now: datetime, rest_s: float) -> bool:
        """Return whether every later repair would keep all servers.

        If so, the answer to the client need not wait for one more commit. No earlier repair can
        have decided about this batch, because repairs ignore batches that have changed within
        ``rest_s``.
        """
        is_prompt = self.begun_at is not None and now - self.begun_at < timedelta(seconds=rest_s)
        return is_prompt and not self.others


def of_places(boot: TreeBoot, places: Sequence[int], progress: Progress) -> TreeBoot:
    """Return the part of the request for the servers at these places."""
    request = boot.request
    part = msgspec.structs.replace(
        request,
        server_ids=tuple(progress.ids[place] for place in places),
        count_min=1,
        count_max=len(places),
        launch_indexes=tuple(request.launch_index(place) for place in places),
        is_numbered=request.numbers_names,
    )
    return replace(boot, request=part)


def name_of(request: BootRequest, place: int) -> str:
    """Return the name of the server at a place of the request."""
    number = request.launch_index(place) + 1
    return f"{request.name}-{number}" if request.numbers_names else request.name


def hostname_of(request: BootRequest, place: int) -> str | None:
    """Return the requested host name of the server at a place of the request, if there is one."""
    if request.hostname is None or not request.numbers_names:
        return request.hostname
    return f"{request.hostname}-{request.launch_index(place) + 1}"
