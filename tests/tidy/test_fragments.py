"""Fragments of the change log: of a known type, short, and in plain English."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator

from tests.tidy.exceptions import judge
from tests.tidy.prose import SENTENCE_END, of_language, paragraphs
from tests.tidy.tree import ROOT, File, Finding, files

FOLDER = "changelog.d"
TYPES = ("safety", "feature", "fix", "internal", "removal")
NAME = re.compile(rf"\+[a-z0-9]+(-[a-z0-9]+)*\.({'|'.join(TYPES)})\.md")
SENTENCES_MAX = 4
NOTE_LINES_MAX = 80
"""The most lines of a release note."""


def fragments() -> tuple[File, ...]:
    return tuple(file for file in files(FOLDER) if file.name != "README.md")


def _findings(found: Iterable[File]) -> Iterator[Finding]:
    for file in found:
        if NAME.fullmatch(file.name) is None:
            yield Finding(file.path, 1, f"not named +<slug>.<{'|'.join(TYPES)}>.md")
        reported = list(paragraphs(file.text))
        sentences = [each for part in reported for each in SENTENCE_END.split(part.text)]
        if len(reported) != 1 or not reported[0].is_prose or not reported[0].text.endswith("."):
            yield Finding(file.path, 1, "not one paragraph of sentences")
        if len(sentences) > SENTENCES_MAX:
            yield Finding(file.path, 1, f"{len(sentences)} sentences")
        yield from of_language(file)


def test_the_types_are_those_of_the_tool() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    known = settings["tool"]["towncrier"]["type"]
    assert tuple(each["directory"] for each in known) == TYPES


def test_fragments_have_a_type_and_are_short() -> None:
    judge("fragment", _findings(fragments()))


def test_violations_are_found() -> None:
    bad = {
        "+name.changed.md": "It is faster.",
        "name.fix.md": "It is faster.",
        "+rows.fix.md": "| a | row |",
        "+open.fix.md": "It has no end",
        "+two.fix.md": "One paragraph.\n\nAnother one.",
        "+many.fix.md": "One. Two. Three. Four. Five.",
        "+long.fix.md": " ".join(["word"] * 41) + ".",
    }
    for name, text in bad.items():
        found = list(_findings([File(f"{FOLDER}/{name}", text)]))
        assert len(found) == 1, (name, found)
    good = "One sentence about `--code a.b`.\nAnother one. A third."
    assert list(_findings([File(f"{FOLDER}/+good-one.feature.md", good)])) == []


def test_release_notes_are_short() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    _, *notes = re.split(r"(?m)^## ", text)
    assert notes
    for note in notes:
        assert len(note.strip().splitlines()) <= NOTE_LINES_MAX, note[:20]
