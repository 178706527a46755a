"""Draws the results with matplotlib, from the extra ``innkeeper[simulate]``.

Always true: nothing is shown on a screen, and no state is shared. A plot is a PNG, as bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from io import BytesIO
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from innkeeper.entrypoints.simulator.running import Results
from innkeeper.entrypoints.simulator.tables import DAY_S, SHAPES_SHOWN
from innkeeper.entrypoints.simulator.text_tables import name_of
from innkeeper.scheduling.simulation.measures import Column, ReplayOutcome

COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""People with color vision deficiency can distinguish these colors."""
STYLES = ("-", "--", ":", "-.")
WIDTH, HEIGHT, DPI = 9.0, 3.6, 110
UNSHOWN = "_nolegend_"
LEGEND_MAX = 28
"""Longer names are shortened in legends."""


def all_of(results: Results) -> Mapping[str, bytes]:
    """Return the plots for these results, by file name."""
    plots: dict[str, bytes] = {}
    if results.outcomes:
        plots["packing.png"] = _shares(results, "used", lambda o, name: o.samples.used[name])
        plots["stranded.png"] = _shares(
            results, "stranded", lambda o, name: o.samples.stranded[name]
        )
        plots["empty.png"] = _empty(results)
        plots["acceptance.png"] = _acceptance(results)
        plots["decisions.png"] = _decisions(results)
    if results.compactions:
        plots["compaction.png"] = _compaction(results)
    return plots


def _figure(rows: int = 1) -> tuple[Figure, list[Axes]]:
    figure = Figure(figsize=(WIDTH, HEIGHT * rows), dpi=DPI, layout="constrained")
    FigureCanvasAgg(figure)
    axes = [figure.add_subplot(rows, 1, row + 1) for row in range(rows)]
    for each in axes:
        each.grid(visible=True, alpha=0.3)
    return figure, axes


def _png(figure: Figure) -> bytes:
    buffer = BytesIO()
    # Omit the version and the date, so that equal results have equal bytes.
    figure.savefig(buffer, format="png", metadata={"Software": None})
    return buffer.getvalue()


def _look(number: int) -> dict[str, Any]:
    return {
        "color": COLORS[number % len(COLORS)],
        "linestyle": STYLES[number // len(COLORS) % len(STYLES)],
    }


def _label(name: str) -> str:
    # Matplotlib hides labels with a leading underscore, and reads text between dollar signs as
    # formulas.
    cut = name if len(name) <= LEGEND_MAX else name[: LEGEND_MAX - 1] + "…"
    return cut.lstrip("_").replace("$", r"\$") or "-"


def _over_time(results: Results, axes: Axes, column: Callable[[ReplayOutcome], Column]) -> None:
    for number, (policy, outcome) in enumerate(results.outcomes):
        days = (outcome.samples.moments_s - results.workload.arrivals_s[0]) / DAY_S
        label = _label(policy.name)
        axes.plot(days, column(outcome), label=label, linewidth=1.2, **_look(number))
    axes.set_ylim(bottom=0)


def _shares(results: Results, what: str, column: Callable[[ReplayOutcome, str], Column]) -> bytes:
    classes = list(results.outcomes[0][1].capacity)
    figure, axes = _figure(len(classes))
    for name, each in zip(classes, axes, strict=True):
        _over_time(results, each, partial(_percent_of, column, name))
        each.set_ylabel(f"{name_of(name)} {what}, %")
    axes[0].legend(loc="best", fontsize="small")
    axes[-1].set_xlabel("days")
    return _png(figure)


def _percent_of(
    column: Callable[[ReplayOutcome, str], Column], name: str, outcome: ReplayOutcome
) -> Column:
    return 100 * column(outcome, name) / max(outcome.capacity[name], 1.0)


def _empty(results: Results) -> bytes:
    figure, (axes,) = _figure()
    _over_time(results, axes, lambda outcome: outcome.samples.empty_hosts)
    axes.set_ylabel(f"empty hosts of {results.outcomes[0][1].hosts}")
    axes.set_xlabel("days")
    axes.legend(loc="best", fontsize="small")
    return _png(figure)


def _acceptance(results: Results) -> bytes:
    figure, (axes,) = _figure()
    requested = results.outcomes[0][1].requested
    codes = [int(c) for c in (-requested).argsort(kind="stable") if requested[c]][:SHAPES_SHOWN]
    width = 0.8 / len(results.outcomes)
    for number, (policy, outcome) in enumerate(results.outcomes):
        share = 100 * outcome.refused[codes] / requested[codes]
        places = np.arange(len(codes)) - 0.4 + (number + 0.5) * width
        label = f"{_label(policy.name)} ({int(outcome.refused.sum())} refused)"
        axes.bar(places, share, width, label=label, color=COLORS[number % len(COLORS)])
    names = [_label(results.workload.shapes[code].name) for code in codes]
    axes.set_xticks(range(len(codes)), names, rotation=45, ha="right", fontsize="small")
    axes.set_ylabel("refused, % of the flavor")
    axes.set_ylim(bottom=0)
    axes.legend(loc="best", fontsize="small")
    return _png(figure)


def _decisions(results: Results) -> bytes:
    figure, (axes,) = _figure()
    percents = np.linspace(0, 100, 501)
    for number, (policy, outcome) in enumerate(results.outcomes):
        took = np.percentile(outcome.decision_s * 1e6, percents)
        label = f"{_label(policy.name)} ({outcome.servers_per_second:.0f} servers/s)"
        axes.plot(np.maximum(took, 0.1), percents, label=label, **_look(number))
    axes.set_xscale("log")
    axes.set_xlabel("time to decide on one request, microseconds")
    axes.set_ylabel("% of requests")
    axes.legend(loc="best", fontsize="small")
    return _png(figure)


def _compaction(results: Results) -> bytes:
    figure, (axes,) = _figure()
    shapes = list(dict.fromkeys(each.shape.name for each in results.compactions))
    policies = list(dict.fromkeys(each.policy.name for each in results.compactions))
    width = 0.8 / len(policies)
    for each in results.compactions:
        number, place = policies.index(each.policy.name), shapes.index(each.shape.name)
        at = place - 0.4 + (number + 0.5) * width
        label = _label(each.policy.name) if place == 0 else UNSHOWN
        color = COLORS[number % len(COLORS)]
        axes.bar(at, each.hosts, width, label=label, color=color)
        axes.annotate(str(each.hosts), (at, each.hosts), ha="center", va="bottom", fontsize=8)
        if number == 0:
            bound = "lower bound" if place == 0 else UNSHOWN
            axes.hlines(each.bound.hosts, place - 0.45, place + 0.45, colors="black", label=bound)
    axes.set_xticks(range(len(shapes)), [_label(name) for name in shapes])
    axes.set_ylabel("hosts of the smallest fleet")
    axes.legend(loc="best", fontsize="small")
    return _png(figure)
