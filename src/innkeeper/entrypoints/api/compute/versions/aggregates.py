"""The changes that microversions made to aggregates."""

from __future__ import annotations

from innkeeper.domain.versions import Version
from innkeeper.entrypoints.api.edges import dropping, edges, resources
from innkeeper.entrypoints.api.microversions import Step

ALL = "/v2.1/os-aggregates"
ONE = "/v2.1/os-aggregates/{aggregate_id}"
SHOWN = (("GET", ALL), ("POST", ALL), ("GET", ONE), ("PUT", ONE), ("POST", f"{ONE}/action"))

_drop_uuid = dropping(resources("aggregates", "aggregate"), "uuid")

STEPS = (
    Step(Version(2, 41), "Aggregates show their UUIDs.", edges(SHOWN, down=_drop_uuid)),
    Step(Version(2, 81), "Images can be cached on an aggregate's hosts (not supported here)."),
)
