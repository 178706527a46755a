"""The administrator's login at the first and at later starts."""

from __future__ import annotations

import stat
import subprocess
import sys
from datetime import datetime, timedelta
from pathlib import Path

import httpx
import pytest
import yaml

from tests.compat.openstack_command import Started, environment, started
from tests.support.forked import SOURCE
from tests.support.running import running
from tests.support.trust import NOBODY

pytestmark = pytest.mark.slow


def login(service: Started, user: str = "admin", password: str | None = None) -> int:
    """Log in with the file's password or another one; returns the status."""
    auth = yaml.safe_load(service.login_file.read_text())["clouds"]["innkeeper"]["auth"]
    who = {"name": user, "password": password or auth["password"], "domain": {"id": "default"}}
    body = {"auth": {"identity": {"methods": ["password"], "password": {"user": who}}}}
    return httpx.post(f"{auth['auth_url']}/auth/tokens", json=body, verify=NOBODY).status_code


def test_from_the_first_start_to_a_new_password(tmp_path: Path) -> None:
    with started(tmp_path) as service:
        first = service.login_file.read_text()
        assert login(service) == 201
        reported = "".join(service.reported)
    password = yaml.safe_load(first)["clouds"]["innkeeper"]["auth"]["password"]
    assert "first start" in reported
    assert password not in reported
    for path in (tmp_path / "clouds.yaml", tmp_path / "innkeeper.sqlite3"):
        assert stat.S_IMODE(path.stat().st_mode) == stat.S_IRUSR | stat.S_IWUSR

    with started(tmp_path) as service:
        assert "first start" not in "".join(service.reported)
        # The file has the new port; nothing else has changed.
        assert login(service) == 201
        second = yaml.safe_load(service.login_file.read_text())
        auth = second["clouds"]["innkeeper"]["auth"]
        assert auth["auth_url"] == f"{service.url}/identity/v3"
        assert auth["password"] == password

        ran = subprocess.run(
            [sys.executable, "-m", "innkeeper.main", "admin-password", "--data-dir", tmp_path],
            env=environment(PYTHONPATH=str(SOURCE)),
            capture_output=True,
            text=True,
            check=True,
        )
        assert str(service.login_file) in ran.stdout
        assert login(service) == 201
        assert login(service, password=password) == 401
        third = yaml.safe_load(service.login_file.read_text())
        assert third["clouds"]["innkeeper"]["auth"]["auth_url"] == auth["auth_url"]
        assert third["clouds"]["innkeeper"]["auth"]["password"] not in ran.stdout + ran.stderr


def test_a_token_that_has_ended(tmp_path: Path) -> None:
    config = tmp_path / "innkeeper.toml"
    config.write_text("token_lifetime_s = 0.001\n")
    with started(tmp_path, "--config", str(config)) as service:
        auth = yaml.safe_load(service.login_file.read_text())["clouds"]["innkeeper"]["auth"]
        who = {"name": "admin", "password": auth["password"], "domain": {"id": "default"}}
        body = {"auth": {"identity": {"methods": ["password"], "password": {"user": who}}}}
        answer = httpx.post(f"{auth['auth_url']}/auth/tokens", json=body, verify=NOBODY)
        token = answer.headers["x-subject-token"]
        asked = httpx.get(
            f"{auth['auth_url']}/projects", headers={"x-auth-token": token}, verify=NOBODY
        )
        assert asked.status_code == 401


def test_the_agent_beside_the_service_has_a_token(tmp_path: Path) -> None:
    with running(tmp_path, auth="builtin") as service:
        token = service.service.keep_agent_token().read_text().strip()
        answer = service.call(
            "GET", "/identity/v3/auth/tokens", token=token, headers={"x-subject-token": token}
        )
        shown = answer.json()["token"]
        assert [role["name"] for role in shown["roles"]] == ["service"]
        assert shown["project"]["name"] == "service"
        made, ends = (datetime.fromisoformat(shown[name]) for name in ("issued_at", "expires_at"))
        assert ends - made <= timedelta(hours=1)
        assert service.call("GET", "/identity/v3/users", token=token).status_code == 403
