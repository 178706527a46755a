"""The part of plain English that can be measured, in the files that are held to it.

The list of files only gets longer.
"""

from __future__ import annotations

import pytest

from tests.tidy.exceptions import judge
from tests.tidy.prose import findings
from tests.tidy.tree import File, files

HELD = (
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "README.md",
    "SECURITY.md",
    "changelog.d/",
    "docs/",
)
"""Files and folders that have been edited."""


def held() -> tuple[File, ...]:
    markdown = [file for file in files() if file.path.endswith(".md")]
    return tuple(file for file in markdown if file.path.startswith(HELD))


def test_the_list_names_existing_files() -> None:
    paths = [file.path for file in held()]
    assert [each for each in HELD if not any(path.startswith(each) for path in paths)] == []


def test_prose_is_plain() -> None:
    judge("plain-english", (found for file in held() for found in findings(file)))


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
