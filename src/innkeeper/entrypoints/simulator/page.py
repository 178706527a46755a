"""A self-contained HTML page with all results. It loads nothing from other addresses."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from html import escape

from innkeeper.entrypoints.simulator import tables
from innkeeper.entrypoints.simulator.running import Results
from innkeeper.entrypoints.simulator.text_tables import Table

TITLES = {
    "packing.png": "Packing",
    "stranded.png": "Fragmentation",
    "empty.png": "Empty hosts",
    "acceptance.png": "Refused, by flavor",
    "decisions.png": "Time to decide",
    "compaction.png": "The smallest fleet that refuses nothing",
}
MEANINGS = {
    "packing.png": "The share of all hosts' capacity that servers hold.",
    "stranded.png": "The share of all hosts' capacity that is free, but on hosts without room for "
    "one more server of the reference shape, {reference}.",
    "empty.png": "Hosts without servers.",
    "acceptance.png": "The share of each flavor's servers that found no place.",
    "decisions.png": "The share of requests that took at most this time to decide, for all their "
    "servers.",
    "compaction.png": "The line is the lower bound: the maximum that servers hold at one time, "
    "divided by a host's capacity.",
}
STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto;
  padding: 0 1rem; color: #222; background: #fff; }
table { border-collapse: collapse; margin: 1rem 0; font-size: 14px; }
th, td { padding: .25rem .7rem; text-align: right; border-bottom: 1px solid #ddd; }
th:first-child, td:first-child { text-align: left; }
img { max-width: 100%; }
.scroll { overflow-x: auto; }
.quiet { color: #555; }
"""


def html(results: Results, plots: Mapping[str, bytes]) -> str:
    """Return the page, with the plots embedded."""
    reference = results.options.reference or results.workload.commonest()
    body = ["<h1>Simulation</h1>"]
    body += [f'<p class="quiet">{escape(line)}</p>' for line in tables.summary(results)]
    body += [_table(each) for each in tables.all_of(results)]
    for name, plot in plots.items():
        meaning = MEANINGS[name].format(reference=reference.name)
        picture = base64.b64encode(plot).decode("ascii")
        body.append(f"<h2>{escape(TITLES[name])}</h2><p>{escape(meaning)}</p>")
        body.append(f'<img alt="{escape(TITLES[name])}" src="data:image/png;base64,{picture}">')
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>Innkeeper simulate: {escape(results.workload.name)}</title>"
        f"<style>{STYLE}</style></head>\n<body>\n" + "\n".join(body) + "\n</body></html>\n"
    )


def _table(table: Table) -> str:
    heading = "".join(f"<th>{escape(cell)}</th>" for cell in table.heading)
    rows = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>\n"
        for row in table.rows
    )
    return (
        f'<h2>{escape(table.title)}</h2><div class="scroll"><table><thead><tr>{heading}</tr>'
        f"</thead><tbody>\n{rows}</tbody></table></div>"
    )
