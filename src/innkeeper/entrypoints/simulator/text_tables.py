"""A table of results as text, for the terminal and for the page."""

from __future__ import annotations

from dataclasses import dataclass

NAMES = {"VCPU": "cores", "MEMORY_MB": "memory", "DISK_GB": "disk", "PGPU": "GPUs"}
"""The names of resource classes in headings."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table. The first column is text, and all other columns are numbers."""

    title: str
    heading: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def name_of(class_name: str) -> str:
    """Return the name of a resource class in headings."""
    return NAMES.get(class_name, class_name)


def percent(share: float) -> str:
    """Return a share as a percentage."""
    return f"{100 * share:.1f} %"


def text_of(table: Table) -> str:
    """Return a table as text, with its title and aligned columns."""
    lines = (table.heading, *table.rows)
    widths = [max(len(line[at]) for line in lines) for at in range(len(table.heading))]
    text = [f"{table.title}:"]
    for line in lines:
        first = line[0].ljust(widths[0])
        others = (cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True))
        text.append("  " + "  ".join((first, *others)))
    return "\n".join(text)
