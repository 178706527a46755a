"""A temporary HAProxy on this machine, in front of several services."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path

from tests.support.servers import packages
from tests.support.servers.ports import take_port

START_WITHIN_S = 90.0
SETTINGS = """\
global
    maxconn 2000
defaults
    mode http
    timeout connect 1s
    timeout client 60s
    timeout server 60s
    timeout check 1s
    option redispatch
    retries 2
frontend all
    bind 127.0.0.1:{port}
    default_backend services
backend services
    balance roundrobin
    option httpchk GET /readyz
    default-server check inter 300ms fall 2 rise 1
{servers}
"""


class Haproxy:
    """One proxy, which checks each service's readiness and sends requests to the ready ones.

    A request goes to another service only if the connection to the first one failed: a request
    that was sent may have been carried out.
    """

    def __init__(self, ports: Sequence[int]) -> None:
        self._program = packages.find("haproxy", "haproxy")
        self.port = take_port()
        self.folder = Path(tempfile.mkdtemp(prefix="innkeeper-haproxy-"))
        servers = "\n".join(f"    server at{each} 127.0.0.1:{each}" for each in ports)
        self._settings = self.folder / "haproxy.cfg"
        self._settings.write_text(SETTINGS.format(port=self.port, servers=servers))
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, and wait until it has found a service that is ready."""
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [self._program, "-db", "-f", self._settings], stdout=log, stderr=log
            )
        deadline = time.monotonic() + START_WITHIN_S
        while not self.answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError((self.folder / "log").read_text()[-2_000:])
            time.sleep(0.05)

    def answers(self) -> bool:
        """Whether a service answers through it."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/readyz", timeout=2) as it:
                return bool(it.status == 200)
        except (urllib.error.URLError, OSError):
            return False

    def close(self) -> None:
        """Stop it, and remove its folder."""
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)
