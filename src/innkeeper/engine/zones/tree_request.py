"""Requests for servers, and the bodies of the requests that child zones get for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec
from msgspec.structs import replace

from innkeeper.domain.compute import BootRequest, Definitions
from innkeeper.domain.identity import RequestContext
from innkeeper.domain.zone_tree import Hop

ZONE = "zone"
"""The key under which zones add data to the user's body."""
_OF_THIS_ZONE = frozenset(
    {"min_count", "max_count", "return_reservation_id", "reservation_id", "blob", "adminPass"}
)
"""The keys of a boot that children do not get. The zone where the boot comes in answers with the
password, and no child uses it."""


@dataclass(frozen=True, slots=True)
class TreeBoot:
    """A request for servers.

    ``raw_body`` is the checked body that the user sent. ``headers`` name the body's microversion.
    ``caller`` has the ids of the user and project in this zone. If the objects that the request
    names were already read, ``definitions`` has them.
    """

    request: BootRequest
    raw_body: bytes
    headers: Mapping[str, str]
    caller: RequestContext
    definitions: Definitions | None = None

    @property
    def hop(self) -> Hop | None:
        """The hop of a request from a zone parent, or ``None`` for other requests."""
        return self.caller.hop

    def caller_below(self) -> RequestContext:
        """Return the caller in the form that children get; see :func:`caller_below`."""
        return caller_below(self.caller)

    def select_body(self, definitions: Definitions, count: int) -> dict[str, object]:
        """Return the body that asks a child for offers for ``count`` servers."""
        return self._body_below(
            {"min_count": 1, "max_count": count}, {"definitions": msgspec.to_builtins(definitions)}
        )

    def create_body(
        self, definitions: Definitions, entries: Sequence[Mapping[str, object]]
    ) -> dict[str, object]:
        """Return the body that makes a child build the servers of these entries."""
        told = {
            "definitions": msgspec.to_builtins(definitions),
            "batch_id": self.request.batch_id,
            "entries": entries,
        }
        return self._body_below({}, told)

    def placing_body(self, definitions: Definitions, ids: Sequence[str]) -> dict[str, object]:
        """Return the body that makes a child choose hosts for these servers, and build them."""
        request = self.request
        told = {
            "definitions": msgspec.to_builtins(definitions),
            "batch_id": request.batch_id,
            "servers": ids,
            "is_numbered": request.numbers_names,
        }
        counts = {"min_count": min(request.count_min, len(ids)), "max_count": len(ids)}
        return self._body_below(counts, told)

    def _body_below(
        self, counts: Mapping[str, object], told: Mapping[str, object]
    ) -> dict[str, object]:
        # The body is decoded only here, because most zones have no child zones.
        body = msgspec.json.decode(self.raw_body)
        server = body["server"]
        assert isinstance(server, Mapping), "the body was checked"
        kept = {name: value for name, value in server.items() if name not in _OF_THIS_ZONE}
        return {**body, "server": {**kept, **counts}, ZONE: told}


def caller_below(context: RequestContext) -> RequestContext:
    """Return the caller of a request, in the form that children get.

    Ids of a zone parent's projects and users keep the prefix that they have in this zone. A child
    adds its own prefix, so projects of two zone parents stay apart in the child, too.
    """
    return replace(context, hop=None)
