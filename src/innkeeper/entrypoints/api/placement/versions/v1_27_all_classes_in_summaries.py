"""Summaries of providers show all that they have."""

from __future__ import annotations

from innkeeper.entrypoints.api.microversions import Edge, Version
from innkeeper.entrypoints.api.placement.queries import by_suffix, parse_resources
from innkeeper.entrypoints.api.placement.versions.shapes import CANDIDATES
from innkeeper.entrypoints.api.routing import Answer, Call

VERSION = Version(1, 27)
SUMMARY = (
    "The summaries of allocation candidates show all classes of a provider, not only those "
    "that were asked for."
)


def _keep_wanted(answer: Answer, call: Call) -> None:
    values = [values[-1] for _, values in by_suffix(call.query, "resources")]
    wanted = {name for text in values for name in parse_resources(text)}
    for summary in answer.body["provider_summaries"].values():
        resources = summary["resources"]
        summary["resources"] = {name: resources[name] for name in resources if name in wanted}


EDGES = (Edge("GET", CANDIDATES, down=_keep_wanted),)
