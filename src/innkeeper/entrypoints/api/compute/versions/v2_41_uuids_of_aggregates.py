"""2.41: aggregates show their uuids, by which Placement knows them."""

from __future__ import annotations

from innkeeper.entrypoints.api.compute.grouping.aggregates import in_answer
from innkeeper.entrypoints.api.microversions import Edge, Version
from innkeeper.entrypoints.api.routing import Answer, Call

VERSION = Version(2, 41)
SUMMARY = "Aggregates show their uuids."
_ALL = "/v2.1/os-aggregates"
_ONE = "/v2.1/os-aggregates/{aggregate_id}"


def _drop(answer: Answer, call: Call) -> None:
    for aggregate in in_answer(answer):
        del aggregate["uuid"]


EDGES = (
    Edge("GET", _ALL, down=_drop),
    Edge("POST", _ALL, down=_drop),
    Edge("GET", _ONE, down=_drop),
    Edge("PUT", _ONE, down=_drop),
    Edge("POST", f"{_ONE}/action", down=_drop),
)
