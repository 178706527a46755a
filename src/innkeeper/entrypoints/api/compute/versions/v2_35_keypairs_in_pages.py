"""2.35: keypairs are listed in pages."""

from __future__ import annotations

from innkeeper.entrypoints.api.compute.accounts.schemas import KEYPAIR_OPEN
from innkeeper.entrypoints.api.microversions import Edge, Version
from innkeeper.entrypoints.api.routing import Answer, Call

VERSION = Version(2, 35)
SUMMARY = "`limit` and `marker` page through keypairs."


def _first_page(call: Call) -> None:
    call.query.pop("limit", None)
    call.query.pop("marker", None)


def _no_link(answer: Answer, call: Call) -> None:
    answer.body.pop("keypairs_links", None)


EDGES = (
    Edge(
        "GET",
        "/v2.1/os-keypairs",
        query_before=KEYPAIR_OPEN,
        up=_first_page,
        down=_no_link,
    ),
)
