"""Allocations are written as they are shown: an object whose keys are providers."""

from __future__ import annotations

from innkeeper.domain.errors import Invalid
from innkeeper.domain.ids import canonical_uuid
from innkeeper.entrypoints.api.microversions import Edge, Version
from innkeeper.entrypoints.api.placement.schemas import listed
from innkeeper.entrypoints.api.placement.versions.shapes import (
    CANDIDATES,
    CONSUMER_ALLOCATIONS,
    without_in_body,
)
from innkeeper.entrypoints.api.routing import Answer, Call

VERSION = Version(1, 12)
SUMMARY = (
    "`PUT /allocations/{consumer}` takes an object with providers as keys instead of a list; "
    "`GET` shows `project_id` and `user_id`; allocation candidates come in the same form."
)


def _key(call: Call) -> None:
    lines = {}
    for line in call.body["allocations"]:
        uuid = canonical_uuid(line["resource_provider"]["uuid"])
        if uuid is None or uuid in lines:
            raise Invalid("The same resource provider is named twice.")
        lines[uuid] = {"resources": line["resources"]}
    call.body["allocations"] = lines


def _list(answer: Answer, _call: Call) -> None:
    for request in answer.body["allocation_requests"]:
        request["allocations"] = [
            {"resource_provider": {"uuid": uuid}, **line}
            for uuid, line in request["allocations"].items()
        ]


EDGES = (
    Edge("PUT", CONSUMER_ALLOCATIONS, body_before=listed(has_owner=True), up=_key),
    Edge("GET", CONSUMER_ALLOCATIONS, down=without_in_body("project_id", "user_id")),
    Edge("GET", CANDIDATES, down=_list),
)
