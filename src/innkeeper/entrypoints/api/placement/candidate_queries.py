"""The schemas of queries for allocation candidates, and the parser of these queries.

Always true: the groups of a parsed query have distinct suffixes, and at least one group has
amounts. The numbers of groups and conditions are within their limits.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from innkeeper.domain.amounts import UNIT_MAX
from innkeeper.domain.candidates import UNSUFFIXED, CandidateQuery, RequestGroup
from innkeeper.domain.errors import Invalid
from innkeeper.domain.ids import ProviderUuid, canonical_uuid
from innkeeper.entrypoints.api.microversions import Schema
from innkeeper.entrypoints.api.placement.queries import (
    ANY_OF,
    DIGITS_MAX,
    WRONG,
    no_choice,
    parse_member_of,
    parse_required,
    parse_resources,
    parse_traits,
)
from innkeeper.entrypoints.api.placement.schemas import closed, parameter

BAD_VALUE = "query.bad_value"
DUPLICATE_KEY = "query.duplicate_key"
MISSING_VALUE = "query.missing_value"

GROUPS_MAX = 64
"""Maximum number of groups in a query. A server with sixteen devices and ten ports needs 37 groups:
one per device, two per port, and the unsuffixed group."""
CONDITIONS_MAX = 1024
"""The maximum number of conditions in a query. Each class, each trait, each aggregate and each
group in ``same_subtree`` counts."""
CLASSES_MAX = 256
"""Maximum number of classes in the unsuffixed group. Each class may come from another provider, so
the search combines the providers of all classes."""

NAME = "[a-zA-Z0-9_-]{1,64}"
RESOURCES, REQUIRED, MEMBER_OF, IN_TREE = "resources", "required", "member_of", "in_tree"
GROUP_WORDS = (RESOURCES, REQUIRED, MEMBER_OF, IN_TREE)
"""The beginnings of a group's parameters. The name of the group follows as a suffix."""
LIMIT_PATTERN = "^[1-9][0-9]*$"
ISOLATE = "isolate"
POLICIES = ["none", ISOLATE]

_GROUP_WORD = re.compile(rf"({'|'.join(GROUP_WORDS)})({NAME})?")
_PARAMETERS = {
    "limit": parameter(pattern=LIMIT_PATTERN),
    "group_policy": parameter(enum=POLICIES),
    "root_required": parameter(),
    "same_subtree": parameter(),
}


def plain(*names: str) -> Schema:
    """Return the schema of a query for one group. ``names`` are further allowed parameters."""
    names = (RESOURCES, *names)
    return closed({name: _PARAMETERS.get(name, parameter()) for name in names}, [RESOURCES])


def grouped(suffix: str, *names: str, words: tuple[str, ...] = GROUP_WORDS) -> Schema:
    """Return the schema of a query for groups whose suffix matches ``suffix`` or is missing."""
    properties: dict[str, Any] = {word: parameter() for word in words}
    properties |= {name: _PARAMETERS[name] for name in names}
    return {
        "type": "object",
        "properties": properties,
        "patternProperties": {f"^{word}({suffix})?$": parameter() for word in words},
        "additionalProperties": False,
    }


LIST_CANDIDATES = grouped(NAME, *_PARAMETERS)


def candidate_query(
    query: Mapping[str, list[str]], *, takes_one_of_a_tree: bool = False
) -> CandidateQuery:
    """Parse a query. Raises :class:`Invalid` if the query is malformed or too large."""
    root_required, root_forbidden = _root_traits(query.get("root_required", ()))
    subtrees = tuple(_subtree(value) for value in query.get("same_subtree", ()))
    groups = parse_groups(query)
    _check_amounts(groups, frozenset().union(*subtrees))
    for subtree in subtrees:
        _check_names(subtree, groups)
    _check_conflicts(groups)
    _check_size(groups, len(root_required | root_forbidden) + sum(map(len, subtrees)))
    policy = _policy(query.get("group_policy", ()))
    if policy is None and len(groups.keys() - {UNSUFFIXED}) > 1:
        raise Invalid(
            'The "group_policy" parameter is required when specifying more than one '
            '"resources{N}" parameter.'
        )
    return CandidateQuery(
        groups=tuple(groups.values()),
        is_isolated=policy == ISOLATE,
        same_subtrees=subtrees,
        root_required=root_required,
        root_forbidden=root_forbidden,
        takes_one_of_a_tree=takes_one_of_a_tree,
        limit=_limit(query.get("limit", ())),
    )


def parse_groups(query: Mapping[str, list[str]]) -> dict[str, RequestGroup]:
    """Parse all groups of a query, by suffix, in the order of their first parameters."""
    suffixes: dict[str, None] = {}
    for name in query:
        match = _GROUP_WORD.fullmatch(name)
        if match is not None:
            suffixes[match[2] or UNSUFFIXED] = None
        elif name.startswith(GROUP_WORDS):
            # The schema's "$" accepts a trailing newline, but a group's name cannot have one.
            raise Invalid(
                f"{WRONG}{name!r} is not a valid parameter: a group's name has 1 to 64 letters, "
                "digits, underscores and hyphens"
            )
    if len(suffixes) > GROUPS_MAX:
        raise Invalid(f"{WRONG}More than {GROUPS_MAX} request groups in one query.")
    return {suffix: _group(query, suffix) for suffix in suffixes}


def _group(query: Mapping[str, list[str]], suffix: str) -> RequestGroup:
    amounts = [parse_resources(text) for text in query.get(RESOURCES + suffix, ())]
    required, forbidden = parse_required(query.get(REQUIRED + suffix, []))
    member_of, not_member_of = parse_member_of(query.get(MEMBER_OF + suffix, []))
    trees = [_tree(text) for text in query.get(IN_TREE + suffix, ())]
    return RequestGroup(
        suffix=suffix,
        resources=amounts[-1] if amounts else {},
        required=required,
        forbidden=forbidden,
        member_of=member_of,
        not_member_of=not_member_of,
        in_tree=trees[-1] if trees else None,
    )


def _tree(text: str) -> ProviderUuid:
    canonical = canonical_uuid(text.strip())
    if canonical is None:
        raise Invalid(f"{WRONG}Expected 'in_tree' parameter to be a format of uuid. Got: {text}")
    return ProviderUuid(canonical)


# If ``group_policy`` or ``limit`` is repeated, the first value counts, as in OpenStack's Placement.
# The schema has checked only the last value.
def _policy(values: Sequence[str]) -> str | None:
    if values and values[0] not in POLICIES:
        raise Invalid(f"{WRONG}{values[0]!r} is not one of {POLICIES}")
    return values[0] if values else None


def _limit(values: Sequence[str]) -> int | None:
    if not values:
        return None
    digits = values[0].removesuffix("\n")
    if re.match(LIMIT_PATTERN, values[0]) is None:
        raise Invalid(f"{WRONG}{values[0]!r} does not match {LIMIT_PATTERN!r}")
    # A number with more digits exceeds any number of candidates, and is slow to convert.
    return int(digits) if len(digits) <= DIGITS_MAX else UNIT_MAX


def _root_traits(values: Sequence[str]) -> tuple[frozenset[str], frozenset[str]]:
    if not values:
        return frozenset(), frozenset()
    if len(values) > 1:
        raise Invalid(
            "Query parameter 'root_required' may be specified only once.", code=DUPLICATE_KEY
        )
    if values[0].startswith(ANY_OF):
        raise no_choice(values[0])
    required, forbidden = parse_traits(values[0])
    conflicts = forbidden.intersection(required)
    if conflicts:
        raise Invalid(
            "Conflicting required and forbidden traits found in root_required: "
            f"{', '.join(sorted(conflicts))}",
            code=BAD_VALUE,
        )
    return frozenset(required), frozenset(forbidden)


def _subtree(value: str) -> frozenset[str]:
    suffixes = frozenset(suffix.strip() for suffix in value.split(","))
    if UNSUFFIXED in suffixes:
        raise Invalid(
            "Empty string (unsuffixed group) can not be specified in `same_subtree` ",
            code=BAD_VALUE,
        )
    return suffixes


def _check_amounts(groups: Mapping[str, RequestGroup], tied: frozenset[str]) -> None:
    """Check that some group has amounts, and that each group without amounts is in ``tied``.

    ``tied`` has the suffixes of the groups in ``same_subtree``.
    """
    bare = [suffix for suffix, group in groups.items() if not group.resources]
    if len(bare) == len(groups):
        raise Invalid(
            "There must be at least one resources or resources[$S] parameter.", code=MISSING_VALUE
        )
    loose = [suffix for suffix in bare if suffix not in tied]
    if loose:
        raise Invalid(
            "Resourceless suffixed group request should be specified in `same_subtree` query "
            f"param: bad group(s) - {loose}.",
            code=BAD_VALUE,
        )


def _check_names(subtree: frozenset[str], groups: Mapping[str, RequestGroup]) -> None:
    unknown = sorted(subtree - groups.keys())
    if unknown:
        raise Invalid(
            f"Real suffixes should be specified in `same_subtree`: {unknown} not found in "
            f"{list(groups)}.",
            code=BAD_VALUE,
        )


def _check_conflicts(groups: Mapping[str, RequestGroup]) -> None:
    conflicts = sorted(
        f"required{suffix}: ({', '.join(sorted(names))})"
        for suffix, group in groups.items()
        for names in group.required
        if names <= group.forbidden
    )
    if conflicts:
        raise Invalid(
            "Conflicting required and forbidden traits found in the following traits keys: "
            f"{', '.join(conflicts)}"
        )


def _check_size(groups: Mapping[str, RequestGroup], others: int) -> None:
    conditions = others + sum(
        len(group.resources)
        + sum(len(names) for names in group.required)
        + len(group.forbidden)
        + sum(len(names) for names in group.member_of)
        + len(group.not_member_of)
        for group in groups.values()
    )
    if conditions > CONDITIONS_MAX:
        raise Invalid(f"{WRONG}More than {CONDITIONS_MAX} conditions in one query.")
    unsuffixed = groups.get(UNSUFFIXED)
    if unsuffixed is not None and len(unsuffixed.resources) > CLASSES_MAX:
        raise Invalid(f"{WRONG}More than {CLASSES_MAX} resource classes in one group.")
