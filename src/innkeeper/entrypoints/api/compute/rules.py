"""All policy rules of the Compute API, resource by resource."""

from __future__ import annotations

from innkeeper.entrypoints.api.compute.rules_accounts import ACCOUNT_RULES
from innkeeper.entrypoints.api.compute.rules_flavors import FLAVOR_RULES
from innkeeper.entrypoints.api.compute.rules_hosts import HOST_RULES
from innkeeper.entrypoints.api.compute.rules_servers import SERVER_RULES

RULES = (
    *FLAVOR_RULES,
    *ACCOUNT_RULES,
    *HOST_RULES,
    *SERVER_RULES,
)
