"""The installed package is the tested one: pins without addresses, and all files included."""

from __future__ import annotations

import re
import tomllib
from pathlib import PurePosixPath
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.tidy.tree import ROOT, SOURCE, walk

REQUIREMENTS = ROOT / "requirements"
PIN = re.compile(r"[a-z0-9-]+==[A-Za-z0-9.+!]+")


def project() -> dict[str, Any]:
    """Read the project file."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def lines(name: str) -> list[str]:
    """Read a requirements file without comments."""
    text = (REQUIREMENTS / name).read_text(encoding="utf-8")
    return [line for line in text.splitlines() if line and not line.lstrip().startswith("#")]


def pins(name: str) -> dict[str, str]:
    """Read a file of pins as a mapping from name to version."""
    return dict(line.split("==", 1) for line in lines(name))


def test_pins_are_names_and_exact_versions() -> None:
    """No option, no address, no path: only names and exact versions."""
    for name in ("runtime.txt", "dev.txt"):
        strange = [line for line in lines(name) if not PIN.fullmatch(line)]
        assert strange == []


def test_pins_keep_the_bounds() -> None:
    pinned = pins("dev.txt")
    for path in sorted(REQUIREMENTS.glob("*.in")):
        for line in lines(path.name):
            requirement = Requirement(line)
            version = pinned[canonicalize_name(requirement.name)]
            assert requirement.specifier.contains(version, prereleases=True), line


def test_the_tests_run_with_the_pinned_requirements() -> None:
    assert pins("runtime.txt").items() <= pins("dev.txt").items()


def test_every_file_is_shipped() -> None:
    """A wheel without its rules or templates starts, and fails later."""
    patterns = project()["tool"]["setuptools"]["package-data"]["innkeeper"]
    left_behind = [
        path.relative_to(SOURCE).as_posix()
        for path in walk(SOURCE)
        if path.suffix != ".py"
        and not any(matches(path.relative_to(SOURCE).as_posix(), p) for p in patterns)
    ]
    assert left_behind == []


def matches(path: str, pattern: str) -> bool:
    """Return whether a pattern of the project file matches a path below the package."""
    return PurePosixPath(path).match(pattern.removeprefix("**/"))


def test_packages_are_packages() -> None:
    """A folder of modules without ``__init__.py`` is left out of the wheel."""
    folders = {path.parent for path in walk(SOURCE) if path.suffix == ".py"}
    bare = [f.relative_to(ROOT).as_posix() for f in folders if not (f / "__init__.py").exists()]
    assert bare == []
