"""Markdown and source, as the rules about language read them.

Always true: code blocks are left out. Inline code counts as one word, and a link as its text.
``python -m tests.tidy.prose PATH ...`` lists the violations.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tests.tidy.tree import File, Finding, files

WORDS_MAX = 40
COLUMNS_MAX = 100
WHO = re.compile(
    r"\b(of|to|by|from|for|with|at|on|in|about|against|behind|between|than|as|until)"
    r"\s+who(m|ever|mever)?\b",
    re.IGNORECASE,
)
WHOEVER = re.compile(r"\bwho(m|so)?ever('s)?\b", re.IGNORECASE)
HE = re.compile(r"\b(he|his|him|himself)\b", re.IGNORECASE)
FENCE = re.compile(r"\s*(```|:::)")
NO_SENTENCE = re.compile(r"\s*(\||<!--|#)")
"""Table rows, comments and headings: only the rules about words apply to them."""
ITEM = re.compile(r"^\s*([-*]|\d{1,2}\.) ")
"""A longer number at the beginning of a line may end a sentence."""
LITERAL_BLOCK = re.compile(r"::\n\n(?:(?: +[^\n]*)?(?:\n|$))+")
"""The indented lines behind ``::``, which are code."""
SENTENCE_END = re.compile(r"(?<=[.!?])[*\")]*\s+")


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Lines that belong together, and the number of the first."""

    line: int
    text: str
    is_prose: bool


def paragraphs(text: str) -> Iterator[Paragraph]:
    """Yield the paragraphs, list items, table rows and headings outside of code blocks."""
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
    text = re.sub(r"(`+)[^`]+\1", "code", text)
    return re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)


def findings(file: File) -> Iterator[Finding]:
    """Find violations in a Markdown file."""
    yield from of_language(file)
    yield from _wide_lines(file)


def of_language(file: File) -> Iterator[Finding]:
    """Find violations of the rules about words and sentences."""
    for paragraph in paragraphs(file.text):
        yield from _of_paragraph(file, paragraph, (WHO, HE))


def of_source(file: File) -> Iterator[Finding]:
    """Find violations in the docstrings, comments and texts of a module."""
    for paragraph in written_in(file):
        yield from _of_paragraph(file, paragraph, (WHO, WHOEVER, HE))


def _of_paragraph(
    file: File, paragraph: Paragraph, banned: Sequence[re.Pattern[str]]
) -> Iterator[Finding]:
    for pattern in banned:
        for match in pattern.finditer(paragraph.text):
            yield Finding(file.path, paragraph.line, f"'{match[0]}'")
    if paragraph.is_prose:
        for sentence in SENTENCE_END.split(paragraph.text):
            count = len(re.findall(r"\S*\w\S*", sentence))
            if count > WORDS_MAX:
                yield Finding(file.path, paragraph.line, f"{count} words: {sentence}")


def written_in(file: File) -> Iterator[Paragraph]:
    """Yield the docstrings and comments of a module, and its texts of several words."""
    read = set()
    for node in ast.walk(file.tree()):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            read.add(node.value)
            text = node.value.value
            prose = (
                LITERAL_BLOCK.sub(":\n\n", inspect.cleandoc(text)) if isinstance(text, str) else ""
            )
            for each in paragraphs(prose):
                plain = re.sub(r"``[^`]*``|:\w+:`[^`]*`", "code", each.text)
                yield Paragraph(node.lineno + each.line - 1, plain, each.is_prose)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in read:
            yield Paragraph(node.lineno, node.value, is_prose=False)
    gathered: list[str] = []
    for number, line in enumerate([*file.text.splitlines(), ""], start=1):
        if line.lstrip().startswith("# "):
            gathered.append(line.lstrip()[2:])
        elif gathered:
            yield Paragraph(number - len(gathered), _plain(" ".join(gathered)), is_prose=True)
            gathered = []


def _wide_lines(file: File) -> Iterator[Finding]:
    is_code = False
    for number, line in enumerate(file.text.splitlines(), start=1):
        if line.lstrip().startswith("```"):
            is_code = not is_code
        is_exempt = is_code or line.lstrip().startswith("|") or "](" in line
        if len(line) > COLUMNS_MAX and not is_exempt:
            yield Finding(file.path, number, f"{len(line)} columns: {line}")


def main(places: Sequence[str]) -> int:
    """Print the violations in files and folders; returns their number."""
    count = 0
    for file in files():
        if file.path.startswith(tuple(places)):
            rules = of_source if file.path.endswith(".py") else findings
            for found in rules(file) if file.path.endswith((".py", ".md")) else ():
                print(found)  # noqa: T201 - a command's output
                count += 1
    return count


if __name__ == "__main__":
    sys.exit(min(1, main(sys.argv[1:])))
