"""2.55: flavors have a description, which can be replaced."""

from __future__ import annotations

from innkeeper.entrypoints.api.compute.flavors.flavors import in_answer
from innkeeper.entrypoints.api.compute.flavors.schemas import CREATE_BEFORE_DESCRIPTION
from innkeeper.entrypoints.api.microversions import Edge, Version
from innkeeper.entrypoints.api.routing import Answer, Call

VERSION = Version(2, 55)
SUMMARY = "Flavors have a description; PUT /flavors/{id} replaces it."


def _drop(answer: Answer, call: Call) -> None:
    for flavor in in_answer(answer):
        flavor.pop("description", None)


EDGES = (
    Edge("GET", "/v2.1/flavors", down=_drop),
    Edge("GET", "/v2.1/flavors/detail", down=_drop),
    Edge("GET", "/v2.1/flavors/{flavor_id}", down=_drop),
    Edge("POST", "/v2.1/flavors", body_before=CREATE_BEFORE_DESCRIPTION, down=_drop),
)
