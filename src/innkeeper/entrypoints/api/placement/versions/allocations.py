"""The changes that microversions made to allocations, usages and reshapes."""

from __future__ import annotations

from innkeeper.domain.errors import Invalid
from innkeeper.domain.ids import canonical_uuid
from innkeeper.domain.versions import Version
from innkeeper.entrypoints.api.edges import dropping, whole
from innkeeper.entrypoints.api.microversions import Edge, Step
from innkeeper.entrypoints.api.options import with_options
from innkeeper.entrypoints.api.placement.allocations import AllocationOptions
from innkeeper.entrypoints.api.placement.paths import (
    ALLOCATIONS,
    CONSUMER_ALLOCATIONS,
    PROVIDER_ALLOCATIONS,
    RESHAPER,
    USAGES,
)
from innkeeper.entrypoints.api.placement.schemas import (
    SHOW_USAGES_UNTYPED,
    consumer,
    consumers,
    listed,
    reshaping,
)
from innkeeper.entrypoints.api.routing import Answer, Call

BEFORE_1_38 = consumer(has_type=False)
BEFORE_1_34 = consumer(has_mappings=False, has_type=False)
BEFORE_1_28 = consumer(has_generation=False, has_mappings=False, has_type=False)
NOT_EMPTY_BEFORE_1_28 = consumer(
    may_be_empty=False, has_generation=False, has_mappings=False, has_type=False
)


def _key_by_provider(call: Call) -> None:
    lines = {}
    for line in call.body["allocations"]:
        uuid = canonical_uuid(line["resource_provider"]["uuid"])
        if uuid is None or uuid in lines:
            raise Invalid("The same resource provider is named twice.")
        lines[uuid] = {"resources": line["resources"]}
    call.body["allocations"] = lines


def _hide_in_lines(answer: Answer, _call: Call) -> None:
    for line in answer.body["allocations"].values():
        line.pop("consumer_generation", None)


def _add_up(answer: Answer, _call: Call) -> None:
    sums: dict[str, int] = {}
    for usage in answer.body["usages"].values():
        usage.pop("consumer_count")
        for name, amount in usage.items():
            sums[name] = sums.get(name, 0) + amount
    answer.body["usages"] = sums


_any_generation = with_options(AllocationOptions, asks_no_generation=True)

STEPS = (
    Step(
        Version(1, 8),
        "`project_id` and `user_id` are required in `PUT /allocations/{consumer}`.",
        (Edge("PUT", CONSUMER_ALLOCATIONS, body_before=listed(has_owner=False)),),
    ),
    Step(
        Version(1, 9), "`GET /usages` shows the usages of a project, or of one user in the project."
    ),
    Step(
        Version(1, 12),
        "`PUT /allocations/{consumer}` takes an object with providers as keys instead of a list. "
        "`GET /allocations/{consumer}` shows `project_id` and `user_id`.",
        (
            Edge(
                "PUT", CONSUMER_ALLOCATIONS, body_before=listed(has_owner=True), up=_key_by_provider
            ),
            Edge("GET", CONSUMER_ALLOCATIONS, down=dropping(whole, "project_id", "user_id")),
        ),
    ),
    Step(
        Version(1, 13),
        "`POST /allocations` replaces the allocations of several consumers, all or nothing.",
    ),
    Step(
        Version(1, 28),
        "`consumer_generation` is shown. Writes of allocations require it, and are rejected if it "
        "is outdated. A `PUT` with empty `allocations` deletes all allocations of the consumer.",
        (
            Edge(
                "PUT", CONSUMER_ALLOCATIONS, body_before=NOT_EMPTY_BEFORE_1_28, up=_any_generation
            ),
            Edge("POST", ALLOCATIONS, body_before=consumers(BEFORE_1_28), up=_any_generation),
            Edge("GET", CONSUMER_ALLOCATIONS, down=dropping(whole, "consumer_generation")),
            Edge("GET", PROVIDER_ALLOCATIONS, down=_hide_in_lines),
        ),
    ),
    Step(
        Version(1, 30),
        "`POST /reshaper` replaces inventories and allocations together, all or nothing.",
    ),
    Step(
        Version(1, 34),
        "Writes of allocations and reshapes accept `mappings`, and ignore it.",
        (
            Edge("PUT", CONSUMER_ALLOCATIONS, body_before=BEFORE_1_34),
            Edge("POST", ALLOCATIONS, body_before=consumers(BEFORE_1_34)),
            Edge("POST", RESHAPER, body_before=reshaping(BEFORE_1_34)),
        ),
    ),
    Step(
        Version(1, 38),
        "`consumer_type` is shown, and is required in writes of allocations and in reshapes. "
        "`GET /usages` groups usages by consumer type, and counts the consumers.",
        (
            Edge("PUT", CONSUMER_ALLOCATIONS, body_before=BEFORE_1_38),
            Edge("POST", ALLOCATIONS, body_before=consumers(BEFORE_1_38)),
            Edge("POST", RESHAPER, body_before=reshaping(BEFORE_1_38)),
            Edge("GET", CONSUMER_ALLOCATIONS, down=dropping(whole, "consumer_type")),
            Edge("GET", USAGES, query_before=SHOW_USAGES_UNTYPED, down=_add_up),
        ),
    ),
)
