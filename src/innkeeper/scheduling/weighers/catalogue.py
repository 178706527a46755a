"""The weighers by name. One of one's own is a module of the same shape, and a line here."""

from __future__ import annotations

from collections.abc import Mapping

from innkeeper.scheduling.pipeline import Weigher
from innkeeper.scheduling.weighers import (
    busy_servers,
    capabilities,
    fill_first,
    free_disk,
    free_memory,
    free_vcpus,
    least_loaded,
    misfit,
    pack,
    project_spread,
    server_count,
    soft_affinity,
    soft_anti_affinity,
    trait_preference,
)

WEIGHERS: Mapping[str, Weigher] = {
    free_memory.NAME: free_memory,
    free_vcpus.NAME: free_vcpus,
    free_disk.NAME: free_disk,
    least_loaded.NAME: least_loaded,
    fill_first.NAME: fill_first,
    pack.NAME: pack,
    busy_servers.NAME: busy_servers,
    server_count.NAME: server_count,
    soft_affinity.NAME: soft_affinity,
    soft_anti_affinity.NAME: soft_anti_affinity,
    project_spread.NAME: project_spread,
    misfit.NAME: misfit,
    trait_preference.NAME: trait_preference,
    capabilities.NAME: capabilities,
}

_WISHES = {soft_affinity.NAME: 1.0, soft_anti_affinity.NAME: 1.0, trait_preference.NAME: 1.0}
"""What users ask for in so many words belongs to every set; for others it weighs nothing."""

WEIGHER_SETS: Mapping[str, Mapping[str, float]] = {
    "spread": {free_memory.NAME: 1.0, free_vcpus.NAME: 1.0, free_disk.NAME: 1.0, **_WISHES},
    "fill": {fill_first.NAME: 1.0, **_WISHES},
    "pack": {pack.NAME: 1.0, **_WISHES},
}
"""Weighers that go well together, with their multipliers, under one name."""
