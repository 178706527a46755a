"""Exceptions from the rules: each has a reason, and their number may only shrink.

``allowed/<rule>.txt`` begins with ``# at most N``. Every further line reads
``path | text ## reason``, with the path and the text that a failing rule prints. A line without a
finding must be removed, and N lowered. So a list can only grow with a raised N in the same change.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tests.tidy.tree import Finding

FOLDER = Path(__file__).parent / "allowed"
HEADER = re.compile(r"# at most (\d+)")
SEPARATOR = " ## "
REASON_WORDS_MIN = 4
"""A shorter reason explains nothing."""


@dataclass(frozen=True, slots=True)
class Allowed:
    """One exception list."""

    ceiling: int
    reasons: dict[str, str]


def read(rule: str, folder: Path = FOLDER) -> Allowed:
    """Read a rule's exceptions; a rule without a file has none."""
    path = folder / f"{rule}.txt"
    if not path.exists():
        return Allowed(0, {})
    header, *lines = path.read_text(encoding="utf-8").splitlines()
    match = HEADER.fullmatch(header)
    assert match, f"{path.name} must begin with '# at most N'."
    reasons = {}
    for line in lines:
        key, separator, reason = line.partition(SEPARATOR)
        assert separator, f"{path.name}: give a reason after '##': {line}"
        reasons[key.strip()] = reason.strip()
    return Allowed(int(match[1]), reasons)


def judge(
    rule: str, findings: Iterable[Finding], folder: Path = FOLDER, *, remedy: str = ""
) -> None:
    """Fail for every finding without an exception and every exception without a finding.

    ``remedy`` says what to do about a finding, unless the finding's text says so.
    """
    allowed = read(rule, folder)
    found = {item.key: item for item in findings}
    fresh = [str(item) for key, item in found.items() if key not in allowed.reasons]
    broken = [f"The rule '{rule}' is broken:", *fresh]
    assert not fresh, "\n".join([*broken, remedy] if remedy else broken)
    stale = [key for key in allowed.reasons if key not in found]
    assert not stale, "\n".join([f"allowed/{rule}.txt: these are not needed any more:", *stale])
