"""2.10: an administrator can ask for the keypairs of a user."""

from __future__ import annotations

from innkeeper.entrypoints.api.compute.accounts.schemas import (
    ANYTHING,
    CREATE_KEYPAIR_BEFORE_2_10,
)
from innkeeper.entrypoints.api.microversions import Edge, Version
from innkeeper.entrypoints.api.routing import Call

VERSION = Version(2, 10)
SUMMARY = "`user_id` names whose keypairs a request is about."


def _own(call: Call) -> None:
    call.query.pop("user_id", None)


EDGES = (
    Edge("GET", "/v2.1/os-keypairs", query_before=ANYTHING, up=_own),
    Edge("GET", "/v2.1/os-keypairs/{name}", query_before=ANYTHING, up=_own),
    Edge("DELETE", "/v2.1/os-keypairs/{name}", query_before=ANYTHING, up=_own),
    Edge("POST", "/v2.1/os-keypairs", body_before=CREATE_KEYPAIR_BEFORE_2_10),
)
