"""A real service and real agents: hosts appear, go down, return, and keep their servers."""

from __future__ import annotations

import signal
import stat
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.support.agents import WITHIN_S, agent, eventually, start, states
from tests.support.running import Running, running

pytestmark = [pytest.mark.slow, pytest.mark.timeout(360)]
DOWN_AFTER_S = 1.5
SETTINGS: dict[str, Any] = {"service_down_time_s": DOWN_AFTER_S, "work_poll_s": 1.0}
UP = {"host-1": "up", "host-2": "up"}
DOWN = {"host-1": "down", "host-2": "down"}
NEWEST = {"openstack-api-version": "compute 2.100"}


def boot(service: Running, **more: Any) -> str:
    flavor = {"flavor": {"name": "small", "id": "small", "ram": 512, "vcpus": 1, "disk": 1}}
    service.call("POST", "/compute/v2.1/flavors", json=flavor)
    asked = {"name": "web", "flavorRef": "small", "networks": "none", "imageRef": "", **more}
    answer = service.call("POST", "/compute/v2.1/servers", headers=NEWEST, json={"server": asked})
    assert answer.status_code == 202, answer.text
    server_id: str = answer.json()["server"]["id"]
    return server_id


def status(service: Running, server_id: str) -> str:
    answer = service.call("GET", f"/compute/v2.1/servers/{server_id}")
    if answer.status_code == 404:
        return "gone"
    found: str = answer.json()["server"]["status"]
    return found


def test_hosts_appear_go_down_and_come_back_with_their_servers(tmp_path: Path) -> None:
    state = tmp_path / "agent"
    with running(tmp_path / "service", **SETTINGS) as service:
        killed = start(service.url, state, "--hosts", "2", "--name", "rack")
        eventually(lambda: states(service), UP)
        server_id = boot(service)
        eventually(lambda: status(service, server_id), "ACTIVE")
        killed.kill()
        killed.wait(WITHIN_S)
        eventually(lambda: states(service), DOWN)
        # A host that is down is not chosen.
        refused = boot(service)
        eventually(lambda: status(service, refused), "ERROR")
        with agent(service.url, state, "--hosts", "2", "--name", "rack"):
            eventually(lambda: states(service), UP)
            assert status(service, server_id) == "ACTIVE"
            service.call("DELETE", f"/compute/v2.1/servers/{server_id}")
            eventually(lambda: status(service, server_id), "gone")


def test_an_order_that_a_killed_agent_took_is_given_again(tmp_path: Path) -> None:
    state = tmp_path / "agent"
    slow = ("--hosts", "2", "--name", "rack", "--build-time-s", "60")
    with running(tmp_path / "service", **SETTINGS) as service:
        killed = start(service.url, state, *slow)
        eventually(lambda: states(service), UP)
        server_id = boot(service)
        # Long enough for the order to be taken.
        eventually(lambda: status(service, server_id), "BUILD")
        killed.kill()
        killed.wait(WITHIN_S)
        with agent(service.url, state, "--hosts", "2", "--name", "rack"):
            eventually(lambda: status(service, server_id), "ACTIVE")


def test_a_failed_build_has_a_fault_and_a_deleted_server_disappears(tmp_path: Path) -> None:
    options = ("--hosts", "2", "--fail-builds-on", "host-*")
    with (
        running(tmp_path / "service", **SETTINGS) as service,
        agent(service.url, tmp_path / "agent", *options),
    ):
        eventually(lambda: states(service), UP)
        server_id = boot(service)
        eventually(lambda: status(service, server_id), "ERROR")
        shown = service.call("GET", f"/compute/v2.1/servers/{server_id}").json()["server"]
        assert "fail because of --fail-builds-on" in shown["fault"]["details"]
        assert "--fail-builds-on" not in shown["fault"]["message"]
        service.call("DELETE", f"/compute/v2.1/servers/{server_id}")
        eventually(lambda: status(service, server_id), "gone")


def test_a_server_deleted_while_its_host_was_down_is_destroyed_later(tmp_path: Path) -> None:
    state = tmp_path / "agent"
    options = ("--hosts", "2", "--name", "rack")
    with running(tmp_path / "service", **SETTINGS) as service:
        with agent(service.url, state, *options):
            eventually(lambda: states(service), UP)
            server_id = boot(service)
            eventually(lambda: status(service, server_id), "ACTIVE")
        eventually(lambda: states(service), DOWN)
        service.call("DELETE", f"/compute/v2.1/servers/{server_id}")
        eventually(lambda: status(service, server_id), "gone")
        with agent(service.url, state, *options):
            eventually(lambda: states(service), UP)
            listed = "/compute/v2.1/os-agents"
            agent_id = service.call("GET", listed).json()["agents"][0]["id"]
            path = f"{listed}/{agent_id}/work"
            body = {"wait_s": 0}
            eventually(lambda: service.call("POST", path, json=body).json(), {"orders": []})


def test_two_agents_cannot_share_a_folder(tmp_path: Path) -> None:
    with running(tmp_path / "service", **SETTINGS) as service:
        state = tmp_path / "agent"
        with agent(service.url, state, "--name", "one"):
            eventually(lambda: states(service), {"host-1": "up"})
            second = start(service.url, state, "--name", "two")
            assert second.wait(WITHIN_S) == 2


def test_an_agents_files_are_readable_by_their_owner_alone(tmp_path: Path) -> None:
    state = tmp_path / "agent"
    with (
        running(tmp_path / "service", **SETTINGS) as service,
        agent(service.url, state, "--name", "one"),
    ):
        eventually(lambda: states(service), {"host-1": "up"})
        modes = {each.name: stat.S_IMODE(each.stat().st_mode) for each in state.iterdir()}
        assert stat.S_IMODE(state.stat().st_mode) == 0o700
    assert modes.pop("lock") == 0o600
    assert set(modes.values()) == {0o600}


def test_an_agent_takes_a_new_token_from_its_file(tmp_path: Path) -> None:
    with running(tmp_path / "service", auth="builtin", **SETTINGS) as service:
        token_file = service.service.keep_agent_token()
        assert stat.S_IMODE(token_file.stat().st_mode) == 0o600
        who = {"name": "admin", "domain": {"id": "default"}}
        login = {"user": {**who, "password": service.admin_password()}}
        scope = {"project": {"name": "admin", "domain": {"id": "default"}}}
        identity = {"methods": ["password"], "password": login}
        made = service.call(
            "POST",
            "/identity/v3/auth/tokens",
            token=None,
            json={"auth": {"identity": identity, "scope": scope}},
        )
        admin = made.headers["x-subject-token"]

        def reported(path: str) -> Any:
            return service.call("GET", path, token=admin).json()

        def state() -> list[str]:
            return [each["state"] for each in reported("/compute/v2.1/os-services")["services"]]

        (user,) = reported("/identity/v3/users?name=innkeeper-agent")["users"]
        with agent(service.url, tmp_path / "agent", "--token-file", str(token_file)):
            eventually(state, ["up"])
            # From now on, all the agent's tokens are invalid.
            service.call(
                "PATCH",
                f"/identity/v3/users/{user['id']}",
                token=admin,
                json={"user": {"password": "another one"}},
            )
            eventually(state, ["down"])
            service.service.renew_agent_token()
            eventually(state, ["up"])


def test_an_agent_stops_on_a_signal(tmp_path: Path) -> None:
    with running(tmp_path / "service", **SETTINGS) as service:
        program = start(service.url, tmp_path / "agent", "--name", "one")
        eventually(lambda: states(service), {"host-1": "up"})
        program.send_signal(signal.SIGTERM)
        assert program.wait(WITHIN_S) == 0


def test_a_service_that_stops_does_not_wait_for_idle_agents(tmp_path: Path) -> None:
    with running(tmp_path, work_poll_s=60.0) as service:
        registered = service.call(
            "POST", "/compute/v2.1/os-agents", json={"agent": {"name": "a", "driver": "fake"}}
        )
        path = f"/compute/v2.1/os-agents/{registered.json()['agent']['id']}/work"
        with ThreadPoolExecutor(1) as threads:
            asked = threads.submit(service.call, "POST", path, json={}, timeout=WITHIN_S)
            with pytest.raises(TimeoutError):
                asked.result(1.0)
            service.service.engine.wakeups.stop()
            assert asked.result(WITHIN_S).json() == {"orders": []}
        # A new request is answered at once, too.
        answer = service.call("POST", path, json={}, timeout=WITHIN_S)
        assert answer.json() == {"orders": []}


def test_an_agent_waits_for_its_service(tmp_path: Path) -> None:
    program = start("http://127.0.0.1:9", tmp_path / "agent", "--name", "one")
    eventually((tmp_path / "agent" / "fake.sqlite3").exists, True)
    with pytest.raises(subprocess.TimeoutExpired):
        program.wait(1.0)
    program.send_signal(signal.SIGTERM)
    assert program.wait(WITHIN_S) == 0
