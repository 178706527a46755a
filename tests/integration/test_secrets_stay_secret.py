"""Tokens, passwords and keys appear in no log, error, metric or trace.

The program runs with the most verbose log and with traces. The test calls each route with a
token, and sends secrets in all the wrong ways that clients find.
"""

from __future__ import annotations

import base64
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from innkeeper.domain.slices import Serving
from innkeeper.entrypoints.api.tables import APIS
from tests.support.agents import WITHIN_S
from tests.support.forked import SOURCE
from tests.support.trust import NOBODY

AT = "Innkeeper serves on "
PASSWORDS = (
    "the-first-password",
    "the-second-password",
    "the-wrong-password",
    "the-admin-pass",
    "the-user-data-password",
)
PLAN_KEYS = ("c286696d887c9aa0611bbb3e2025a45b", "0f" * 32)
IDENTITY, COMPUTE = "/identity/v3", "/compute/v2.1"
JSON = {"content-type": "application/json"}
PLACEHOLDER = re.compile(r"\{[^}]*\}")
LENGTH_MIN = 12
"""Shorter words could occur by chance."""


class Collector(BaseHTTPRequestHandler):
    """Receives traces."""

    taken: list[bytes]

    def do_POST(self) -> None:
        """Store the request."""
        self.server.taken.append(  # type: ignore[attr-defined]
            self.rfile.read(int(self.headers["content-length"]))
        )
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Log nothing."""


@contextmanager
def collector() -> Iterator[HTTPServer]:
    """A collector of traces, which it keeps in ``taken``."""
    with HTTPServer(("127.0.0.1", 0), Collector) as server:
        server.taken = []  # type: ignore[attr-defined]
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join(WITHIN_S)


class Asking:
    """Sends requests; records the errors, and the secrets that were sent."""

    def __init__(self, url: str) -> None:
        self.http = httpx.Client(base_url=url, trust_env=False, timeout=30.0, verify=NOBODY)
        self.secrets: set[str] = {*PASSWORDS, *PLAN_KEYS}
        self.reported: list[str] = []

    def ask(self, method: str, path: str, token: str | None = None, **more: Any) -> Any:
        """Send a request."""
        headers = {**more.pop("headers", {})}
        if token is not None:
            self.secrets.add(token)
            headers.setdefault("x-auth-token", token)
        answer = self.http.request(method, path, headers=headers, **more)
        if answer.status_code >= 400:
            self.reported.append(f"{answer.headers} {answer.text}")
        if "x-subject-token" in answer.headers and answer.is_success:
            self.secrets.add(answer.headers["x-subject-token"])
        return answer

    def log_in(self, name: str, password: str, **auth: Any) -> str:
        """Log in; returns the token, or an empty text."""
        self.secrets.add(password)
        user = {"name": name, "domain": {"id": "default"}, "password": password}
        identity = {"methods": ["password"], "password": {"user": user}}
        body = {"auth": {"identity": identity, **auth}}
        answer = self.ask("POST", f"{IDENTITY}/auth/tokens", json=body)
        return str(answer.headers.get("x-subject-token", ""))


@contextmanager
def serving(folder: Path, endpoint: str) -> Iterator[tuple[str, Path]]:
    """Run the program with its most verbose log; yields its address and its log."""
    log = folder / "log"
    command = [sys.executable, "-m", "innkeeper.main", "serve", "--port", "0"]
    command += ["--data-dir", str(folder / "data"), "--demo-hosts", "1"]
    environ = {name: value for name, value in os.environ.items() if name[:3] != "OS_"}
    environ |= {
        "PYTHONPATH": str(SOURCE),
        "INNKEEPER_LOG_LEVEL": "debug",
        "INNKEEPER_TRACE_ENDPOINT": endpoint,
        "INNKEEPER_LOGIN_FAILURES_FREE": "100",
        "INNKEEPER_BUILD_PLAN_ENCRYPTION_KEY": ",".join(PLAN_KEYS),
    }
    with (
        log.open("w") as stream,
        subprocess.Popen(command, env=environ, stderr=stream, text=True) as program,
    ):
        try:
            while AT not in (text := log.read_text()) or "openstack" not in text:
                assert program.poll() is None, text
            yield text.split(AT)[1].split()[0], log
        finally:
            program.send_signal(signal.SIGTERM)
            program.wait(WITHIN_S)


def identity_requests(asking: Asking, admin: str) -> None:
    """All requests with a password or a token, right and wrong."""
    first, second, wrong, *_ = PASSWORDS
    user = {"user": {"name": "ann", "password": first}}
    made = asking.ask("POST", f"{IDENTITY}/users", admin, json=user).json()["user"]
    path = f"{IDENTITY}/users/{made['id']}"
    asking.ask("POST", f"{IDENTITY}/users", admin, json=user)
    asking.ask("POST", f"{IDENTITY}/users", admin, json={"user": {"password": first}})
    asking.ask("POST", f"{IDENTITY}/users", admin, json={"user": {"name": 1, "password": [first]}})
    asking.ask("POST", f"{IDENTITY}/users", admin, json={"user": {"passwort": second}})
    token = asking.log_in("ann", first)
    asking.log_in("ann", wrong)
    asking.log_in("nobody", wrong)
    asking.log_in("ann", first, scope={"project": {"name": "nowhere", "domain": {"id": "default"}}})
    asking.log_in("ann", first, scope={"wrong": first})
    asking.log_in("ann", first * 1000)
    for text in (
        f'{{"auth": {{"password": "{wrong}"',
        f'{{"auth": "{wrong}"}}',
        f'{{"auth": {{"identity": {{"methods": ["{wrong}"]}}}}}}',
        f'{{"auth": {{"identity": {{"methods": ["password"], "password": "{wrong}"}}}}}}',
        json.dumps({"auth": {"identity": {"methods": ["token"], "token": {"id": token + "x"}}}}),
        json.dumps({"auth": {"identity": {"methods": ["token"], "token": {"idd": token}}}}),
        json.dumps({"auth": {"identity": {"methods": ["token"], "token": token}}}),
        json.dumps({"auth": {"identity": {"methods": ["token"], "token": {"id": token}}}}),
    ):
        asking.ask("POST", f"{IDENTITY}/auth/tokens", content=text, headers=JSON)
    for body in (
        {"user": {"password": second, "original_password": wrong}},
        {"user": {"password": second, "original_password": [wrong]}},
        {"user": {"password": second}},
        {"user": {"password": second, "original_password": first}},
    ):
        asking.ask("POST", f"{path}/password", token, json=body)
    for each in (token, token[:-3], admin):
        for method in ("GET", "HEAD", "DELETE"):
            subject = {"x-subject-token": each}
            if (method, each) != ("DELETE", admin):
                asking.ask(method, f"{IDENTITY}/auth/tokens", admin, headers=subject)
    asking.ask("PATCH", path, admin, json={"user": {"password": first}})
    asking.ask("PATCH", path, admin, json={"user": {"password": [second], "name": "ann"}})


def compute_requests(asking: Asking, admin: str) -> None:
    """Requests of servers, keys and agents with secrets."""
    *_, admin_pass, in_user_data = PASSWORDS
    data = base64.b64encode(in_user_data.encode()).decode()
    asking.secrets.add(data)
    server = {"name": "a", "flavorRef": "none", "adminPass": admin_pass, "user_data": data}
    for body in (
        {"server": server},
        {"server": {**server, "user_data": in_user_data}},
        {"server": {**server, "adminPass": [admin_pass]}},
        {"server": {**server, "adminpass": admin_pass}},
        {"server": {**server, "blob": "AQ"}},
    ):
        asking.ask("POST", f"{COMPUTE}/servers", admin, json=body)
    keypair = {"keypair": {"name": "made"}}
    answer = asking.ask("POST", f"{COMPUTE}/os-keypairs", admin, json=keypair).json()
    asking.secrets |= set(answer["keypair"]["private_key"].splitlines()[1:-1])
    path = f"{COMPUTE}/os-agent-credentials"
    body = {"agent_credential": {"agent_name": "rack"}}
    made = asking.ask("POST", path, admin, json=body).json()["agent_credential"]
    asking.secrets.add(made["credential"].rpartition(".")[2])
    for text in (made["credential"], made["credential"][:-1] + "x"):
        asking.ask("POST", f"{COMPUTE}/os-agents", text, json={"agent": {"name": "b"}})
        asking.ask("GET", f"{COMPUTE}/servers", text)
        asking.ask("GET", f"{IDENTITY}/users", text)
    asking.ask("DELETE", f"{path}/{made['id']}", admin)
    asking.ask("POST", f"{COMPUTE}/os-agents", made["credential"], json={})


def all_routes(asking: Asking, admin: str) -> None:
    """Each route, with a token in the header, in the query and in wrong places."""
    for api in APIS.values():
        mount = getattr(Serving(), f"{api.name}_prefix")
        for route in api.routes:
            path = mount + PLACEHOLDER.sub("nothing", route.path)
            if route.path.endswith("/auth/tokens"):
                continue
            asking.ask(route.method, path, admin, json={})
            asking.ask(route.method, path, admin + "x", json={})
    asking.ask("GET", f"{COMPUTE}/nowhere?token={admin}", admin)
    asking.ask("GET", f"{COMPUTE}/servers?token={admin}&name={admin}", admin)
    asking.ask("GET", f"{COMPUTE}/servers", headers={"authorization": f"Bearer {admin}"})


def keys_at_rest(folder: Path) -> set[str]:
    """The keys of the service, in the forms in which they might appear."""
    lines = (folder / "encryption.key").read_text().splitlines()
    key = next(line for line in lines if not line.startswith("#"))
    found = {key, base64.urlsafe_b64decode(key).hex()}
    with sqlite3.connect(folder / "innkeeper.sqlite3") as database:
        sealed = database.execute("SELECT value FROM secrets WHERE name = 'token_signing'")
        found.add(sealed.fetchone()[0].rpartition(".")[2])
        hashes = database.execute("SELECT password_hash FROM users WHERE password_hash <> ''")
        found |= {row[0] for row in hashes.fetchall()}
    database.close()
    return found


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> tuple[set[str], dict[str, str]]:
    """All secrets, and all outputs that could contain them."""
    folder = tmp_path_factory.mktemp("secrets")
    with collector() as traces:
        endpoint = f"http://127.0.0.1:{traces.server_port}/v1/traces"
        with serving(folder, endpoint) as (url, log):
            asking = Asking(url)
            clouds = yaml.safe_load((folder / "data" / "clouds.yaml").read_text())
            password = clouds["clouds"]["innkeeper"]["auth"]["password"]
            project = {"project": {"name": "admin", "domain": {"id": "default"}}}
            admin = asking.log_in("admin", password, scope=project)
            assert admin, asking.reported
            asking.secrets.add((folder / "data" / "agent.token").read_text().strip())
            identity_requests(asking, admin)
            compute_requests(asking, admin)
            all_routes(asking, admin)
            metrics = asking.http.get("/metrics").text
            openapi = asking.http.get("/openapi.json").text
            asking.http.close()
        asking.secrets |= keys_at_rest(folder / "data")
        texts = {
            "log": log.read_text(),
            "refusals": "\n".join(asking.reported),
            "metrics": metrics,
            "openapi": openapi,
            "traces": b"".join(traces.taken).decode("latin-1"),  # type: ignore[attr-defined]
        }
    return asking.secrets, texts


@pytest.mark.parametrize("where", ["log", "refusals", "metrics", "openapi", "traces"])
def test_no_output_holds_a_secret(seen: tuple[set[str], dict[str, str]], where: str) -> None:
    secrets, texts = seen
    assert len(texts[where]) > 1000, "there is something to look through"
    assert len(secrets) > 20
    reported = {
        secret for secret in secrets if len(secret) >= LENGTH_MIN and secret in texts[where]
    }
    assert reported == set()
    assert "$argon2" not in texts[where]


def test_the_log_still_records_the_requests(seen: tuple[set[str], dict[str, str]]) -> None:
    _, texts = seen
    assert texts["log"].count("event=request") > 300
    assert "path=/identity/v3/auth/tokens" in texts["log"]
    assert "identity/v3/auth/tokens" in texts["traces"]
