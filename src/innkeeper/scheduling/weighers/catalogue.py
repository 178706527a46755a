"""List the weighers by name. To add a weigher, write a module or object and add it here."""

from __future__ import annotations

from collections.abc import Mapping

from innkeeper.scheduling.pipeline import Weigher
from innkeeper.scheduling.weighers import (
    busy_servers,
    capabilities,
    fill_first,
    least_loaded,
    misfit,
    pack,
    project_spread,
    server_count,
    trait_preference,
)
from innkeeper.scheduling.weighers.free_amounts import FREE_DISK, FREE_MEMORY, FREE_VCPUS
from innkeeper.scheduling.weighers.soft_affinity import SOFT_AFFINITY, SOFT_ANTI_AFFINITY

WEIGHERS: Mapping[str, Weigher] = {
    FREE_MEMORY.NAME: FREE_MEMORY,
    FREE_VCPUS.NAME: FREE_VCPUS,
    FREE_DISK.NAME: FREE_DISK,
    least_loaded.NAME: least_loaded,
    fill_first.NAME: fill_first,
    pack.NAME: pack,
    busy_servers.NAME: busy_servers,
    server_count.NAME: server_count,
    SOFT_AFFINITY.NAME: SOFT_AFFINITY,
    SOFT_ANTI_AFFINITY.NAME: SOFT_ANTI_AFFINITY,
    project_spread.NAME: project_spread,
    misfit.NAME: misfit,
    trait_preference.NAME: trait_preference,
    capabilities.NAME: capabilities,
}

_REQUESTED = {SOFT_AFFINITY.NAME: 1.0, SOFT_ANTI_AFFINITY.NAME: 1.0, trait_preference.NAME: 1.0}
"""Weighers that read preferences in requests. Every set includes these weighers, because they do
not affect requests without preferences."""

WEIGHER_SETS: Mapping[str, Mapping[str, float]] = {
    "spread": {FREE_MEMORY.NAME: 1.0, FREE_VCPUS.NAME: 1.0, FREE_DISK.NAME: 1.0, **_REQUESTED},
    "fill": {fill_first.NAME: 1.0, **_REQUESTED},
    "pack": {pack.NAME: 1.0, **_REQUESTED},
}
"""Named sets of weighers with their multipliers."""
