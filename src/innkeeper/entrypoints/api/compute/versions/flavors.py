"""What microversions changed about flavors, their access and their extra specs."""

from __future__ import annotations

from innkeeper.domain.versions import Version
from innkeeper.entrypoints.api.compute.flavors.access import AccessOptions
from innkeeper.entrypoints.api.compute.flavors.extra_specs import ExtraSpecOptions
from innkeeper.entrypoints.api.compute.flavors.flavors import in_answer
from innkeeper.entrypoints.api.compute.versions.edges import (
    CLOSED_QUERIES,
    body_without,
    dropping,
    opened,
)
from innkeeper.entrypoints.api.microversions import Edge, Step
from innkeeper.entrypoints.api.options import with_options
from innkeeper.entrypoints.api.routing import Answer, Call

ALL = "/v2.1/flavors"
DETAIL = "/v2.1/flavors/detail"
ONE = "/v2.1/flavors/{flavor_id}"
EXTRA_SPECS = f"{ONE}/os-extra_specs"

_drop_description = dropping(in_answer, "description")
_drop_extra_specs = dropping(in_answer, "extra_specs")
_unchecked = with_options(ExtraSpecOptions, is_checked=False)


def _empty_swap(answer: Answer, call: Call) -> None:
    for flavor in in_answer(answer):
        if flavor.get("swap") == 0:
            flavor["swap"] = ""


STEPS = (
    Step(
        Version(2, 7),
        "Giving a public flavor to a project is a conflict.",
        (Edge("POST", f"{ONE}/action", up=with_options(AccessOptions, takes_public=True)),),
    ),
    Step(
        Version(2, 55),
        "Flavors have a description; PUT /flavors/{id} replaces it.",
        (
            Edge("GET", ALL, down=_drop_description),
            Edge("GET", DETAIL, down=_drop_description),
            Edge("GET", ONE, down=_drop_description),
            Edge(
                "POST",
                ALL,
                body_before=body_without("flavor", "description"),
                down=_drop_description,
            ),
        ),
    ),
    Step(
        Version(2, 61),
        "A flavor is shown with its extra specs.",
        (
            Edge("GET", DETAIL, down=_drop_extra_specs),
            Edge("GET", ONE, down=_drop_extra_specs),
            Edge("POST", ALL, down=_drop_extra_specs),
            Edge("PUT", ONE, down=_drop_extra_specs),
        ),
    ),
    Step(
        Version(2, 75),
        CLOSED_QUERIES,
        (Edge("GET", ALL, query_before=opened), Edge("GET", DETAIL, query_before=opened)),
    ),
    Step(
        Version(2, 75),
        "A flavor without swap says 0.",
        (
            Edge("GET", DETAIL, down=_empty_swap),
            Edge("GET", ONE, down=_empty_swap),
            Edge("POST", ALL, down=_empty_swap),
            Edge("PUT", ONE, down=_empty_swap),
        ),
    ),
    Step(
        Version(2, 86),
        "Extra specs that placing reads are checked when they are set.",
        (
            Edge("POST", EXTRA_SPECS, up=_unchecked),
            Edge("PUT", f"{EXTRA_SPECS}/{{key}}", up=_unchecked),
        ),
    ),
)
