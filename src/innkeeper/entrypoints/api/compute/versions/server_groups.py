"""The changes that microversions made to server groups."""

from __future__ import annotations

from collections.abc import Iterable

from innkeeper.domain.versions import Version
from innkeeper.entrypoints.api.compute.grouping.schemas import POLICIES
from innkeeper.entrypoints.api.compute.versions.edges import closed_queries
from innkeeper.entrypoints.api.edges import dropping, edges, resources
from innkeeper.entrypoints.api.microversions import Edge, Schema, Step
from innkeeper.entrypoints.api.routing import Answer, Call
from innkeeper.entrypoints.api.schema_types import NAME, closed

ALL = "/v2.1/os-server-groups"
ONE = "/v2.1/os-server-groups/{group_id}"
SHOWN = (("GET", ALL), ("GET", ONE), ("POST", ALL))


def _with_policies(allowed: Iterable[str]) -> Schema:
    """Return the older schema for creating a group, which has a list of policies."""
    item = {"type": "string", "enum": list(allowed)}
    policies = {"type": "array", "items": item, "minItems": 1, "maxItems": 1}
    inner = closed({"name": NAME, "policies": policies}, ("name", "policies"))
    return closed({"server_group": inner}, ("server_group",))


_groups = resources("server_groups", "server_group")

BEFORE_2_64 = _with_policies(POLICIES)
BEFORE_2_15 = _with_policies(each for each in POLICIES if not each.startswith("soft-"))


def _take_from_list(call: Call) -> None:
    group = call.body["server_group"]
    (group["policy"],) = group.pop("policies")


def _put_into_list(answer: Answer, call: Call) -> None:
    for group in _groups(answer):
        del group["rules"]
        group["policies"] = [group.pop("policy")]
        group["metadata"] = {}


STEPS = (
    Step(
        Version(2, 13),
        "Server groups show their projects and users.",
        edges(SHOWN, down=dropping(_groups, "project_id", "user_id")),
    ),
    Step(
        Version(2, 15),
        "Server groups can have the policies soft-affinity and soft-anti-affinity.",
        (Edge("POST", ALL, body_before=BEFORE_2_15),),
    ),
    Step(
        Version(2, 64),
        "Server groups have one policy, which can have rules. They no longer have metadata.",
        (
            Edge("POST", ALL, body_before=BEFORE_2_64, up=_take_from_list),
            *edges(SHOWN, down=_put_into_list),
        ),
    ),
    closed_queries(("GET", ALL)),
)
