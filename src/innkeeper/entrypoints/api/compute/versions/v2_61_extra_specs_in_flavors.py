"""2.61: a flavor is shown with its extra specs, for whoever may see them."""

from __future__ import annotations

from innkeeper.entrypoints.api.compute.flavors.flavors import in_answer
from innkeeper.entrypoints.api.microversions import Edge, Version
from innkeeper.entrypoints.api.routing import Answer, Call

VERSION = Version(2, 61)
SUMMARY = "A flavor is shown with its extra specs."


def _drop(answer: Answer, call: Call) -> None:
    for flavor in in_answer(answer):
        flavor.pop("extra_specs", None)


EDGES = (
    Edge("GET", "/v2.1/flavors/detail", down=_drop),
    Edge("GET", "/v2.1/flavors/{flavor_id}", down=_drop),
    Edge("POST", "/v2.1/flavors", down=_drop),
    Edge("PUT", "/v2.1/flavors/{flavor_id}", down=_drop),
)
