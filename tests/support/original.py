"""Runs OpenStack's own placement service, for tests that compare it with ours."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any

import httpx

from tests.support.trust import NOBODY

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = "tests.support.openstack.serve_placement"
STOP_WITHIN_S = 60.0


class Original:
    """A running OpenStack placement service, and a client for it."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.http = httpx.Client(base_url=url, timeout=60.0, verify=NOBODY)

    def call(
        self,
        method: str,
        path: str,
        *,
        version: str | None = "1.39",
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        token: str | None = "admin",
    ) -> httpx.Response:
        """Send one request; ``body`` is sent as JSON, or unchanged if it is ``bytes``."""
        sent = {} if token is None else {"x-auth-token": token}
        if version is not None:
            sent["openstack-api-version"] = f"placement {version}"
        sent.update(headers or {})
        if isinstance(body, bytes):
            return self.http.request(method, path, headers=sent, content=body)
        return self.http.request(method, path, headers=sent, json=body)


@contextmanager
def original(directory: Path, **conf: Any) -> Iterator[Original]:
    """Run the original with its own database until the block ends.

    A setting in ``conf`` is ``section__option=value``, or ``option=value`` in the default section.
    """
    folder = directory / "original"
    folder.mkdir()
    (folder / "placement.conf").write_text(_settings(folder, conf), encoding="utf-8")
    environ = {**os.environ, "OS_PLACEMENT_CONFIG_DIR": str(folder), "PYTHONPATH": str(ROOT)}
    with (
        socket.create_server(("127.0.0.1", 0), backlog=128) as listener,
        (folder / "log").open("wb") as log,
    ):
        port = listener.getsockname()[1]
        process = subprocess.Popen(
            [sys.executable, "-m", PROGRAM, str(listener.fileno())],
            cwd=folder,
            env=environ,
            pass_fds=[listener.fileno()],
            stdout=log,
            stderr=log,
        )
    peer = Original(f"http://127.0.0.1:{port}")
    try:
        # Connections wait in the socket's queue until the service is ready.
        assert peer.call("GET", "/", token=None).status_code == HTTPStatus.OK
        yield peer
    finally:
        peer.http.close()
        process.terminate()
        process.wait(STOP_WITHIN_S)


def _settings(folder: Path, conf: Mapping[str, Any]) -> str:
    sections: dict[str, dict[str, Any]] = {
        "DEFAULT": {"debug": "false"},
        "api": {"auth_strategy": "noauth2"},
        "placement_database": {
            "connection": f"sqlite:///{folder}/placement.db",
            "sync_on_startup": "true",
            # Its data need not survive the test.
            "sqlite_synchronous": "false",
        },
    }
    for name, value in conf.items():
        section, has_section, option = name.rpartition("__")
        sections.setdefault(section if has_section else "DEFAULT", {})[option] = value
    lines = []
    for section, options in sections.items():
        lines += [f"[{section}]", *(f"{name} = {value}" for name, value in options.items())]
    return "\n".join(lines) + "\n"
