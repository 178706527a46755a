"""What 2.75 changed about keypairs, quotas, limits and usage: queries are closed."""

from __future__ import annotations

from innkeeper.entrypoints.api.compute.accounts import schemas
from innkeeper.entrypoints.api.microversions import Edge

_QUOTAS = "/v2.1/os-quota-sets/{project_id}"
_USAGE = "/v2.1/os-simple-tenant-usage"

EDGES = (
    Edge("GET", "/v2.1/os-keypairs", query_before=schemas.KEYPAIRS_OPEN),
    Edge("GET", "/v2.1/os-keypairs/{name}", query_before=schemas.KEYPAIR_OPEN),
    Edge("DELETE", "/v2.1/os-keypairs/{name}", query_before=schemas.KEYPAIR_OPEN),
    Edge("GET", _QUOTAS, query_before=schemas.QUOTAS_OPEN),
    Edge("PUT", _QUOTAS, query_before=schemas.QUOTAS_OPEN),
    Edge("DELETE", _QUOTAS, query_before=schemas.QUOTAS_OPEN),
    Edge("GET", f"{_QUOTAS}/detail", query_before=schemas.QUOTAS_OPEN),
    Edge("GET", "/v2.1/limits", query_before=schemas.LIMITS_OPEN),
    Edge("GET", _USAGE, query_before=schemas.USAGES_OPEN),
    Edge("GET", f"{_USAGE}/{{project_id}}", query_before=schemas.USAGE_OPEN),
)
