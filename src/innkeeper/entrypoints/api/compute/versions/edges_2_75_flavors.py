"""What 2.75 changed about flavors: the empty text in place of no swap, and open queries."""

from __future__ import annotations

from innkeeper.entrypoints.api.compute.flavors.flavors import in_answer
from innkeeper.entrypoints.api.compute.flavors.schemas import LIST_OPEN
from innkeeper.entrypoints.api.microversions import Edge
from innkeeper.entrypoints.api.routing import Answer, Call


def _empty_swap(answer: Answer, call: Call) -> None:
    for flavor in in_answer(answer):
        if flavor.get("swap") == 0:
            flavor["swap"] = ""


EDGES = (
    Edge("GET", "/v2.1/flavors", query_before=LIST_OPEN),
    Edge("GET", "/v2.1/flavors/detail", query_before=LIST_OPEN, down=_empty_swap),
    Edge("GET", "/v2.1/flavors/{flavor_id}", down=_empty_swap),
    Edge("POST", "/v2.1/flavors", down=_empty_swap),
    Edge("PUT", "/v2.1/flavors/{flavor_id}", down=_empty_swap),
)
