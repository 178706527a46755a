"""Formats figures, tables and targets as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from benchmarks.figures import Figure

Found = Mapping[str, Figure]
"""The figures of a run by name."""


def at_most(found: Found, name: str, most: float, beside: str | None = None) -> Iterable[str]:
    """Yield the verdict about a figure that must not be greater than ``most``.

    If ``beside`` is the name of another figure, the quotient of both figures is judged.
    """
    figure, other = found.get(name), found.get(beside or name)
    if figure is None or other is None:
        return
    value = figure.value if beside is None else figure.value / other.value
    what = f"{name}, {figure.unit}" if beside is None else f"{name} / {beside}"
    yield verdict(what, value, most, value <= most)


def verdict(what: str, value: float, aim: float, is_met: bool) -> str:
    """Return a line with a target, its result, and whether the result meets the target."""
    return f"{'met   ' if is_met else 'MISSED'} {what}: {value:.3g}, aim {aim:g}"


def shown(found: Found, name: str, form: str) -> str:
    """Return a figure in a format; it is empty if it was not measured."""
    figure = found.get(name)
    return "" if figure is None else format(figure.value, form)


def table(names: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table in Markdown, with its columns aligned."""
    widths = [max(len(line[column]) for line in (names, *rows)) for column in range(len(names))]

    def line(cells: Sequence[str]) -> str:
        fitted = (cell.rjust(width) for cell, width in zip(cells, widths, strict=True))
        return "| " + " | ".join(fitted) + " |"

    ruler = "|" + "|".join("-" * (width + 1) + ":" for width in widths) + "|"
    return "\n".join((line(names), ruler, *(line(row) for row in rows)))
