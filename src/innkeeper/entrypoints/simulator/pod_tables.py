"""The results of simulated pods as tables and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import msgspec

from innkeeper.domain.pods import DISK_GB, KINDS, MEMORY_MB, VCPUS, VOLUME_GB
from innkeeper.entrypoints.simulator.pods import NamedPodPolicy
from innkeeper.entrypoints.simulator.text_tables import Table, percent
from innkeeper.scheduling.simulation.pod_replay import PodOutcome
from innkeeper.scheduling.simulation.workload import Workload

HEADINGS = {VCPUS: "cores", MEMORY_MB: "memory", DISK_GB: "disk", VOLUME_GB: "volumes"}
PODS_SHOWN = 20
Outcomes = Sequence[tuple[NamedPodPolicy, PodOutcome]]


def summary(workload: Workload, outcomes: Outcomes) -> list[str]:
    """Return a few lines that describe the replay."""
    first = outcomes[0][1]
    return [
        f"trace {workload.name}: {first.servers} servers and {first.volumes} volumes of "
        f"{first.projects} projects over {first.days:.2f} days",
        *(f"policy {each.name}: {each.text}; {len(each.pods)} pods" for each, _ in outcomes),
        *(f"note: {note}" for note in workload.notes),
    ]


def all_of(outcomes: Outcomes) -> list[Table]:
    """Return all tables."""
    return [_bindings(outcomes), *(_pods(policy.name, each) for policy, each in outcomes)]


def _bindings(outcomes: Outcomes) -> Table:
    heading = (
        "policy",
        "servers refused",
        "volumes refused",
        "pods that refused",
        "moves",
        "per project and month",
        "projects moved",
        "in several pods",
        "volumes apart",
    )
    rows = tuple(
        (
            policy.name,
            f"{each.refused_servers} ({percent(_share(each.refused_servers, each.servers))})",
            f"{each.refused_volumes} ({percent(_share(each.refused_volumes, each.volumes))})",
            str(each.skipped),
            str(each.moves),
            f"{each.moves_per_month:.2f}",
            percent(_share(each.moved, each.projects)),
            percent(each.spread),
            f"{each.apart} ({percent(_share(each.apart, each.volumes - each.refused_volumes))})",
        )
        for policy, each in outcomes
    )
    return Table("Bindings of projects", heading, rows)


def _pods(name: str, outcome: PodOutcome) -> Table:
    kinds = [kind for kind in KINDS if any(kind in each.most_used for each in outcome.pods)]
    heading = ["pod", "servers", "volumes"]
    for kind in kinds:
        heading += [f"{HEADINGS[kind]}, mean", "most"]
    rows = []
    for each in outcome.pods[:PODS_SHOWN]:
        cells = [each.name, str(each.servers), str(each.volumes)]
        for kind in kinds:
            has = kind in each.most_used
            cells.append(percent(each.mean_used[kind]) if has else "-")
            cells.append(percent(each.most_used[kind]) if has else "-")
        rows.append(tuple(cells))
    others = len(outcome.pods) - len(rows)
    title = f"Pods with the policy {name}" + (f", without {others} others" if others else "")
    return Table(title, tuple(heading), tuple(rows))


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


def json_of(workload: Workload, outcomes: Outcomes) -> str:
    """Return all results as indented JSON. Shares are numbers from 0 to 1."""
    plain: dict[str, Any] = {
        "trace": workload.name,
        "notes": list(workload.notes),
        "policies": [
            {"policy": policy.name, **asdict(each), "moves_per_month": each.moves_per_month}
            for policy, each in outcomes
        ],
    }
    return msgspec.json.format(msgspec.json.encode(plain), indent=2).decode()
