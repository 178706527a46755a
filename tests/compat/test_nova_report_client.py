"""Nova itself works with this service, and gets the same answers as from OpenStack's own.

``nova_play`` runs Nova's code in a process of its own: the report client of nova-compute,
nova-api and nova-scheduler, with a database of Nova's. Nothing of Nova is replaced. The scenes
check every answer, and note some. This test compares the noted answers.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.compat.openstack_command import environment
from tests.support.following import following
from tests.support.original import original
from tests.support.running import Running, running

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
ROOT = Path(__file__).resolve().parents[2]
PLAY_WITHIN_S = 400.0
LIMIT = 5
SECRET = "nova-secret"


def played(folder: Path, placement: Mapping[str, str], roles: str = "") -> dict[str, Any]:
    """Let Nova, with these settings of its section ``placement``, play all scenes."""
    folder.mkdir()
    sections: dict[str, Mapping[str, str]] = {
        "DEFAULT": {
            "transport_url": "fake:/",
            "state_path": str(folder),
            # No periodic report interferes while a slow machine is still busy with the scene.
            "service_down_time": "600",
        },
        "scheduler": {"max_placement_results": str(LIMIT)},
        "placement": placement,
        "database": {"connection": f"sqlite:///{folder}/main.db"},
        "api_database": {"connection": f"sqlite:///{folder}/api.db"},
    }
    lines = []
    for section, options in sections.items():
        lines += [f"[{section}]", *(f"{name} = {value}" for name, value in options.items())]
    settings, reported = folder / "nova.conf", folder / "told.json"
    settings.write_text("\n".join(lines) + "\n", encoding="utf-8")
    ran = subprocess.run(
        [sys.executable, "-m", "tests.compat.nova_play", str(settings), str(reported), roles],
        cwd=ROOT,
        env=environment(HOME=str(folder), PYTHONPATH=str(ROOT)),
        capture_output=True,
        text=True,
        timeout=PLAY_WITHIN_S,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    answers: dict[str, Any] = json.loads(reported.read_text(encoding="utf-8"))
    return answers


def with_token(url: str) -> dict[str, str]:
    return {"auth_type": "admin_token", "endpoint": url, "token": "admin"}


def without_generations(answer: Any) -> Any:
    """Generations differ: our service also advances them when consumers release amounts."""
    if isinstance(answer, dict):
        kept = {name: one for name, one in answer.items() if name != "generation"}
        return {name: without_generations(one) for name, one in kept.items()}
    if isinstance(answer, list):
        return [without_generations(one) for one in answer]
    return answer


def test_nova_gets_the_same_answers_from_both(tmp_path: Path) -> None:
    roles = "admin,service"
    # This process is not the leader. It forwards all of Nova's writes.
    with following(tmp_path / "data") as service:
        ours = played(tmp_path / "a", with_token(f"{service.url}/placement"), roles)
    with original(tmp_path) as peer:
        theirs = played(tmp_path / "b", with_token(peer.url), roles)
    assert ours.keys() == theirs.keys()
    for name, answer in theirs.items():
        assert without_generations(ours[name]) == without_generations(answer), name


def add_nova_user(service: Running) -> None:
    """Create Nova's user: the role ``service`` on the project ``service``."""
    login = {
        "identity": {
            "methods": ["password"],
            "password": {
                "user": {
                    "name": "admin",
                    "domain": {"id": "default"},
                    "password": service.admin_password(),
                }
            },
        },
        "scope": {"project": {"name": "admin", "domain": {"id": "default"}}},
    }
    opened = service.call("POST", "/identity/v3/auth/tokens", None, json={"auth": login})
    token = opened.headers["x-subject-token"]

    def named(kind: str, name: str) -> str:
        found = service.call("GET", f"/identity/v3/{kind}?name={name}", token).json()[kind]
        return str(found[0]["id"])

    user = {"user": {"name": "nova", "domain_id": "default", "password": SECRET}}
    made = service.call("POST", "/identity/v3/users", token, json=user).json()["user"]
    path = f"projects/{named('projects', 'service')}/users/{made['id']}/roles"
    given = service.call("PUT", f"/identity/v3/{path}/{named('roles', 'service')}", token)
    assert given.status_code == 204, given.text


def test_nova_logs_in_and_finds_the_service_in_the_catalog(tmp_path: Path) -> None:
    with running(tmp_path / "data", auth="builtin") as service:
        add_nova_user(service)
        login = {
            "auth_type": "password",
            "auth_url": f"{service.url}/identity/v3",
            "username": "nova",
            "password": SECRET,
            "user_domain_name": "Default",
            "project_name": "service",
            "project_domain_name": "Default",
            "region_name": "RegionOne",
            "valid_interfaces": "internal,public",
        }
        assert played(tmp_path / "nova", login)["nothing is held"] == {}
