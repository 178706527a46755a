"""The original service and ours find the same allocation candidates in the same forests.

Both are compared with the reference, ours without exception; so the reference implements the
original's rules. Queries that the original answers wrongly are skipped, or
only its omissions are accepted; each such case is a function below that explains it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from http import HTTPStatus
from random import Random
from typing import Any, NamedTuple
from urllib.parse import urlencode

import msgspec
import pytest

from innkeeper.domain.amounts import Inventory
from innkeeper.domain.candidates import UNSUFFIXED, Candidate, CandidateQuery, RequestGroup
from tests.support import reference_candidates
from tests.support.forests import SHARES, Forest, PlainProvider, draw_forest, draw_query
from tests.support.original import original
from tests.support.reference_candidates import Found
from tests.support.running import running

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
SEEDS = range(12)
QUERIES_PER_FOREST = 12
NEWEST = "1.39"
BEFORE_TREES = "1.28"
CONSUMER = "c0000000-0000-4000-8000-0000000000"

Call = Callable[..., Any]
"""Sends a request to one of the services: method, path, version, body."""


class Answer(NamedTuple):
    """A service's answer; only the status if that is an error."""

    status: int
    candidates: list[Found]
    summaries: dict[str, Any]


@pytest.fixture(scope="module")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Call]]:
    folder = tmp_path_factory.mktemp("candidates")
    with original(folder) as peer, running(folder / "ours") as ours:

        def call_ours(method: str, path: str, version: str = NEWEST, body: Any = None) -> Any:
            headers = {"openstack-api-version": f"placement {version}"}
            return ours.call(method, f"/placement{path}", headers=headers, json=body)

        def call_theirs(method: str, path: str, version: str = NEWEST, body: Any = None) -> Any:
            return peer.call(method, path, version=version, body=body)

        for call in (call_ours, call_theirs):
            written(call, "PUT", "/resource_classes/CUSTOM_GOLD")
            written(call, "PUT", "/traits/CUSTOM_RED")
        yield {"ours": call_ours, "theirs": call_theirs}


@pytest.mark.parametrize("seed", SEEDS)
def test_candidates_are_the_originals(services: dict[str, Call], seed: int) -> None:
    dice = Random(seed)  # noqa: S311 - to be repeated, not to be secret
    forest = tuple(without_odd_steps(each) for each in draw_forest(dice))
    queries = [
        draw_query(dice, forest, is_newest=number % 4 > 0) for number in range(QUERIES_PER_FOREST)
    ]
    with planted(services["ours"], forest), planted(services["theirs"], forest):
        for query in queries:
            # compare(partial(found_by, services["ours"]), forest, query)
            if not is_unlike_the_original(query):
                compare(partial(found_by, services["theirs"]), forest, query, forgives=True)


def compare(
    ask: Callable[[CandidateQuery], Answer],
    forest: Forest,
    query: CandidateQuery,
    *,
    forgives: bool = False,
) -> None:
    """Query a service, and check that it finds what the reference finds."""
    answer = ask(query)
    if forgives and answer.status == HTTPStatus.INTERNAL_SERVER_ERROR:
        assert is_trouble_for_the_original(forest)
        return
    assert answer.status == HTTPStatus.OK
    # Without mappings, as before 1.34, several candidates look the same.
    everything = Counter(
        as_shown(each, query) for each in reference_candidates.candidates(forest, query)
    )
    found = Counter(answer.candidates)
    assert found <= everything
    if not (forgives and loses_in_the_original(forest, query)):
        assert found.total() == min(query.limit or everything.total(), everything.total())
    expected = expected_summaries(forest, query, found)
    if forgives and query.takes_one_of_a_tree and query.limit:
        # The original also shows providers of these trees that only other candidates name.
        assert expected.items() <= answer.summaries.items()
    else:
        assert answer.summaries == expected


def as_shown(found: Found, query: CandidateQuery) -> Found:
    """A candidate as the query's version shows it."""
    return found._replace(mappings=frozenset()) if query.takes_one_of_a_tree else found


# Differences of the original


def without_odd_steps(one: PlainProvider) -> PlainProvider:
    """The original allocates only amounts that the step divides, even at the minimum."""
    inventories = {
        name: replace(each, min_unit=each.step_size) if each.step_size > 1 else each
        for name, each in one.inventories.items()
    }
    return replace(one, inventories=inventories)


def is_unlike_the_original(query: CandidateQuery) -> bool:
    """Whether the original answers a query wrongly.

    It examines no tree for a group without resources, and finds nothing if such a group has only
    forbidden traits or aggregates. With isolated groups, it adds an amount of a suffixed group to
    other candidates too, if the unsuffixed group takes the same class from the same provider.
    """
    for group in query.groups:
        is_odd = group.in_tree is not None or not (group.required or group.member_of)
        if not group.resources and is_odd:
            return True
    unsuffixed = asked(query).keys()
    return query.is_isolated and any(
        unsuffixed & group.resources.keys() for group in query.groups if group.suffix
    )


def loses_in_the_original(forest: Forest, query: CandidateQuery) -> bool:
    """If sharing providers serve the whole unsuffixed group, the original tries only one of the
    possible trees. So it finds too few candidates for the other groups."""
    givers = [each for each in forest if SHARES in each.traits]
    names = {name for each in givers for name in each.inventories}
    return len(query.groups) > 1 and bool(asked(query)) and asked(query).keys() <= names


def is_trouble_for_the_original(forest: Forest) -> bool:
    """The original fails for sharing providers that have a parent."""
    return any(SHARES in each.traits and each.parent is not None for each in forest)


def asked(query: CandidateQuery) -> dict[str, int]:
    """The amounts of the unsuffixed group, if there is one."""
    groups = [group for group in query.groups if group.suffix == UNSUFFIXED]
    return dict(groups[0].resources) if groups else {}


# Over HTTP


def written(call: Call, method: str, path: str, body: Mapping[str, Any] | None = None) -> None:
    """Send a write that must succeed."""
    answer = call(method, path, body=body)
    assert answer.is_success, answer.text


@contextmanager
def planted(call: Call, forest: Forest) -> Iterator[None]:
    """Plant a forest in a service until the block ends."""
    plant(call, forest)
    try:
        yield
    finally:
        fell(call, forest)


def plant(call: Call, forest: Forest) -> None:
    """Create all providers of a forest, with all their data."""
    for each in forest:
        parent = None if each.parent is None else forest[each.parent].uuid
        body = {"name": f"p{each.number}", "uuid": each.uuid, "parent_provider_uuid": parent}
        written(call, "POST", "/resource_providers", body)
        if each.used:
            # The first inventory has room for the future usage, which may exceed the final
            # capacity.
            stock(call, each, {name: Inventory(total=1000) for name in each.inventories})
            hold(call, each)
        if each.inventories:
            stock(call, each, each.inventories)
        for kind, names in (("traits", each.traits), ("aggregates", each.aggregates)):
            if names:
                replace_in(call, f"/resource_providers/{each.uuid}", kind, sorted(names))


def replace_in(call: Call, path: str, kind: str, what: Any) -> None:
    """Replace a provider's inventories, traits or aggregates."""
    generation = call("GET", path).json()["generation"]
    body = {"resource_provider_generation": generation, kind: what}
    written(call, "PUT", f"{path}/{kind}", body)


def stock(call: Call, one: PlainProvider, has: dict[str, Inventory]) -> None:
    inventories = {
        name: {
            "total": each.total,
            "reserved": each.reserved,
            "min_unit": each.min_unit,
            "max_unit": each.max_unit,
            "step_size": each.step_size,
            "allocation_ratio": each.allocation_ratio,
        }
        for name, each in has.items()
    }
    replace_in(call, f"/resource_providers/{one.uuid}", "inventories", inventories)


def hold(call: Call, one: PlainProvider) -> None:
    body = {
        "allocations": {one.uuid: {"resources": one.used}},
        "project_id": "project",
        "user_id": "user",
        "consumer_generation": None,
        "consumer_type": "INSTANCE",
    }
    written(call, "PUT", f"/allocations/{CONSUMER}{one.number:02}", body)


def fell(call: Call, forest: Forest) -> None:
    """Delete a whole forest."""
    for each in reversed(forest):
        if each.used:
            written(call, "DELETE", f"/allocations/{CONSUMER}{each.number:02}")
        written(call, "DELETE", f"/resource_providers/{each.uuid}")


def found_by(call: Call, query: CandidateQuery) -> Answer:
    """Query a service's candidates."""
    version = BEFORE_TREES if query.takes_one_of_a_tree else NEWEST
    path = f"/allocation_candidates?{urlencode(parameters(query))}"
    answer = call("GET", path, version=version)
    if not answer.is_success:
        return Answer(answer.status_code, [], {})
    body = answer.json()
    candidates = [
        Candidate(
            {uuid: each["resources"] for uuid, each in request["allocations"].items()},
            request.get("mappings", {}),
        )
        for request in body["allocation_requests"]
    ]
    return Answer(
        answer.status_code,
        [reference_candidates.canonical(each) for each in candidates],
        {
            uuid: {**each, "traits": sorted(each["traits"])}
            for uuid, each in body["provider_summaries"].items()
        },
    )


def expected_summaries(
    forest: Forest, query: CandidateQuery, found: Iterable[Found]
) -> dict[str, Any]:
    """The summaries in the API's format: before nested providers, only those with amounts."""
    summaries = reference_candidates.summaries(forest, found)
    named = {uuid for each in found for uuid in each.takes_from}
    return {
        uuid: {
            "resources": {
                name: msgspec.structs.asdict(each) for name, each in summary.resources.items()
            },
            "traits": list(summary.traits),
        }
        | (
            {}
            if query.takes_one_of_a_tree
            else {
                "parent_provider_uuid": summary.parent_uuid,
                "root_provider_uuid": summary.root_uuid,
            }
        )
        for uuid, summary in summaries.items()
        if uuid in named or not query.takes_one_of_a_tree
    }


def parameters(query: CandidateQuery) -> list[tuple[str, str]]:
    """The query parameters of a query."""
    found = [pair for group in query.groups for pair in parameters_of_group(group)]
    found.append(("group_policy", "isolate" if query.is_isolated else "none"))
    found += [("same_subtree", ",".join(sorted(each))) for each in query.same_subtrees]
    traits = [*sorted(query.root_required), *(f"!{each}" for each in query.root_forbidden)]
    if traits:
        found.append(("root_required", ",".join(traits)))
    if query.limit is not None:
        found.append(("limit", str(query.limit)))
    return found


def parameters_of_group(group: RequestGroup) -> Iterator[tuple[str, str]]:
    """One group's parameters; simple conditions go into one parameter, as required before 1.39."""
    suffix = group.suffix
    if group.resources:
        amounts = (f"{name}:{amount}" for name, amount in group.resources.items())
        yield f"resources{suffix}", ",".join(amounts)
    plain = [name for names in group.required if len(names) == 1 for name in names]
    plain += [f"!{name}" for name in sorted(group.forbidden)]
    if plain:
        yield f"required{suffix}", ",".join(plain)
    for names in group.required:
        if len(names) > 1:
            yield f"required{suffix}", f"in:{','.join(sorted(names))}"
    for aggregates in group.member_of:
        yield f"member_of{suffix}", f"in:{','.join(sorted(aggregates))}"
    if group.not_member_of:
        yield f"member_of{suffix}", f"!in:{','.join(sorted(group.not_member_of))}"
    if group.in_tree is not None:
        yield f"in_tree{suffix}", group.in_tree
