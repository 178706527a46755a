"""The exception lists are short, and each entry is needed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.tidy import exceptions
from tests.tidy.exceptions import judge, read
from tests.tidy.tree import Finding, python_files

LISTS = sorted(path.stem for path in exceptions.FOLDER.glob("*.txt"))
RULE_IN_USE = re.compile(r'judge\(\s*"([a-z-]+)"')


def test_lists_hold_no_more_than_they_say() -> None:
    lengths = {rule: (len(read(rule).reasons), read(rule).ceiling) for rule in LISTS}
    assert all(count == ceiling > 0 for count, ceiling in lengths.values()), lengths


def test_every_exception_has_a_reason() -> None:
    shrugs = [
        f"{rule}: {key}"
        for rule in LISTS
        for key, reason in read(rule).reasons.items()
        if len(reason.split()) < exceptions.REASON_WORDS_MIN
    ]
    assert shrugs == []


def test_every_list_belongs_to_a_rule() -> None:
    rules = {
        rule
        for file in python_files("tests/tidy")
        if file.name != "test_exceptions.py"
        for rule in RULE_IN_USE.findall(file.text)
    }
    assert set(LISTS) <= rules


def test_a_finding_without_an_exception_fails(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="is broken"):
        judge("example", [Finding("a.py", 1, "x")], tmp_path)


def test_an_exception_covers_its_finding_and_fails_without_it(tmp_path: Path) -> None:
    (tmp_path / "example.txt").write_text("# at most 1\na.py | x ## it is needed until then\n")
    judge("example", [Finding("a.py", 7, "x")], tmp_path)
    with pytest.raises(AssertionError, match="not needed any more"):
        judge("example", [], tmp_path)
