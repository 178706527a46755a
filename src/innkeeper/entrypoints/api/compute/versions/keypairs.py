"""What microversions changed about keypairs."""

from __future__ import annotations

from innkeeper.domain.versions import Version
from innkeeper.entrypoints.api.compute.accounts.keypairs import in_answer
from innkeeper.entrypoints.api.compute.accounts.schemas import SPACED_NAME
from innkeeper.entrypoints.api.compute.versions.edges import (
    ANYTHING,
    CLOSED_QUERIES,
    body_without,
    dropping,
    ignoring,
    opened,
    parameters_without,
)
from innkeeper.entrypoints.api.microversions import Edge, Schema, Step
from innkeeper.entrypoints.api.routing import Answer, Call

ALL = "/v2.1/os-keypairs"
ONE = "/v2.1/os-keypairs/{name}"

_drop_type = dropping(in_answer, "type")
_own = ignoring("user_id")


def _created(answer: Answer, call: Call) -> None:
    answer.status = 200
    _drop_type(answer, call)


def _deleted(answer: Answer, call: Call) -> None:
    answer.status = 202


def _no_link(answer: Answer, call: Call) -> None:
    answer.body.pop("keypairs_links", None)


def _made_here(schema: Schema) -> Schema:
    """A public key was optional: without one the service made a pair."""
    keypair = schema["properties"]["keypair"]
    names = {**keypair["properties"], "name": SPACED_NAME}
    inner = {**keypair, "properties": names, "required": ["name"]}
    return {**schema, "properties": {"keypair": inner}}


STEPS = (
    Step(
        Version(2, 2),
        "Keypairs have a type; creating one answers 201 and deleting one 204.",
        (
            Edge("GET", ALL, down=_drop_type),
            Edge("GET", ONE, down=_drop_type),
            Edge("POST", ALL, body_before=body_without("keypair", "type"), down=_created),
            Edge("DELETE", ONE, down=_deleted),
        ),
    ),
    Step(
        Version(2, 10),
        "`user_id` names whose keypairs a request is about.",
        (
            Edge("GET", ALL, query_before=ANYTHING, up=_own),
            Edge("GET", ONE, query_before=ANYTHING, up=_own),
            Edge("DELETE", ONE, query_before=ANYTHING, up=_own),
            Edge("POST", ALL, body_before=body_without("keypair", "user_id")),
        ),
    ),
    Step(
        Version(2, 35),
        "`limit` and `marker` page through keypairs.",
        (
            Edge(
                "GET",
                ALL,
                query_before=parameters_without("limit", "marker"),
                up=ignoring("limit", "marker"),
                down=_no_link,
            ),
        ),
    ),
    Step(
        Version(2, 75),
        CLOSED_QUERIES,
        tuple(
            Edge(method, path, query_before=opened)
            for method, path in (("GET", ALL), ("GET", ONE), ("DELETE", ONE))
        ),
    ),
    Step(
        Version(2, 92),
        "Keypairs are imported only; their names may have dots and at signs.",
        (Edge("POST", ALL, body_before=_made_here),),
    ),
)
