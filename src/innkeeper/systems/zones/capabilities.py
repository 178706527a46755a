"""Compute the capabilities that a zone sends to its parents: sums over hosts and child zones.

Always true: a parent gets only the numbers and names in this module. The sums count only hosts and
child zones that answered recently. Dedicated hosts are left out, because a parent's users cannot
use them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

import numpy as np

from innkeeper.domain.zone_tree import ChildZone
from innkeeper.snapshot.amounts import Mask
from innkeeper.snapshot.columns import HostTable
from innkeeper.snapshot.dedications import GENERAL

CLASSES = {"VCPU": "vcpus", "MEMORY_MB": "memory_mb", "DISK_GB": "disk_gb"}
"""The resource classes whose sums a parent gets, with the name of each class in capabilities."""
NUMBERS = tuple(f"{name}_{part}" for name in CLASSES.values() for part in ("total", "free"))
HOSTS, LARGEST = "hosts", "largest_free_"
KNOWN = (HOSTS, *NUMBERS, *(f"{LARGEST}{name}" for name in CLASSES.values()))
FRESH_POLLS = 3
"""The number of failed polls after which a child zone's capabilities no longer count."""
NUMBER_MAX = 1e15
"""The largest number that is accepted from a child zone."""


def of_table(table: HostTable, heard_since_s: float) -> dict[str, float]:
    """Return the capabilities of this zone's own hosts.

    ``heard_since_s`` is the time of the oldest heartbeat that still counts, in Unix seconds.
    """
    heard = table.agent_seen_s[table.agent_codes] >= heard_since_s
    counted: Mask = table.is_open & heard & (table.dedication_codes == GENERAL)
    found: dict[str, float] = {HOSTS: float(np.count_nonzero(counted))}
    for class_name, name in CLASSES.items():
        free = table.free.get(class_name)
        used = table.used.get(class_name)
        if free is None or used is None or not counted.any():
            found |= {f"{name}_total": 0.0, f"{name}_free": 0.0, f"{LARGEST}{name}": 0.0}
            continue
        left = np.maximum(free[counted], 0.0)
        found[f"{name}_total"] = float((free[counted] + used[counted]).sum())
        found[f"{name}_free"] = float(left.sum())
        found[f"{LARGEST}{name}"] = float(left.max())
    return found


def with_children(
    own: Mapping[str, float], children: Iterable[ChildZone], poll_s: float, now: datetime
) -> dict[str, float]:
    """Add the capabilities of the child zones that were reached recently.

    Capabilities are summed, except ``largest_free_...``, where the result has the maximum.
    """
    oldest = now - timedelta(seconds=FRESH_POLLS * poll_s)
    whole = dict(own)
    for child in children:
        seen_at = child.state.last_seen_at
        if not child.is_enabled or not child.state.is_active or seen_at is None or seen_at < oldest:
            continue
        for name in KNOWN:
            number = float(child.state.capabilities.get(name, 0.0))
            is_largest = name.startswith(LARGEST)
            whole[name] = max(whole[name], number) if is_largest else whole[name] + number
    return whole


def checked(told: Any) -> dict[str, float]:
    """Return the usable part of a child's answer: known names with finite numbers of 0 or more."""
    if not isinstance(told, Mapping):
        return {}
    return {
        name: float(told[name])
        for name in KNOWN
        if isinstance(told.get(name), int | float)
        and not isinstance(told[name], bool)
        and 0 <= told[name] <= NUMBER_MAX
    }
