"""Paths that both the routes and the microversion steps of the Placement API use."""

from __future__ import annotations

PROVIDERS = "/resource_providers"
PROVIDER = "/resource_providers/{uuid}"
INVENTORIES = f"{PROVIDER}/inventories"
INVENTORY = f"{INVENTORIES}/{{resource_class}}"
AGGREGATES = f"{PROVIDER}/aggregates"
PROVIDER_ALLOCATIONS = f"{PROVIDER}/allocations"
ALLOCATIONS = "/allocations"
CONSUMER_ALLOCATIONS = "/allocations/{consumer}"
USAGES = "/usages"
RESHAPER = "/reshaper"
CANDIDATES = "/allocation_candidates"
