"""Sources and targets for tests that import a running Placement."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from innkeeper.main import main
from tests.compat.moving import Run, of_original, words
from tests.support.original import Original, original
from tests.support.running import Running, running


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Original]:
    """A source that no test changes."""
    with original(tmp_path_factory.mktemp("filled")) as peer:
        of_original(peer).fill()
        yield peer


@pytest.fixture
def source(tmp_path: Path) -> Iterator[Original]:
    """A source of the test's own."""
    with original(tmp_path) as peer:
        yield peer


@pytest.fixture
def target(tmp_path: Path) -> Iterator[Running]:
    with running(tmp_path / "target", apis=("placement",)) as service:
        yield service


@pytest.fixture
def bring(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the command; returns its status, its findings and the rest of its output."""

    def run(from_url: str, to_url: str, *more: str) -> tuple[int, str, str]:
        capsys.readouterr()
        status = main([*words(from_url, to_url), *more])
        reported = capsys.readouterr()
        return status, reported.out, reported.err

    return run
