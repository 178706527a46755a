"""2.64: a server group has one policy, with rules; before, it had a list of one policy."""

from __future__ import annotations

from innkeeper.entrypoints.api.compute.grouping.schemas import CREATE_GROUP_BEFORE_2_64
from innkeeper.entrypoints.api.compute.grouping.server_groups import in_answer
from innkeeper.entrypoints.api.compute.versions.server_group_edges import wherever_shown
from innkeeper.entrypoints.api.microversions import Version
from innkeeper.entrypoints.api.routing import Answer, Call

VERSION = Version(2, 64)
SUMMARY = "Server groups have one policy, which can have rules, and no metadata."


def _raise(call: Call) -> None:
    group = call.body["server_group"]
    (group["policy"],) = group.pop("policies")


def _lower(answer: Answer, call: Call) -> None:
    for group in in_answer(answer):
        del group["rules"]
        group["policies"] = [group.pop("policy")]
        group["metadata"] = {}


EDGES = wherever_shown(_lower, CREATE_GROUP_BEFORE_2_64, _raise)
