"""The measurable rules of plain English, and the files that must keep them.

The lists of files may only grow.
"""

from __future__ import annotations

import pytest

from tests.tidy.exceptions import judge
from tests.tidy.prose import findings, of_source
from tests.tidy.tree import File, files, python_files

HELD = (
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "README.md",
    "SECURITY.md",
    "changelog.d/",
    "docs/",
)
"""Markdown files and folders that have been edited."""
HELD_SOURCE = ("src/", "tests/", "benchmarks/", "docs/")
"""Folders whose docstrings, comments and texts are judged."""
QUOTES_VIOLATIONS = ("tests/tidy/prose.py", "tests/tidy/test_plain_english.py")
"""The rules themselves and their samples."""


def held() -> tuple[File, ...]:
    markdown = [file for file in files() if file.path.endswith(".md")]
    return tuple(file for file in markdown if file.path.startswith(HELD))


def test_the_list_names_existing_files() -> None:
    paths = [file.path for file in held()]
    assert [each for each in HELD if not any(path.startswith(each) for path in paths)] == []


def test_prose_is_plain() -> None:
    judge("plain-english", (found for file in held() for found in findings(file)))


def test_source_is_plain() -> None:
    source = [file for folder in HELD_SOURCE for file in python_files(folder)]
    judged = [file for file in source if file.path not in QUOTES_VIOLATIONS]
    judge("plain-source", (found for file in judged for found in of_source(file)))


LONG = "\n".join(["a word"] * 20 + ["more"])
"""41 words on short lines."""
ROW = LONG.replace("\n", " ")


@pytest.mark.parametrize(
    ("text", "line", "reported"),
    [
        ("The word of\nwhoever asks.\n", 1, "'of whoever'"),
        ("# One\n\n| A | of who has it |\n", 3, "'of who'"),
        ("The user has his own.\n", 1, "'his'"),
        (f"Short.\nThis: {LONG}.\n", 1, "42 words"),
        (f"- short\n- {LONG}\n", 2, "41 words"),
        ("a" * 101 + "\n", 1, "101 columns"),
    ],
)
def test_violations_are_found(text: str, line: int, reported: str) -> None:
    (found,) = findings(File("page.md", text))
    assert found.line == line
    assert found.text.startswith(reported)


@pytest.mark.parametrize(
    "text",
    [
        f"```\nof who, he\n{LONG}\n{'a' * 101}\n```\n",
        f"| {ROW} |\n",
        f"`{LONG}` counts as one word.\n",
        f"[a link]({'a' * 101})\n",
        f"{LONG[:99]}.\nThe client asks, and the operator, who knows, answers.\n",
        f"- {LONG[:99]}\n- {LONG[:99]}\n",
    ],
)
def test_other_text_is_allowed(text: str) -> None:
    assert list(findings(File("page.md", text))) == []


@pytest.mark.parametrize(
    ("text", "line", "reported"),
    [
        ('"""The client\nof whom it knows."""\n', 1, "'of whom'"),
        ('def f():\n    """Short.\n\n    Whoever asks."""\n', 4, "'Whoever'"),
        ("x = 1\n# The user\n# has his own.\n", 2, "'his'"),
        ('x = "The user has his own."\n', 1, "'his'"),
        (f'"""{LONG}."""\n', 1, "41 words"),
    ],
)
def test_violations_in_source_are_found(text: str, line: int, reported: str) -> None:
    (found,) = of_source(File("module.py", text))
    assert found.line == line
    assert found.text.startswith(reported)


def test_other_source_is_allowed() -> None:
    text = f'"""``{ROW}`` counts as one word."""\nhis = "{ROW}"\n'
    assert list(of_source(File("module.py", text))) == []
