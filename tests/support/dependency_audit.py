"""Checks whether a pinned package has a known vulnerability; "make check" runs it.

Always true: it fails only for a known vulnerability. Without a network, or with an index without
vulnerability data, it reports that nothing was checked, and passes.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

COMMAND = (
    "pip-audit",
    "--no-deps",
    "--disable-pip",
    "--progress-spinner=off",
    "--timeout=10",
    "--format=json",
)
"""The command, which audits only the pinned packages, and resolves and downloads nothing."""
AUDIT_TIMEOUT_S = 180.0


def judge(report: str) -> tuple[int, list[str]]:
    """Return the exit status for a report, which may be empty, and the lines to print."""
    try:
        packages: list[dict[str, Any]] = json.loads(report)["dependencies"]
    except (ValueError, KeyError, TypeError):
        return 0, ["The packages were not checked for vulnerabilities: there is no answer."]
    looked_at = [each for each in packages if "skip_reason" not in each]
    found = [
        f"{each['name']} {each['version']}: {weakness['id']}"
        + (f", fixed in {', '.join(weakness['fix_versions'])}" if fixed(weakness) else "")
        for each in looked_at
        for weakness in each.get("vulns", ())
    ]
    if found:
        return 1, ["Packages with known vulnerabilities:", *found]
    if not looked_at:
        return 0, ["The packages were not checked for vulnerabilities: the index has no data."]
    left = len(packages) - len(looked_at)
    also = f"; the index has no data about {left}" if left else ""
    return 0, [f"No known vulnerability in {len(looked_at)} packages{also}."]


def fixed(weakness: dict[str, Any]) -> bool:
    """Whether a version without the vulnerability exists."""
    return bool(weakness.get("fix_versions"))


def main(files: Sequence[str]) -> int:
    """Audit the pins in these files."""
    # The pip-audit of this environment, beside its interpreter.
    command = [sys.executable, "-m", COMMAND[0].replace("-", "_"), *COMMAND[1:]]
    for file in files:
        command += ["--requirement", file]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=AUDIT_TIMEOUT_S
        )
        report = done.stdout
    except subprocess.TimeoutExpired:
        report = ""
    status, lines = judge(report)
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    return status


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
