"""Runs a cloud of OpenStack's own code: Keystone, Placement, Glance, Neutron, Nova and Cinder.

No part of them is replaced. Nova's fake driver provides the host, Cinder's fake driver the volumes,
and Neutron has no agents.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path

import httpx

from tests.support.openstack.settings import PASSWORD, SERVICES, Site, Words
from tests.support.servers import mariadb
from tests.support.trust import NOBODY

ROOT = Path(__file__).resolve().parents[3]
START_WITHIN_S, STOP_WITHIN_S = 300.0, 60.0
LOG_CHARS = 4000
VERSIONS = (HTTPStatus.OK, HTTPStatus.MULTIPLE_CHOICES)
THREADS = {"OS_NOVA_DISABLE_EVENTLET_PATCHING": "1", "OS_CINDER_DISABLE_EVENTLET_PATCHING": "1"}
"""Nova and Cinder use threads of the system instead of eventlet's."""


@dataclass(frozen=True, slots=True)
class OpenStack:
    """A cloud. ``ports`` has the port of each service, and ``urls`` the addresses of the APIs."""

    folder: Path
    ports: Mapping[str, int]
    password: str = PASSWORD

    def at(self, name: str) -> str:
        """Return the address of a service, without the path of its API."""
        return f"http://127.0.0.1:{self.ports[name]}"

    @property
    def urls(self) -> dict[str, str]:
        """The addresses in the catalog, by type of service."""
        return {
            "identity": f"{self.at('keystone')}/v3",
            "placement": self.at("placement"),
            "image": self.at("glance"),
            "network": self.at("neutron"),
            "compute": f"{self.at('nova')}/v2.1",
            "block-storage": f"{self.at('cinder')}/v3",
        }

    @property
    def login(self) -> dict[str, str]:
        """The environment variables with which clients are the administrator."""
        return {
            "OS_AUTH_URL": self.urls["identity"],
            "OS_IDENTITY_API_VERSION": "3",
            "OS_USERNAME": "admin",
            "OS_PASSWORD": self.password,
            "OS_USER_DOMAIN_NAME": "Default",
            "OS_PROJECT_NAME": "admin",
            "OS_PROJECT_DOMAIN_NAME": "Default",
        }

    def wait_until_ready(self) -> None:
        """Wait until all services answer: connections wait in the queues of their sockets."""
        with httpx.Client(verify=NOBODY, timeout=START_WITHIN_S) as client:
            for name in self.ports:
                try:
                    status = client.get(f"{self.at(name)}/").status_code
                except httpx.HTTPError as error:
                    log = (self.folder / name / "log").read_text(encoding="utf-8")
                    message = f"{name} does not answer: {log[-LOG_CHARS:]}"
                    raise AssertionError(message) from error
                assert status in VERSIONS, f"{name} answers {status}"


@contextmanager
def openstack(folder: Path) -> Iterator[OpenStack]:
    """Start a cloud, and stop it when the block ends. It is not ready yet."""
    with ExitStack() as stack:

        def database() -> str:
            url = mariadb.shared().fresh()
            stack.callback(mariadb.shared().drop, url)
            return url.replace("mariadb:", "mysql+pymysql:")

        listeners = {
            name: stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=128))
            for name in SERVICES
        }
        ports = {name: each.getsockname()[1] for name, each in listeners.items()}
        cloud = OpenStack(folder, ports)
        for name, listener in listeners.items():
            home = folder / name
            home.mkdir(parents=True)
            words = SERVICES[name](Site(home, cloud.urls, database))
            stack.enter_context(_running(name, home, listener, words))
        yield cloud


@contextmanager
def _running(name: str, home: Path, listener: socket.socket, words: Words) -> Iterator[None]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith("OS_")}
    more = {f"OS_{name.upper()}_CONFIG_DIR": str(home), "HOME": str(home), **THREADS}
    module = f"tests.support.openstack.serve_{name}"
    with (home / "log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", module, str(listener.fileno()), *words],
            cwd=ROOT,
            env={**kept, **more},
            pass_fds=[listener.fileno()],
            stdout=log,
            stderr=log,
        )
    # Clients of a service that has ended must not wait.
    listener.close()
    try:
        yield
    finally:
        process.terminate()
        process.wait(STOP_WITHIN_S)
