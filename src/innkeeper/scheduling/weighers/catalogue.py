"""The weighers by name. One of one's own is a module of the same shape, and a line here."""

from __future__ import annotations

from collections.abc import Mapping

from innkeeper.scheduling.pipeline import Weigher
from innkeeper.scheduling.weighers import free_disk, free_memory, free_vcpus, least_loaded

WEIGHERS: Mapping[str, Weigher] = {
    free_memory.NAME: free_memory,
    free_vcpus.NAME: free_vcpus,
    free_disk.NAME: free_disk,
    least_loaded.NAME: least_loaded,
}

WEIGHER_SETS: Mapping[str, Mapping[str, float]] = {
    "spread": {free_memory.NAME: 1.0, free_vcpus.NAME: 1.0, free_disk.NAME: 1.0},
}
"""Weighers that go well together, with their multipliers, under one name."""
