"""All policy rules of the Compute API, resource by resource."""

from __future__ import annotations

from innkeeper.entrypoints.api.compute.accounts.rules import ACCOUNT_RULES
from innkeeper.entrypoints.api.compute.flavors.rules import FLAVOR_RULES
from innkeeper.entrypoints.api.compute.grouping.rules import GROUPING_RULES
from innkeeper.entrypoints.api.compute.hosts.rules import HOST_RULES
from innkeeper.entrypoints.api.compute.pclouds.rules import PCLOUD_RULES
from innkeeper.entrypoints.api.compute.servers.action_rules import ACTION_RULES
from innkeeper.entrypoints.api.compute.servers.rules import SERVER_RULES

RULES = (
    *FLAVOR_RULES,
    *ACCOUNT_RULES,
    *HOST_RULES,
    *GROUPING_RULES,
    *PCLOUD_RULES,
    *SERVER_RULES,
    *ACTION_RULES,
)
