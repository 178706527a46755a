"""An agent beside the measured service, which carries the builds out meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.running import Started


@contextmanager
def agent_beside(directory: Path, service: Started, hosts: int) -> Iterator[None]:
    """Run the real agent with its fake driver until the block ends; wait for its hosts."""
    raise NotImplementedError
    yield
