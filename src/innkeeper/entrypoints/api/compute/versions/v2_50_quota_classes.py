"""2.50: classes of quotas tell of server groups too."""

from __future__ import annotations

from innkeeper.entrypoints.api.microversions import Edge, Version
from innkeeper.entrypoints.api.routing import Answer, Call

VERSION = Version(2, 50)
SUMMARY = "Classes of quotas tell of server groups."


def _drop(answer: Answer, call: Call) -> None:
    for name in ("server_groups", "server_group_members"):
        answer.body["quota_class_set"].pop(name, None)


EDGES = (Edge("GET", "/v2.1/os-quota-class-sets/{class_id}", down=_drop),)
