"""What microversions changed about the usage of projects."""

from __future__ import annotations

from innkeeper.domain.versions import Version
from innkeeper.entrypoints.api.compute.accounts.schemas import USAGES
from innkeeper.entrypoints.api.compute.accounts.usage import UsageOptions
from innkeeper.entrypoints.api.compute.versions.edges import (
    CLOSED_QUERIES,
    ignoring,
    opened,
    parameters_without,
)
from innkeeper.entrypoints.api.microversions import Edge, Step
from innkeeper.entrypoints.api.options import with_options
from innkeeper.entrypoints.api.routing import Call

ALL = "/v2.1/os-simple-tenant-usage"
ONE = "/v2.1/os-simple-tenant-usage/{project_id}"

# One schema for both, which knew ``detailed`` although only the list looked at it.
BEFORE_2_40 = parameters_without("limit", "marker")(opened(USAGES))

_ignore_pages = ignoring("limit", "marker")
_not_paged = with_options(UsageOptions, is_paged=False)


def _whole(call: Call) -> None:
    _ignore_pages(call)
    _not_paged(call)


STEPS = (
    Step(
        Version(2, 40),
        "`limit` and `marker` page through the servers of a usage.",
        (
            Edge("GET", ALL, query_before=BEFORE_2_40, up=_whole),
            Edge("GET", ONE, query_before=BEFORE_2_40, up=_whole),
        ),
    ),
    Step(
        Version(2, 75),
        CLOSED_QUERIES,
        (Edge("GET", ALL, query_before=opened), Edge("GET", ONE, query_before=opened)),
    ),
)
