"""Reads rows of text files.

Always true: errors are raised as :class:`Invalid`, and name the file and, where possible, the line.
"""

from __future__ import annotations

import csv
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from innkeeper.domain.errors import Invalid
from innkeeper.domain.numerals import number_of

NUMBER_MAX = 2**53
SERVERS_MAX = 20_000_000
"""The maximum number of servers in a trace."""
DATABASE_HEAD = b"SQLite format 3\0"
HEAD_BYTES = 65_536
NOTHING = frozenset({"", "nan", "null", "none"})
"""Spellings of a missing value."""


def lines_of(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines of a text file that are not blank, with their numbers."""
    try:
        with path.open(encoding="utf-8-sig") as file:
            for number, line in enumerate(file, start=1):
                text = line.strip()
                if "\0" in text:
                    raise Invalid(f"{path.name}, line {number}: this is not text.")
                if text:
                    yield number, text
    except UnicodeDecodeError as error:
        raise Invalid(f"{path.name} is not a text file (UTF-8 is expected).") from error
    except OSError as error:
        raise Invalid(f"Cannot read {path}: {error.strerror or error}.") from error


@dataclass(frozen=True, slots=True)
class TextRow:
    """One row of a table, with its cells by column."""

    file: str
    line: int
    cells: dict[str, str]

    def error(self, what: str) -> Invalid:
        """Return an error that names this row."""
        return Invalid(f"{self.file}, line {self.line}: {what}.")

    def text(self, column: str) -> str | None:
        """Return the text of a cell, or ``None`` if the cell is empty."""
        found = self.cells.get(column, "").strip()
        return None if found.lower() in NOTHING else found

    def number(self, column: str, least: float = -NUMBER_MAX) -> float | None:
        """Return the number in a cell, or ``None`` if the cell is empty."""
        text = self.text(column)
        if text is None:
            return None
        found = number_of(text)
        if found is None:
            raise self.error(f"{column} is {text!r}, which is not a number")
        if found < least:
            raise self.error(f"{column} is {text}, but must be {least:.16g} or more")
        if found > NUMBER_MAX:
            raise self.error(f"{column} is {text}, but must be {NUMBER_MAX} or less")
        return found

    def whole(self, column: str, least: int = 0, default: int | None = None) -> int:
        """Return the whole number in a cell, or ``default`` if the cell is empty."""
        if default is not None and self.text(column) is None:
            return default
        found = self.needed(column, least)
        if found != int(found):
            raise self.error(f"{column} is {found:g}, but must be a whole number")
        return int(found)

    def needed(self, column: str, least: float = -NUMBER_MAX) -> float:
        """Return the number in a cell. Raises :class:`Invalid` if the cell is empty."""
        found = self.number(column, least)
        if found is None:
            raise self.error(f"{column} is missing")
        return found


def header_of(path: Path) -> tuple[str, ...]:
    """Return the names of a table's columns."""
    for _, line in lines_of(path):
        return tuple(cell.strip() for cell in next(csv.reader([line])))
    raise Invalid(f"{path.name} is empty.")


def rows_of(path: Path, needed: Sequence[str]) -> Iterator[TextRow]:
    """Yield the rows below a table's header, which must contain the needed columns."""
    header = header_of(path)
    missing = [name for name in needed if name not in header]
    if missing:
        raise Invalid(f"{path.name} lacks the columns {', '.join(missing)}.")
    if len(set(header)) < len(header):
        raise Invalid(f"{path.name} has two columns with the same name.")
    rows = lines_of(path)
    next(rows)
    for number, line in rows:
        try:
            cells = next(csv.reader([line], strict=True))
        except csv.Error as error:
            raise Invalid(f"{path.name}, line {number}: {error}.") from error
        if len(cells) != len(header):
            raise Invalid(
                f"{path.name}, line {number}: {len(cells)} cells, but the header has {len(header)}."
            )
        yield TextRow(path.name, number, dict(zip(header, cells, strict=True)))


def head_of(path: Path) -> bytes:
    """Return the first bytes of a file."""
    try:
        with path.open("rb") as file:
            return file.read(HEAD_BYTES)
    except OSError as error:
        raise Invalid(f"Cannot read {path}: {error.strerror or error}.") from error


def open_database(path: Path) -> sqlite3.Connection:
    """Open a SQLite file read-only."""
    try:
        return sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
    except sqlite3.Error as error:
        raise Invalid(f"Cannot read {path.name}: {error}.") from error
