"""Two services for an import, and the program that carries it out."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tests.compat.openstack_command import environment
from tests.support.forked import SOURCE
from tests.support.original import Original
from tests.support.placement_world import World
from tests.support.running import Running

Run = Callable[..., tuple[int, str, str]]
EVERYTHING = "equal: 12 providers, 19 consumers\n"
"""The final output of a complete import."""


def of_original(peer: Original) -> World:
    def call(method: str, path: str, body: Any = None, version: str = "1.39") -> Any:
        answer = peer.call(method, path, version=version, body=body)
        assert answer.is_success, f"{method} {path}: {answer.text}"
        return answer.json() if answer.content else None

    return World(call)


def of_ours(service: Running, prefix: str = "/placement") -> World:
    def call(method: str, path: str, body: Any = None, version: str = "1.39") -> Any:
        headers = {"openstack-api-version": f"placement {version}"}
        answer = service.call(method, prefix + path, json=body, headers=headers)
        assert answer.is_success, f"{method} {path}: {answer.text}"
        return answer.json() if answer.content else None

    return World(call)


def words(from_url: str, to_url: str) -> list[str]:
    return [
        *("placement-import", "--from-url", from_url, "--from-token", "admin"),
        *("--to-url", to_url, "--to-token", "admin"),
    ]


def at(service: Running) -> str:
    return f"{service.url}/placement"


def generations(world: World) -> dict[str, int]:
    rows = world.call("GET", "/resource_providers")["resource_providers"]
    return {row["uuid"]: row["generation"] for row in rows}


@contextmanager
def begun(from_url: str, to_url: str, *more: str) -> Iterator[subprocess.Popen[str]]:
    """The program in a process of its own; kills it if it still runs at the end."""
    program = subprocess.Popen(
        [sys.executable, "-m", "innkeeper.main", *words(from_url, to_url), *more],
        env=environment(PYTHONPATH=str(SOURCE)),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with program:
        try:
            yield program
        finally:
            program.kill()


def until(program: subprocess.Popen[str], moment: str) -> None:
    """Wait until the program reports this progress."""
    assert program.stderr is not None
    assert any(line.startswith(moment) for line in program.stderr), "It ended before."
