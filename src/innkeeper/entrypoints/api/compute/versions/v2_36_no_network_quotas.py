"""2.36: networks have no quotas here; before, they were there and without limit."""

from __future__ import annotations

from innkeeper.entrypoints.api.compute.accounts.quotas import put_into
from innkeeper.entrypoints.api.compute.accounts.schemas import (
    NETWORK,
    UPDATE_QUOTAS_BEFORE_2_36,
)
from innkeeper.entrypoints.api.microversions import Edge, Version
from innkeeper.entrypoints.api.routing import Answer, Call

VERSION = Version(2, 36)
SUMMARY = "Quotas and limits say nothing of networks and security groups."
UNLIMITED = -1


def _add(answer: Answer, call: Call) -> None:
    put_into(answer, {name: UNLIMITED for name in NETWORK})


def _add_limits(answer: Answer, call: Call) -> None:
    answer.body["limits"]["absolute"].update(
        maxTotalFloatingIps=UNLIMITED,
        maxSecurityGroups=UNLIMITED,
        maxSecurityGroupRules=UNLIMITED,
        totalFloatingIpsUsed=0,
        totalSecurityGroupsUsed=0,
    )


EDGES = (
    Edge("GET", "/v2.1/os-quota-sets/{project_id}", down=_add),
    Edge("GET", "/v2.1/os-quota-sets/{project_id}/detail", down=_add),
    Edge("GET", "/v2.1/os-quota-sets/{project_id}/defaults", down=_add),
    Edge(
        "PUT",
        "/v2.1/os-quota-sets/{project_id}",
        body_before=UPDATE_QUOTAS_BEFORE_2_36,
        down=_add,
    ),
    Edge("GET", "/v2.1/limits", down=_add_limits),
)
