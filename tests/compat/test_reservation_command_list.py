"""Every command of the stock client for reservations is run by a test against a started service."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from importlib.metadata import distribution
from pathlib import Path

GROUP = "openstack.reservation.v1"
FOLDER = Path(__file__).parent
SOURCES = ("test_reservations.py", "reservation_commands.py")
RUNNERS = frozenset({"ask", "do", "refuses", "run"})
REFUSED = frozenset({"floatingip create", "floatingip delete", "floatingip show"})
"""Commands for features that the service does not have."""
NOT_LOADED = "host unset"
"""The stock client names a wrong class for this command. Our command takes its place."""


def commands() -> set[str]:
    """Return the commands of the stock client, without their first word."""
    points = distribution("python-blazarclient").entry_points.select(group=GROUP)
    return {each.name.removeprefix("reservation_").replace("_", " ") for each in points}


def run_words(accepting: bool) -> Iterator[str]:
    """Yield the literal words with which each command of the tests begins, joined by spaces."""
    for source in SOURCES:
        tree = ast.parse((FOLDER / source).read_text(encoding="utf-8"))
        for each in ast.walk(tree):
            if not isinstance(each, ast.Call) or not isinstance(each.func, ast.Attribute):
                continue
            is_refusal = each.func.attr == "refuses"
            if each.func.attr in RUNNERS and not (accepting and is_refusal):
                words = [e.value for e in each.args if isinstance(e, ast.Constant)]
                yield " ".join(map(str, words))


def without(accepting: bool) -> set[str]:
    """Return the commands that no test runs, or that no test runs ``accepting``."""
    run = list(run_words(accepting))
    return {each for each in commands() if not any(f"{r} ".startswith(f"{each} ") for r in run)}


def test_each_command_is_run() -> None:
    assert len(commands()) > 15
    assert NOT_LOADED in commands()
    assert without(accepting=False) == set()


def test_each_command_succeeds_somewhere_unless_it_must_not() -> None:
    assert without(accepting=True) == REFUSED
