"""The results as JSON, for other programs. Shares are numbers from 0 to 1."""

from __future__ import annotations

from typing import Any

import msgspec

from innkeeper.entrypoints.simulator.running import Compaction, Results
from innkeeper.scheduling.simulation.measures import ReplayOutcome
from innkeeper.scheduling.simulation.tree_decisions import TreeFigures


def json_of(results: Results) -> str:
    """Return all results as indented JSON."""
    figures = dict(results.tree_figures)
    plain = {
        "trace": results.workload.name,
        "servers": results.workload.count,
        "hosts": [{"shape": each.shape.name, "count": each.count} for each in results.groups],
        "notes": list(results.notes),
        "replays": [
            _replay(policy.name, outcome, figures.get(policy.name))
            for policy, outcome in results.outcomes
        ],
        "smallest_fleets": [_fleet(each) for each in results.compactions],
    }
    return msgspec.json.format(msgspec.json.encode(plain), indent=2).decode()


def _replay(name: str, outcome: ReplayOutcome, figures: TreeFigures | None) -> dict[str, Any]:
    classes = list(outcome.capacity)
    return {
        "policy": name,
        "requested": int(outcome.requested.sum()),
        "placed": int(outcome.placed.sum()),
        "refused": int(outcome.refused.sum()),
        "used": {each: outcome.mean_used(each) for each in classes},
        "most_used": {each: outcome.most_used(each) for each in classes},
        "stranded": {each: outcome.mean_stranded(each) for each in classes},
        "empty_hosts": float(outcome.samples.empty_hosts.mean()),
        "request_p50_us": outcome.decision_us(50),
        "request_p99_us": outcome.decision_us(99),
        "tree": None if figures is None else msgspec.to_builtins(figures),
    }


def _fleet(each: Compaction) -> dict[str, Any]:
    return {
        "policy": each.policy.name,
        "shape": each.shape.name,
        "hosts": each.hosts,
        "lower_bound": each.bound.hosts,
    }
