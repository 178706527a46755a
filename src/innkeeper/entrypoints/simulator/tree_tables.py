"""The results of trees of zones as tables."""

from __future__ import annotations

from innkeeper.entrypoints.simulator.running import Results
from innkeeper.entrypoints.simulator.text_tables import Table, name_of, percent
from innkeeper.scheduling.simulation.tree_decisions import TreeFigures, ZoneFigures

ZONES_SHOWN = 20


def all_of(results: Results) -> list[Table]:
    """Return the tables about trees. The list is empty if there are no trees."""
    if not results.tree_figures:
        return []
    zones = [_zones(name, figures) for name, figures in results.tree_figures]
    return [_calls(results), _spread(results), *zones]


def _calls(results: Results) -> Table:
    rows = []
    for name, figures in results.tree_figures:
        calls = figures.calls
        boots = max(1, calls.boots)
        rows.append(
            (
                name,
                f"{calls.selects / boots:.2f}",
                f"{calls.creates / boots:.2f}",
                f"{calls.offers / boots:.2f}",
                f"{calls.stale / boots:.4f}",
                str(calls.stale),
                f"{calls.attempts / boots:.4f}",
                f"{calls.late / boots:.4f}",
                f"{1e6 * calls.plan_s / max(1, calls.plans):.0f} us",
            )
        )
    heading = (
        "tree",
        "select calls",
        "create calls",
        "offers",
        "stale",
        "all stale",
        "attempts",
        "late",
        "zone's plan",
    )
    return Table("Calls and offers in trees, per request", heading, tuple(rows))


def _spread(results: Results) -> Table:
    classes = list(results.outcomes[0][1].capacity)
    heading = ["tree", "zones"]
    for name in classes:
        heading += [f"{name_of(name)} least used", "most"]
    heading += ["servers, fewest", "most"]
    rows = []
    for name, figures in results.tree_figures:
        cells = [name, str(len(figures.zones))]
        for each in classes:
            used = [zone.used[each] for zone in figures.zones]
            cells += [percent(min(used)), percent(max(used))]
        placed = [zone.placed for zone in figures.zones]
        rows.append((*cells, str(min(placed)), str(max(placed))))
    return Table("Spread over zones, on average over time", tuple(heading), tuple(rows))


def _zones(name: str, figures: TreeFigures) -> Table:
    classes = list(figures.zones[0].used)
    rows = [_zone_row(zone, classes) for zone in figures.zones[:ZONES_SHOWN]]
    others = len(figures.zones) - len(rows)
    title = f"Zones of {name}" + (f", without {others} others" if others else "")
    used = (f"{name_of(each)} used" for each in classes)
    return Table(title, ("zone", "hosts", "placed", "stale", *used), tuple(rows))


def _zone_row(zone: ZoneFigures, classes: list[str]) -> tuple[str, ...]:
    used = (percent(zone.used[each]) for each in classes)
    return (zone.name, str(zone.hosts), str(zone.placed), str(zone.stale), *used)
