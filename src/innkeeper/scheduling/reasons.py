"""Why there was no valid host, from the pipeline's counts."""

from __future__ import annotations

from innkeeper.domain.placing import BuildPlan

NO_VALID_HOST = "No valid host was found. "
"""Clients match on this beginning."""


def sentence(plan: BuildPlan, wanted: int) -> str:
    """Say what became of all hosts, filter by filter, and what was missing."""
    if plan.hosts == 0:
        return NO_VALID_HOST + "There are no hosts yet."
    parts = [
        f"{each.filter_name} removed {each.removed} ({each.reason}; {each.missing})"
        for each in plan.removals
    ]
    told = f"Of {plan.hosts} hosts, {plan.candidates} passed all filters"
    if plan.candidates:
        told += f", with room for {len(plan.entries)} of {wanted} servers"
    if parts:
        told += ": " + ", ".join(parts)
    return NO_VALID_HOST + told + "."
