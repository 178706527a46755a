"""The project's own files, as the tidy tests read them.

Always true: paths are relative to the project's folder and written with slashes, so that an
exception list means the same on every machine.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "innkeeper"

NOT_OURS = frozenset({"__pycache__", "_build", "build", "dist", "htmlcov", "node_modules"})
"""Folders of generated files. Folders whose name begins with a dot are ours only if
they are listed in ``OUR_DOT_FOLDERS``."""
OUR_DOT_FOLDERS = frozenset({".ci"})
TEXT_SUFFIXES = frozenset(
    {"", ".cfg", ".css", ".html", ".in", ".ini", ".j2", ".js", ".json", ".mako", ".md", ".py"}
    | {".rst", ".sh", ".sql", ".toml", ".txt", ".yaml", ".yml"}
)


@dataclass(frozen=True, slots=True)
class Finding:
    """A violation of a rule. ``text`` identifies it even after lines above it moved."""

    path: str
    line: int
    text: str

    @property
    def key(self) -> str:
        """The entry of this finding in an exception list."""
        return f"{self.path} | {self.text}"

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.text}"


@dataclass(frozen=True, slots=True)
class File:
    """One text file of the project."""

    path: str
    text: str

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rpartition("/")[2]

    @property
    def folders(self) -> tuple[str, ...]:
        """The folders that lead to the file."""
        return tuple(self.path.split("/")[:-1])

    def tree(self) -> ast.Module:
        """Parse the file as Python."""
        return parse(self.text, self.path)

    def search(self, pattern: re.Pattern[str]) -> Iterator[Finding]:
        """Find the lines that match, each once."""
        for number, line in enumerate(self.text.splitlines(), start=1):
            if pattern.search(line):
                yield Finding(self.path, number, line.strip())


@cache
def parse(text: str, path: str) -> ast.Module:
    """Parse Python text; ``path`` is used in the message about a syntax error."""
    return ast.parse(text, filename=path)


@cache
def files(folder: str = ".", suffixes: frozenset[str] = TEXT_SUFFIXES) -> tuple[File, ...]:
    """Read every text file of the project below ``folder``."""
    return tuple(
        File(path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8"))
        for path in sorted(walk(ROOT / folder))
        if path.suffix in suffixes
    )


def python_files(folder: str) -> tuple[File, ...]:
    """Read every Python file below ``folder``."""
    return files(folder, frozenset({".py"}))


def walk(folder: Path) -> Iterator[Path]:
    """Yield the files below ``folder`` that are not generated."""
    if not folder.is_dir():
        return
    for path in folder.iterdir():
        hidden = path.name.startswith(".") and path.name not in OUR_DOT_FOLDERS
        if path.is_dir():
            made = path.name in NOT_OURS or path.name.endswith(".egg-info")
            if not hidden and not made:
                yield from walk(path)
        elif path.is_file():
            yield path


def search(pattern: str, searched: Iterable[File], flags: int = 0) -> Iterator[Finding]:
    """Find every line of ``searched`` that matches ``pattern``."""
    compiled = re.compile(pattern, flags)
    for file in searched:
        yield from file.search(compiled)


def finding(file: File, node: ast.AST, text: str) -> Finding:
    """The finding at a syntax node."""
    return Finding(file.path, getattr(node, "lineno", 1), text)
