"""2.2: keypairs have a type, and what was created or deleted is told by the status."""

from __future__ import annotations

from innkeeper.entrypoints.api.compute.accounts.keypairs import in_answer
from innkeeper.entrypoints.api.compute.accounts.schemas import CREATE_KEYPAIR_BEFORE_2_2
from innkeeper.entrypoints.api.microversions import Edge, Version
from innkeeper.entrypoints.api.routing import Answer, Call

VERSION = Version(2, 2)
SUMMARY = "Keypairs have a type; creating one answers 201 and deleting one 204."


def _drop_type(answer: Answer, call: Call) -> None:
    for keypair in in_answer(answer):
        keypair.pop("type", None)


def _created(answer: Answer, call: Call) -> None:
    answer.status = 200
    _drop_type(answer, call)


def _deleted(answer: Answer, call: Call) -> None:
    answer.status = 202


EDGES = (
    Edge("GET", "/v2.1/os-keypairs", down=_drop_type),
    Edge("GET", "/v2.1/os-keypairs/{name}", down=_drop_type),
    Edge("POST", "/v2.1/os-keypairs", body_before=CREATE_KEYPAIR_BEFORE_2_2, down=_created),
    Edge("DELETE", "/v2.1/os-keypairs/{name}", down=_deleted),
)
