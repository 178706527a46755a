"""The results as tables, for the terminal and for the page."""

from __future__ import annotations

from collections.abc import Sequence

from innkeeper.entrypoints.simulator import tree_tables
from innkeeper.entrypoints.simulator.running import Results
from innkeeper.entrypoints.simulator.text_tables import Table, name_of, percent
from innkeeper.scheduling.simulation.measures import ReplayOutcome

DAY_S = 86_400.0
SHAPES_SHOWN = 20


def summary(results: Results) -> list[str]:
    """Return a few lines that describe the replay."""
    workload = results.workload
    first, last = workload.arrivals_s[0], workload.arrivals_s[-1]
    requests = len(workload.requests()) - 1
    lines = [
        f"trace {workload.name}: {workload.count} servers of {len(workload.shapes)} shapes in "
        f"{requests} requests over {(last - first) / DAY_S:.2f} days"
    ]
    if results.outcomes:
        fleet = " + ".join(f"{each.count} x {each.shape.name}" for each in results.groups)
        lines.append(f"hosts {fleet}")
    found = [policy for policy, _ in results.outcomes]
    found += [each.policy for each in results.compactions]
    policies = {policy.name: policy for policy in found if not policy.is_variant}.values()
    filters = {policy.filter_names() for policy in policies}
    for policy in policies:
        own = f"; filters {policy.filter_names()}" if len(filters) > 1 else ""
        lines.append(f"policy {policy.name}: {policy.description()}{own}")
    if len(filters) == 1:
        lines.append(f"filters {filters.pop()}")
    lines += [f"tree {tree.name}: {tree.description()}" for tree in results.trees]
    return [*lines, *(f"note: {note}" for note in results.notes)]


def all_of(results: Results) -> list[Table]:
    """Return all tables for these results."""
    found = []
    if results.outcomes:
        found += [_acceptance(results), _fleet(results), _decisions(results)]
        found += tree_tables.all_of(results)
        found.append(_shapes(results))
    if results.compactions:
        found.append(_compaction(results))
    return found


def _acceptance(results: Results) -> Table:
    rows = []
    for policy, outcome in results.outcomes:
        requested, placed = int(outcome.requested.sum()), int(outcome.placed.sum())
        rows.append(
            (
                policy.name,
                str(requested),
                str(placed),
                str(requested - placed),
                percent(placed / requested),
                _first_refusal(results, outcome),
            )
        )
    heading = ("policy", "requested", "placed", "refused", "accepted", "first refusal")
    return Table("Acceptance, in servers", heading, tuple(rows))


def _first_refusal(results: Results, outcome: ReplayOutcome) -> str:
    if outcome.first_refusal_s is None:
        return "never"
    return f"day {(outcome.first_refusal_s - results.workload.arrivals_s[0]) / DAY_S:.2f}"


def _fleet(results: Results) -> Table:
    classes = list(results.outcomes[0][1].capacity)
    heading = ["policy"]
    for name in classes:
        heading += [f"{name_of(name)} used", "most", "stranded"]
    heading += ["empty hosts", "least"]
    rows = []
    for policy, outcome in results.outcomes:
        cells = [policy.name]
        for name in classes:
            cells += [
                percent(outcome.mean_used(name)),
                percent(outcome.most_used(name)),
                percent(outcome.mean_stranded(name)),
            ]
        empty = outcome.samples.empty_hosts
        rows.append((*cells, f"{empty.mean():.1f}", f"{empty.min():.0f}"))
    return Table(
        "Packing, fragmentation and empty hosts, on average over time", tuple(heading), tuple(rows)
    )


def _decisions(results: Results) -> Table:
    rows = tuple(
        (
            policy.name,
            f"{outcome.decision_us(50):.0f} us",
            f"{outcome.decision_us(99):.0f} us",
            f"{outcome.servers_per_second:.0f}",
        )
        for policy, outcome in results.outcomes
    )
    heading = ("policy", "request p50", "request p99", "servers/s")
    return Table("Time to decide", heading, rows)


def _shapes(results: Results) -> Table:
    outcomes = [outcome for _, outcome in results.outcomes]
    requested = outcomes[0].requested
    order = [int(code) for code in (-requested).argsort(kind="stable") if requested[code]]
    heading = ["flavor", "requested"]
    for policy, _ in results.outcomes:
        heading += [f"{policy.name}: placed", "refused"]
    rows = [_shape_row(results.workload.shapes[code].name, [code], outcomes) for code in order]
    if len(order) > SHAPES_SHOWN:
        others = order[SHAPES_SHOWN:]
        rows[SHAPES_SHOWN:] = [_shape_row(f"{len(others)} others", others, outcomes)]
    return Table("Acceptance by flavor, in servers", tuple(heading), tuple(rows))


def _shape_row(
    name: str, codes: Sequence[int], outcomes: Sequence[ReplayOutcome]
) -> tuple[str, ...]:
    cells = [name, str(int(outcomes[0].requested[codes].sum()))]
    for outcome in outcomes:
        cells += [str(int(outcome.placed[codes].sum())), str(int(outcome.refused[codes].sum()))]
    return tuple(cells)


def _compaction(results: Results) -> Table:
    rows = tuple(
        (
            each.shape.name,
            each.policy.name,
            str(each.hosts),
            f"{each.bound.hosts:.1f}",
            name_of(each.bound.class_name),
            percent(each.share),
        )
        for each in results.compactions
    )
    heading = ("host", "policy", "smallest fleet", "lower bound", "by", "bound / fleet")
    return Table("The smallest fleet that refuses nothing, in hosts", heading, rows)
