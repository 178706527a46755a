"""The changes that microversions made to keypairs."""

from __future__ import annotations

from innkeeper.domain.versions import Version
from innkeeper.entrypoints.api.compute.accounts.schemas import SPACED_NAME
from innkeeper.entrypoints.api.compute.versions.edges import closed_queries
from innkeeper.entrypoints.api.edges import (
    ANYTHING,
    body_without,
    edges,
    ignoring,
    parameters_without,
)
from innkeeper.entrypoints.api.microversions import Edge, Schema, Step
from innkeeper.entrypoints.api.routing import Answer, Call

ALL = "/v2.1/os-keypairs"
ONE = "/v2.1/os-keypairs/{name}"

QUERIED = (("GET", ALL), ("GET", ONE), ("DELETE", ONE))


def _drop_type(answer: Answer, call: Call) -> None:
    body = answer.body
    for each in body.get("keypairs", [body]):
        each["keypair"].pop("type", None)


def _created(answer: Answer, call: Call) -> None:
    answer.status = 200
    _drop_type(answer, call)


def _deleted(answer: Answer, call: Call) -> None:
    answer.status = 202


def _no_link(answer: Answer, call: Call) -> None:
    answer.body.pop("keypairs_links", None)


def _made_here(schema: Schema) -> Schema:
    """Return the older schema, in which the public key is optional.

    Before 2.92, the service generates the keypair if there is no public key.
    """
    keypair = schema["properties"]["keypair"]
    names = {**keypair["properties"], "name": SPACED_NAME}
    inner = {**keypair, "properties": names, "required": ["name"]}
    return {**schema, "properties": {"keypair": inner}}


STEPS = (
    Step(
        Version(2, 2),
        "Keypairs have a type. Creating a keypair returns 201, and deleting a keypair returns 204.",
        (
            *edges((("GET", ALL), ("GET", ONE)), down=_drop_type),
            Edge("POST", ALL, body_before=body_without("keypair", "type"), down=_created),
            Edge("DELETE", ONE, down=_deleted),
        ),
    ),
    Step(
        Version(2, 10),
        "`user_id` selects the user whose keypairs are requested.",
        (
            *edges(QUERIED, query_before=ANYTHING, up=ignoring("user_id")),
            Edge("POST", ALL, body_before=body_without("keypair", "user_id")),
        ),
    ),
    Step(
        Version(2, 35),
        "Keypairs are listed in pages, by `limit` and `marker`.",
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
    closed_queries(*QUERIED),
    Step(
        Version(2, 92),
        "Keypairs can only be imported. Their names may have dots and at signs.",
        (Edge("POST", ALL, body_before=_made_here),),
    ),
)
