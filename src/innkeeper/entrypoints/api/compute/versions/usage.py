"""The changes that microversions made to the usage of projects."""

from __future__ import annotations

from innkeeper.domain.versions import Version
from innkeeper.entrypoints.api.compute.accounts.schemas import USAGES
from innkeeper.entrypoints.api.compute.accounts.usage import UsageOptions
from innkeeper.entrypoints.api.compute.versions.edges import closed_queries, opened
from innkeeper.entrypoints.api.edges import edges, ignoring, parameters_without
from innkeeper.entrypoints.api.microversions import Step
from innkeeper.entrypoints.api.options import with_options
from innkeeper.entrypoints.api.routing import Call

ALL = "/v2.1/os-simple-tenant-usage"
ONE = "/v2.1/os-simple-tenant-usage/{project_id}"
BOTH = (("GET", ALL), ("GET", ONE))

# Both routes use this schema. It has ``detailed``, although only the list reads ``detailed``.
BEFORE_2_40 = parameters_without("limit", "marker")(opened(USAGES))

_ignore_pages = ignoring("limit", "marker")
_not_paged = with_options(UsageOptions, is_paged=False)


def _whole(call: Call) -> None:
    _ignore_pages(call)
    _not_paged(call)


STEPS = (
    Step(
        Version(2, 40),
        "Usage is returned in pages. `limit` is the maximum number of servers in a page, and "
        "`marker` is the last server of the previous page.",
        edges(BOTH, query_before=BEFORE_2_40, up=_whole),
    ),
    closed_queries(*BOTH),
)
