"""The verdicts of the dependency audit, without network access."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.dependency_audit import judge

GOOD = {"name": "a", "version": "1", "vulns": []}
BAD = {
    "name": "b",
    "version": "2",
    "vulns": [{"id": "PYSEC-1", "fix_versions": ["2.1"]}, {"id": "PYSEC-2"}],
}
SKIPPED = {"name": "c", "skip_reason": "not found"}


@pytest.mark.parametrize(
    ("packages", "status", "words"),
    [
        ([GOOD], 0, "No known vulnerability in 1 packages."),
        ([GOOD, SKIPPED], 0, "the index has no data about 1"),
        ([GOOD, BAD], 1, "b 2: PYSEC-1, fixed in 2.1\nb 2: PYSEC-2"),
        ([SKIPPED, BAD], 1, "b 2: PYSEC-1"),
        ([SKIPPED], 0, "not checked"),
        ([], 0, "not checked"),
    ],
)
def test_reports(packages: list[Any], status: int, words: str) -> None:
    judged, lines = judge(json.dumps({"dependencies": packages}))
    assert judged == status
    assert words in "\n".join(lines)


@pytest.mark.parametrize("report", ["", "no network", "[]", "{}", "null"])
def test_no_report_is_no_failure(report: str) -> None:
    status, lines = judge(report)
    assert status == 0
    assert "not checked" in lines[0]
