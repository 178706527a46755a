"""Tokens of an external Keystone: another Innkeeper takes its place, over real HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from innkeeper.settings import SettingsError
from tests.support.running import Running, running

ME = {"keystone_user": "innkeeper", "keystone_password": "our-secret"}


def log_in(keystone: Running, user: str, password: str, project: str) -> str:
    domain = {"domain": {"id": "default"}}
    who = {"user": {"name": user, "password": password, **domain}}
    identity = {"methods": ["password"], "password": who}
    scope = {"project": {"name": project, **domain}}
    answer = keystone.call(
        "POST",
        "/identity/v3/auth/tokens",
        token=None,
        json={"auth": {"identity": identity, "scope": scope}},
    )
    assert answer.status_code == 201, answer.text
    return str(answer.headers["x-subject-token"])


def admin(keystone: Running) -> str:
    return log_in(keystone, "admin", str(keystone.admin_password()), "admin")


def add_user(keystone: Running, name: str, password: str, project: str, role: str) -> None:
    token = admin(keystone)

    def ask(method: str, path: str, **more: Any) -> Any:
        answer = keystone.call(method, f"/identity/v3/{path}", token=token, **more)
        assert answer.is_success, answer.text
        return answer.json() if answer.content else None

    body = {"user": {"name": name, "password": password}}
    user_id = ask("POST", "users", json=body)["user"]["id"]
    project_id = ask("GET", f"projects?name={project}")["projects"][0]["id"]
    role_id = ask("GET", f"roles?name={role}")["roles"][0]["id"]
    ask("PUT", f"projects/{project_id}/users/{user_id}/roles/{role_id}")


@pytest.fixture
def keystone(tmp_path: Path) -> Iterator[Running]:
    with running(tmp_path / "keystone", auth="builtin") as started:
        add_user(started, "innkeeper", "our-secret", "service", "service")
        yield started


def beside(keystone: Running, tmp_path: Path, **more: Any) -> Any:
    settings = {"keystone_url": f"{keystone.url}/identity", "token_cache_s": 0.001, **ME, **more}
    return running(tmp_path / "service", auth="keystone", **settings)


def test_keystones_tokens_are_accepted(keystone: Running, tmp_path: Path) -> None:
    add_user(keystone, "alice", "her-secret", "admin", "member")
    with beside(keystone, tmp_path) as service:
        token = log_in(keystone, "alice", "her-secret", "admin")
        assert service.call("GET", "/compute/v2.1/flavors", token=token).status_code == 200
        everybodys = service.call("GET", "/compute/v2.1/os-services", token=token)
        assert everybodys.status_code == 403
        ours = service.call("GET", "/compute/v2.1/os-services", token=admin(keystone))
        assert ours.status_code == 200
        gone = keystone.call(
            "DELETE", "/identity/v3/auth/tokens", token=token, headers={"x-subject-token": token}
        )
        assert gone.status_code == 204
        assert service.call("GET", "/compute/v2.1/flavors", token=token).status_code == 401


@pytest.mark.parametrize("token", [None, "made-up", "\u00e9", "x" * 9000])
def test_tokens_that_keystone_rejects_are_unauthorized(
    keystone: Running, tmp_path: Path, token: str | None
) -> None:
    with beside(keystone, tmp_path) as service:
        headers = {} if token is None else {"x-auth-token": token.encode("latin-1")}
        answer = service.http.get("/compute/v2.1/flavors", headers=headers)
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"] == f'Keystone uri="{keystone.url}/identity"'


def test_there_is_no_second_identity_api(keystone: Running, tmp_path: Path) -> None:
    with beside(keystone, tmp_path) as service:
        assert service.call("GET", "/identity/v3", token=None).status_code == 404


def test_keystones_refusal_of_the_service_is_not_the_clients_fault(
    keystone: Running, tmp_path: Path
) -> None:
    with beside(keystone, tmp_path, keystone_password="wrong") as service:
        answer = service.call("GET", "/compute/v2.1/flavors", token=admin(keystone))
        assert answer.status_code == 503
        assert answer.headers["retry-after"]


def test_an_unreachable_keystone_gets_503(tmp_path: Path) -> None:
    with running(tmp_path / "keystone", auth="builtin") as keystone:
        address = keystone.url
    settings = {"keystone_url": f"{address}/identity/v3", **ME}
    with running(tmp_path / "service", auth="keystone", **settings) as service:
        answer = service.call("GET", "/compute/v2.1/flavors", token="anything")
        assert answer.status_code == 503


def test_the_keystone_url_is_required(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="keystone_url"), running(tmp_path, auth="keystone"):
        raise AssertionError("It started.")
