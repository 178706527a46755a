"""Runs a real service in this process, on a free port, for tests that use HTTP."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import uvicorn
import yaml

from innkeeper.domain.ids import Clock
from innkeeper.entrypoints.api.listening import config_of
from innkeeper.entrypoints.api.logs import set_up_logs
from innkeeper.settings import load
from innkeeper.wiring import Service, now
from tests.support.trust import NOBODY

START_WITHIN_S = 60.0


class Running:
    """A started service and a client for it."""

    def __init__(self, service: Service, url: str) -> None:
        self.service = service
        self.url = url
        self.http = httpx.Client(base_url=url, timeout=30.0, verify=NOBODY)

    def admin_password(self) -> str | None:
        """Return the password that the first start wrote for the administrator, or ``None``."""
        path = Path(self.service.settings.storing.data_dir) / "clouds.yaml"
        if not path.exists():
            return None
        clouds = yaml.safe_load(path.read_text(encoding="utf-8"))["clouds"]
        return str(clouds["innkeeper"]["auth"]["password"])

    def call(self, method: str, path: str, token: str | None = "admin", **more: Any) -> Any:
        """Send one request; ``token`` goes into its header."""
        headers = dict(more.pop("headers", {}))
        if token is not None:
            headers.setdefault("x-auth-token", token)
        return self.http.request(method, path, headers=headers, **more)


@contextmanager
def running(data_dir: Path, **settings: Any) -> Iterator[Running]:
    """Serve with these settings until the block ends; by default, ``auth`` is ``none``.

    A ``clock`` among the settings is the service's clock.
    """
    clock: Clock = settings.pop("clock", now)
    overrides = {"auth": "none", "data_dir": str(data_dir), "log_level": "warning", **settings}
    loaded = load(None, environ={}, overrides=overrides)
    set_up_logs(loaded.serving)
    service = Service(loaded, clock=clock)
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    server = uvicorn.Server(config_of(service.app, loaded.serving))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    service.start()
    service.prepare_logins(f"http://127.0.0.1:{port}")
    thread.start()
    started = Running(service, f"http://127.0.0.1:{port}")
    try:
        _wait(started)
        yield started
    finally:
        started.http.close()
        service.engine.wakeups.stop()
        server.should_exit = True
        thread.join(START_WITHIN_S)
        service.stop()
        listener.close()


def _wait(started: Running) -> None:
    transport = httpx.HTTPTransport(retries=10, verify=NOBODY)
    with httpx.Client(transport=transport, base_url=started.url, verify=NOBODY) as client:
        assert client.get("/healthz").text == "ok"
