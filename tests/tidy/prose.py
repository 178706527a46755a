"""Markdown as the rules about language look at it: paragraphs, sentences and columns.

Always true: code blocks are left out. Inline code counts as one word, and a link as its text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tests.tidy.tree import File, Finding

WORDS_MAX = 40
COLUMNS_MAX = 120
WHO = re.compile(
    r"\b(of|to|by|from|for|with|at|on|in|about|against|behind|between|than|as|until)"
    r"\s+who(m|ever|mever)?\b",
    re.IGNORECASE,
)
HE = re.compile(r"\b(he|his|him|himself)\b", re.IGNORECASE)
FENCE = re.compile(r"\s*(```|:::)")
NO_SENTENCE = re.compile(r"\s*(\||<!--|#)")
"""Table rows, comments and headings: of them the rules about words alone are asked."""
ITEM = re.compile(r"^\s*([-*]|\d{1,2}\.) ")
"""A line may begin with a number of more digits that ends a sentence."""
SENTENCE_END = re.compile(r"(?<=[.!?])[*\")]*\s+")


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Lines that are read together, and the number of the first."""

    line: int
    text: str
    is_prose: bool


def paragraphs(text: str) -> Iterator[Paragraph]:
    """Give the paragraphs, list items, table rows and headings outside of code blocks."""
    gathered: list[str] = []
    begin, is_code = 0, False
    for number, line in enumerate([*text.splitlines(), ""], start=1):
        is_fence = FENCE.match(line) is not None
        is_alone = NO_SENTENCE.match(line) is not None
        ends = is_fence or is_code or is_alone or not line.strip() or ITEM.match(line)
        if ends and gathered:
            yield Paragraph(begin, _plain(" ".join(gathered)), is_prose=True)
            gathered = []
        if is_fence:
            is_code = not is_code if "```" in line else is_code
        elif is_alone and not is_code:
            yield Paragraph(number, _plain(line), is_prose=False)
        elif line.strip() and not is_code:
            begin = begin if gathered else number
            gathered.append(ITEM.sub("", line).strip())


def _plain(text: str) -> str:
    text = re.sub(r"`[^`]*`", "code", text)
    return re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)


def findings(file: File) -> Iterator[Finding]:
    """Tell what in a file breaks a rule."""
    yield from of_language(file)
    yield from _wide_lines(file)


def of_language(file: File) -> Iterator[Finding]:
    """Tell what breaks a rule about words and sentences."""
    for paragraph in paragraphs(file.text):
        for pattern in (WHO, HE):
            for match in pattern.finditer(paragraph.text):
                yield Finding(file.path, paragraph.line, f"'{match[0]}'")
        if paragraph.is_prose:
            for sentence in SENTENCE_END.split(paragraph.text):
                count = len(re.findall(r"\S*\w\S*", sentence))
                if count > WORDS_MAX:
                    yield Finding(file.path, paragraph.line, f"{count} words: {sentence}")


def _wide_lines(file: File) -> Iterator[Finding]:
    is_code = False
    for number, line in enumerate(file.text.splitlines(), start=1):
        if line.lstrip().startswith("```"):
            is_code = not is_code
        is_exempt = is_code or line.startswith("|") or "](" in line
        if len(line) > COLUMNS_MAX and not is_exempt:
            yield Finding(file.path, number, f"{len(line)} columns: {line}")
