"""2.39: images are no part of the Compute API, and their metadata no limit of it."""

from __future__ import annotations

from innkeeper.entrypoints.api.microversions import Edge, Version
from innkeeper.entrypoints.api.routing import Answer, Call

VERSION = Version(2, 39)
SUMMARY = "Limits say nothing of images' metadata."


def _add(answer: Answer, call: Call) -> None:
    absolute = answer.body["limits"]["absolute"]
    # It was the same limit under another name.
    absolute["maxImageMeta"] = absolute["maxServerMeta"]


EDGES = (Edge("GET", "/v2.1/limits", down=_add),)
