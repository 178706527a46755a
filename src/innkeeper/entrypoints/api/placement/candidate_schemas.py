"""What the query of a search for allocation candidates may hold.

Always true: forms before the newest lack parameters, or are stricter about the suffixes of
groups. The functions make them.
"""

from __future__ import annotations

from typing import Any

from innkeeper.entrypoints.api.microversions import Schema
from innkeeper.entrypoints.api.placement.schemas import closed, parameter

NAME = "[a-zA-Z0-9_-]{1,64}"
RESOURCES, REQUIRED, MEMBER_OF, IN_TREE = GROUP_WORDS = (
    "resources",
    "required",
    "member_of",
    "in_tree",
)
"""What a group may say; a suffix behind the word tells which group."""

LIMIT_PATTERN = "^[1-9][0-9]*$"
ISOLATE = "isolate"
POLICIES = ["none", ISOLATE]

_PARAMETERS = {
    "limit": parameter(pattern=LIMIT_PATTERN),
    "group_policy": parameter(enum=POLICIES),
    "root_required": parameter(),
    "same_subtree": parameter(),
}


def plain(*names: str) -> Schema:
    """One group, whose amounts are asked for, with these further parameters."""
    names = (RESOURCES, *names)
    return closed({name: _PARAMETERS.get(name, parameter()) for name in names}, [RESOURCES])


def grouped(suffix: str, *names: str, words: tuple[str, ...] = GROUP_WORDS) -> Schema:
    """Groups with such suffixes, or none, and these parameters of the request as a whole."""
    properties: dict[str, Any] = {word: parameter() for word in words}
    properties |= {name: _PARAMETERS[name] for name in names}
    return {
        "type": "object",
        "properties": properties,
        "patternProperties": {f"^{word}({suffix})?$": parameter() for word in words},
        "additionalProperties": False,
    }


LIST_CANDIDATES = grouped(NAME, *_PARAMETERS)
