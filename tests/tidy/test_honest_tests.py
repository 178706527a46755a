"""Tests use the real thing: nothing is patched, skipped or expected to fail."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.tidy.exceptions import judge
from tests.tidy.tree import File, Finding, finding, python_files, search

MOCKING_MODULES = frozenset({"mock", "unittest.mock", "pytest_mock"})


def test_nothing_is_patched() -> None:
    """A fake is passed as an argument; where that is impossible, the design is wrong."""
    tests = python_files("tests")
    patched = search(r"monkeypatch\.(setattr|delattr|setitem)\b|\bmocker\b\s*[,.:)]", tests)
    imported = (hit for file in tests for hit in mocking_imports(file))
    judge("patched", [*patched, *imported])


def mocking_imports(file: File) -> Iterator[Finding]:
    """Find imports of mocking libraries."""
    for node in ast.walk(file.tree()):
        if isinstance(node, ast.Import):
            modules = {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            modules = {node.module or ""}
            modules |= {f"{node.module}.{alias.name}" for alias in node.names}
        else:
            continue
        if modules & MOCKING_MODULES:
            yield finding(file, node, ast.unparse(node))


def test_nothing_is_skipped_or_expected_to_fail() -> None:
    """A test that may be left out proves nothing."""
    left_out = r"mark\.(skip|skipif|xfail)\b|pytest\.(skip|xfail|importorskip)\(|unittest\.skip"
    judge("left-out", search(left_out, python_files("tests")))
