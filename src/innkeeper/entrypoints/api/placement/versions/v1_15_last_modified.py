"""Answers say when what they show was last changed."""

from __future__ import annotations

from innkeeper.entrypoints.api.microversions import Edge, Version
from innkeeper.entrypoints.api.routing import Answer, Call

VERSION = Version(1, 15)
SUMMARY = "Answers have the headers `last-modified` and `cache-control: no-cache`."


def _undate(answer: Answer, _call: Call) -> None:
    answer.headers.pop("last-modified", None)
    answer.headers.pop("cache-control", None)


EDGES = (Edge("*", "*", down=_undate),)
