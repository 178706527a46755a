"""What microversions changed about aggregates."""

from __future__ import annotations

from innkeeper.domain.versions import Version
from innkeeper.entrypoints.api.compute.grouping.aggregates import in_answer
from innkeeper.entrypoints.api.compute.versions.edges import dropping
from innkeeper.entrypoints.api.microversions import Edge, Step

ALL = "/v2.1/os-aggregates"
ONE = "/v2.1/os-aggregates/{aggregate_id}"

_drop_uuid = dropping(in_answer, "uuid")

STEPS = (
    Step(
        Version(2, 41),
        "Aggregates show their uuids.",
        (
            Edge("GET", ALL, down=_drop_uuid),
            Edge("POST", ALL, down=_drop_uuid),
            Edge("GET", ONE, down=_drop_uuid),
            Edge("PUT", ONE, down=_drop_uuid),
            Edge("POST", f"{ONE}/action", down=_drop_uuid),
        ),
    ),
    Step(Version(2, 81), "An aggregate's hosts can be asked to cache images; nobody here does."),
)
