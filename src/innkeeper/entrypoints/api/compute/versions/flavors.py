"""The changes that microversions made to flavors, their access and their extra specs."""

from __future__ import annotations

from innkeeper.domain.versions import Version
from innkeeper.entrypoints.api.compute.flavors.access import AccessOptions
from innkeeper.entrypoints.api.compute.flavors.extra_specs import ExtraSpecOptions
from innkeeper.entrypoints.api.compute.versions.edges import closed_queries
from innkeeper.entrypoints.api.edges import body_without, dropping, edges, resources
from innkeeper.entrypoints.api.microversions import Edge, Step
from innkeeper.entrypoints.api.options import with_options
from innkeeper.entrypoints.api.routing import Answer, Call

ALL = "/v2.1/flavors"
DETAIL = "/v2.1/flavors/detail"
ONE = "/v2.1/flavors/{flavor_id}"
EXTRA_SPECS = f"{ONE}/os-extra_specs"
LISTS = (("GET", ALL), ("GET", DETAIL))
SHOWN = (("GET", DETAIL), ("GET", ONE), ("POST", ALL), ("PUT", ONE))

_flavors = resources("flavors", "flavor")
_drop_description = dropping(_flavors, "description")
_unchecked = with_options(ExtraSpecOptions, is_checked=False)


def _empty_swap(answer: Answer, call: Call) -> None:
    for flavor in _flavors(answer):
        if flavor.get("swap") == 0:
            flavor["swap"] = ""


STEPS = (
    Step(
        Version(2, 7),
        "Granting a project access to a public flavor is rejected with a 409.",
        (Edge("POST", f"{ONE}/action", up=with_options(AccessOptions, takes_public=True)),),
    ),
    Step(
        Version(2, 55),
        "Flavors have a description. `PUT /flavors/{id}` replaces the description.",
        (
            *edges((*LISTS, ("GET", ONE)), down=_drop_description),
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
        edges(SHOWN, down=dropping(_flavors, "extra_specs")),
    ),
    closed_queries(*LISTS),
    Step(
        Version(2, 75), "A flavor without swap shows `swap` as 0.", edges(SHOWN, down=_empty_swap)
    ),
    Step(
        Version(2, 86),
        "Extra specs that the scheduler reads are validated when they are set.",
        edges((("POST", EXTRA_SPECS), ("PUT", f"{EXTRA_SPECS}/{{key}}")), up=_unchecked),
    ),
)
