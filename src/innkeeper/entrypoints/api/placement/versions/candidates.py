"""The changes that microversions made to allocation candidates."""

from __future__ import annotations

from innkeeper.domain.errors import Invalid
from innkeeper.domain.versions import Version
from innkeeper.entrypoints.api.edges import Down, Up
from innkeeper.entrypoints.api.microversions import Edge, SchemaBefore, Step
from innkeeper.entrypoints.api.options import with_options
from innkeeper.entrypoints.api.placement.candidate_queries import (
    MEMBER_OF,
    NAME,
    REQUIRED,
    RESOURCES,
    grouped,
    plain,
)
from innkeeper.entrypoints.api.placement.candidates import CandidateOptions
from innkeeper.entrypoints.api.placement.paths import CANDIDATES
from innkeeper.entrypoints.api.placement.queries import by_suffix, parse_required, parse_resources
from innkeeper.entrypoints.api.routing import Answer, Call

NUMBER = "[1-9][0-9]*"
"""The pattern of a group's suffix in versions in which groups had no names."""


def _listed(answer: Answer, _call: Call) -> None:
    for request in answer.body["allocation_requests"]:
        request["allocations"] = [
            {"resource_provider": {"uuid": uuid}, **line}
            for uuid, line in request["allocations"].items()
        ]


def _hide_traits(answer: Answer, _call: Call) -> None:
    for summary in answer.body["provider_summaries"].values():
        del summary["traits"]


def _keep_requested(answer: Answer, call: Call) -> None:
    values = [values[-1] for _, values in by_suffix(call.query, "resources")]
    requested = {name for text in values for name in parse_resources(text)}
    for summary in answer.body["provider_summaries"].values():
        resources = summary["resources"]
        summary["resources"] = {name: resources[name] for name in resources if name in requested}


def _keep_named(answer: Answer, _call: Call) -> None:
    body = answer.body
    requests = body["allocation_requests"]
    named = {uuid for request in requests for uuid in request["allocations"]}
    body["provider_summaries"] = {
        uuid: {"resources": summary["resources"], "traits": summary["traits"]}
        for uuid, summary in body["provider_summaries"].items()
        if uuid in named
    }


def _unmap(answer: Answer, _call: Call) -> None:
    for request in answer.body["allocation_requests"]:
        del request["mappings"]


def _refuse_bare_groups(call: Call) -> None:
    query = call.query
    served = {suffix for suffix, _ in by_suffix(query, "resources")}
    traits = [
        f"required{suffix}"
        for suffix, values in by_suffix(query, "required")
        if suffix not in served and parse_required(values[-1:])[0]
    ]
    if traits:
        raise Invalid(
            "All traits parameters must be associated with resources.  Found the following "
            f"orphaned traits keys: {', '.join(traits)}"
        )
    aggregates = [
        f"member_of{suffix}" for suffix, _ in by_suffix(query, "member_of") if suffix not in served
    ]
    if aggregates:
        raise Invalid(
            "All member_of parameters must be associated with resources. Found the following "
            f"orphaned member_of keys: {', '.join(aggregates)}"
        )
    for word in ("required", "in_tree"):
        if any(suffix not in served for suffix, _ in by_suffix(query, word)):
            raise Invalid("All request groups must specify resources.")
    if not served:
        raise Invalid("At least one request group (`resources` or `resources{$S}`) is required.")


def _step(
    minor: int,
    summary: str,
    *,
    query_before: SchemaBefore | None = None,
    up: Up | None = None,
    down: Down | None = None,
) -> Step:
    edge = Edge("GET", CANDIDATES, query_before=query_before, up=up, down=down)
    return Step(Version(1, minor), summary, (edge,))


STEPS = (
    Step(
        Version(1, 10),
        "`GET /allocation_candidates` lists ways to serve a request. Each candidate is a "
        "complete set of allocations. Summaries describe the providers.",
    ),
    _step(
        12,
        "The allocations of a candidate are an object with providers as keys, not a list.",
        down=_listed,
    ),
    _step(16, "`GET /allocation_candidates` accepts `limit`.", query_before=plain()),
    _step(
        17,
        "`GET /allocation_candidates` accepts `required`. The summaries of providers show "
        "`traits`.",
        query_before=plain("limit"),
        down=_hide_traits,
    ),
    _step(
        21,
        "`GET /allocation_candidates` accepts `member_of`: an aggregate, or `in:` and several "
        "aggregates.",
        query_before=plain("limit", REQUIRED),
    ),
    _step(
        25,
        "`GET /allocation_candidates` accepts numbered groups (`resources1`, `required1`, "
        "`member_of1`). One provider serves a whole group. `group_policy` determines whether "
        "the same provider may serve several groups.",
        query_before=plain("limit", REQUIRED, MEMBER_OF),
    ),
    _step(
        27,
        "The summaries of allocation candidates show all classes of a provider, not only those "
        "of the request.",
        down=_keep_requested,
    ),
    _step(
        29,
        "Allocation candidates may use several providers of a tree. The summaries contain every "
        "provider of each tree, with its parent and root.",
        up=with_options(CandidateOptions, takes_one_of_a_tree=True),
        down=_keep_named,
    ),
    _step(
        31,
        "`GET /allocation_candidates` accepts `in_tree`: only providers in the same tree as the "
        "given provider are used.",
        query_before=grouped(
            NUMBER, "limit", "group_policy", words=(RESOURCES, REQUIRED, MEMBER_OF)
        ),
    ),
    _step(
        33,
        "Groups in `GET /allocation_candidates` may have names (`resources_NET`), not only "
        "numbers.",
        query_before=grouped(NUMBER, "limit", "group_policy"),
    ),
    _step(
        34,
        "The `mappings` of an allocation candidate show which providers serve each group.",
        down=_unmap,
    ),
    _step(
        35,
        "`GET /allocation_candidates` accepts `root_required`: required and forbidden traits of "
        "the root provider.",
        query_before=grouped(NAME, "limit", "group_policy"),
    ),
    _step(
        36,
        "`GET /allocation_candidates` accepts `same_subtree`, a list of groups. One of the "
        "groups' providers must be an ancestor of the others. The listed groups need not request "
        "amounts.",
        query_before=grouped(NAME, "limit", "group_policy", "root_required"),
        up=_refuse_bare_groups,
    ),
)
