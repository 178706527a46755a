"""A temporary etcd on this machine, as Patroni's configuration store."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

from tests.support.servers import packages
from tests.support.servers.ports import take_port

START_WITHIN_S = 90.0


class Etcd:
    """One server with one member, which is enough for a test."""

    def __init__(self) -> None:
        self._server = packages.find("etcd", "etcd-server")
        self.port, self._peer_port = take_port(), take_port()
        self.folder = Path(tempfile.mkdtemp(prefix="innkeeper-etcd-"))
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, after a crash too, and wait until it answers."""
        own, peers = f"http://127.0.0.1:{self.port}", f"http://127.0.0.1:{self._peer_port}"
        words = [
            # With the v3 API, Patroni sometimes acts on stale state.
            "--enable-v2",
            f"--data-dir={self.folder / 'data'}",
            f"--listen-client-urls={own}",
            f"--advertise-client-urls={own}",
            f"--listen-peer-urls={peers}",
            f"--initial-advertise-peer-urls={peers}",
            f"--initial-cluster=default={peers}",
        ]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [self._server, *words],
                stdout=log,
                stderr=log,
                cwd=self.folder,
                start_new_session=True,
            )
        deadline = time.monotonic() + START_WITHIN_S
        while not self.answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError((self.folder / "log").read_text()[-2_000:])
            time.sleep(0.05)

    def answers(self) -> bool:
        """Whether it answers and has a quorum."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/health", timeout=2) as it:
                return b'"true"' in it.read()
        except (urllib.error.URLError, OSError):
            return False

    def kill(self) -> None:
        """Kill it, like a power failure."""
        assert self._process is not None, "it was never started"
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        """Stop it, and remove its folder."""
        if self._process is not None and self._process.poll() is None:
            self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)
