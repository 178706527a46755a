"""Agents with credentials of their own: none of them can act for another agent."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from innkeeper.main import main
from innkeeper.store.tables.metadata import METADATA
from tests.support import agents
from tests.support.isolated_projects import HOST_FACTS, admin_token, good
from tests.support.running import Running, running

COMPUTE = "/compute/v2.1"
CREDENTIALS = f"{COMPUTE}/os-agent-credentials"
BUSY = ("news", "periodic_tasks")


@dataclass(slots=True)
class Rack:
    """An agent with one host."""

    service: Running
    name: str
    credential: str
    id: str = ""

    def ask(self, method: str, path: str, **more: Any) -> Any:
        """Send a request with the credential."""
        return self.service.call(method, f"{COMPUTE}/os-agents{path}", self.credential, **more)

    def register(self, name: str | None = None) -> Any:
        """Register, under this or another name."""
        body = {"agent": {"name": name or self.name, "driver": "fake"}}
        return self.ask("POST", "", json=body)

    def report(self, *names: str, agent_id: str = "", **more: Any) -> Any:
        """Report hosts."""
        hosts = [{"name": name, "inventories": HOST_FACTS, **more} for name in names]
        return self.ask("PUT", f"/{agent_id or self.id}/hosts", json={"hosts": hosts})


def issued(service: Running, name: str, **more: Any) -> dict[str, Any]:
    body = {"agent_credential": {"agent_name": name, **more}}
    answer = service.call("POST", CREDENTIALS, "admin", json=body)
    assert answer.status_code == 201, answer.text
    return dict(answer.json()["agent_credential"])


def rack(service: Running, name: str, **more: Any) -> Rack:
    """An agent that has registered and reported a host."""
    made = Rack(service, name, issued(service, name, **more)["credential"])
    made.id = good(made.register())["agent"]["id"]
    good(made.report(f"{name}-1"))
    assert made.ask("POST", f"/{made.id}/heartbeat").status_code == 204
    return made


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("agents"), work_poll_s=0.1) as started:
        flavor = {"name": "small", "id": "small", "vcpus": 1, "ram": 512, "disk": 1}
        good(started.call("POST", f"{COMPUTE}/flavors", json={"flavor": flavor}))
        yield started


@pytest.fixture(scope="module")
def racks(service: Running) -> dict[str, Rack]:
    """Two agents with a host and a server each; the orders to build wait."""
    made = {name: rack(service, name) for name in ("east", "west")}
    for each in made:
        server = {"name": f"on-{each}", "flavorRef": "small"}
        body = {"server": {**server, "availability_zone": f"nova:{each}-1"}}
        good(service.call("POST", f"{COMPUTE}/servers", json=body))
    return made


def rows(service: Running) -> dict[str, set[str]]:
    with service.service.store.read() as tx:
        return {
            table.name: {repr(tuple(row)) for row in tx.execute(sa.select(table))}
            for table in METADATA.sorted_tables
            if table.name not in BUSY
        }


def orders(rack: Rack, agent_id: str = "") -> Any:
    return rack.ask("POST", f"/{agent_id or rack.id}/work", json={"wait_s": 0})


PAIRS = [("east", "west"), ("west", "east")]


@pytest.mark.parametrize(("mine", "other"), PAIRS)
def test_no_agent_can_act_for_another(
    service: Running, racks: dict[str, Rack], mine: str, other: str
) -> None:
    one, two = racks[mine], racks[other]
    theirs = good(orders(two))["orders"]
    assert [each["kind"] for each in theirs] == ["build"]
    before = rows(service)
    output = [{"order_id": theirs[0]["id"], "ok": True}]
    tries = {
        "show": one.ask("GET", f"/{two.id}"),
        "heartbeat": one.ask("POST", f"/{two.id}/heartbeat"),
        "work": orders(one, two.id),
        "results": one.ask("POST", f"/{two.id}/results", json={"results": output}),
        "hosts": one.report(f"{other}-1", agent_id=two.id),
        "another name": one.register(other),
        "a name of nobody": one.register("north"),
        "another's host": one.report(f"{other}-1"),
        "it and one's own": one.report(f"{mine}-1", f"{other}-1"),
    }
    assert {name: answer.status_code for name, answer in tries.items()} == {
        "show": 404,
        "heartbeat": 404,
        "work": 404,
        "results": 404,
        "hosts": 404,
        "another name": 403,
        "a name of nobody": 403,
        "another's host": 403,
        "it and one's own": 403,
    }
    twin = one.ask("GET", "/01a1fb83-0000-7000-8000-000000000000")
    assert tries["show"].text.replace(two.id, "ID").split("ID")[0] == twin.text.split("01a")[0]
    assert rows(service) == before


@pytest.mark.parametrize(("mine", "other"), PAIRS)
def test_results_for_another_agents_orders_are_ignored(
    service: Running, racks: dict[str, Rack], mine: str, other: str
) -> None:
    """If they are sent with the agent's own id, they count as results of unknown orders."""
    one, two = racks[mine], racks[other]
    theirs = good(orders(two))["orders"][0]["id"]
    before = rows(service)
    results = [{"order_id": theirs, "ok": False}, {"order_id": 2**40, "ok": False}]
    body = {"results": results}
    output = good(one.ask("POST", f"/{one.id}/results", json=body))["results"]
    assert [each["is_news"] for each in output] == [False, False]
    assert rows(service) == before


@pytest.mark.parametrize(("mine", "other"), PAIRS)
def test_reports_about_another_agents_servers_are_ignored(
    service: Running, racks: dict[str, Rack], mine: str, other: str
) -> None:
    one, two = racks[mine], racks[other]
    server_id = good(orders(two))["orders"][0]["server_id"]

    def seen() -> Any:
        return good(service.call("GET", f"{COMPUTE}/servers/{server_id}", "admin"))

    before = seen()
    good(one.report(f"{mine}-1", servers=[server_id], not_running={server_id: 4}))
    good(one.report(f"{mine}-1", servers=[]))
    assert seen() == before
    left = [(each["kind"], each["server_id"]) for each in good(orders(two))["orders"]]
    assert ("build", server_id) in left
    assert ("destroy", server_id) not in left, "only the one who named it may be told so"


def test_a_silent_agents_hosts_move_to_the_named_agent(tmp_path: Path) -> None:
    """Without patterns, no agent takes over another's hosts, however long the other is silent."""
    with running(tmp_path, service_down_time_s=0.05) as service:
        east = rack(service, "east")
        west = rack(service, "west")
        agents.eventually(lambda: agents.states(service)["east-1"], "down")
        assert west.report("east-1").status_code == 403
        west.credential = issued(service, "west", hosts=["west-*", "east-?"])["credential"]
        good(west.report("east-1"))
        assert west.report("north-1").status_code == 403
        assert east.report("east-1").status_code == 403


def test_a_credential_names_hosts(service: Running) -> None:
    made = Rack(service, "named", issued(service, "named", hosts=["named-*"])["credential"])
    made.id = good(made.register())["agent"]["id"]
    assert made.report("other-1").status_code == 403
    assert made.report("named-1", "other-1").status_code == 403
    good(made.report("named-1", "named-2"))


def test_a_credential_takes_an_agent_over_from_a_user(service: Running) -> None:
    body = {"agent": {"name": "old", "driver": "fake"}}
    headers = {"x-roles": "service"}
    path = f"{COMPUTE}/os-agents"
    first = service.call("POST", path, "program:service", json=body, headers=headers)
    agent_id = good(first)["agent"]["id"]
    made = Rack(service, "old", issued(service, "old")["credential"])
    assert good(made.register())["agent"]["id"] == agent_id
    again = service.call("POST", path, "program:service", json=body, headers=headers)
    assert again.status_code == 409
    beat = f"{path}/{agent_id}/heartbeat"
    refused = service.call("POST", beat, "program:service", headers=headers)
    assert refused.status_code == 404
    assert service.call("POST", beat, "admin").status_code == 204, "administrators may"


def test_revoked_replaced_and_expired_credentials_are_refused(tmp_path: Path) -> None:
    with running(tmp_path, token_cache_s=30.0) as service:
        first = issued(service, "a")
        one = Rack(service, "a", first["credential"])
        assert one.register().status_code == 200
        assert service.call("DELETE", f"{CREDENTIALS}/{first['id']}").status_code == 204
        assert one.register().status_code == 401
        assert service.call("DELETE", f"{CREDENTIALS}/{first['id']}").status_code == 404
        second, third = issued(service, "a"), issued(service, "a", replace=True)
        seen = {
            each["id"]: Rack(service, "a", each["credential"]).register().status_code
            for each in (second, third)
        }
        assert seen == {second["id"]: 401, third["id"]: 200}
        brief = Rack(service, "b", issued(service, "b", lifetime_s=1)["credential"])
        agents.eventually(lambda: brief.register().status_code, 401)


@pytest.mark.parametrize(
    "text",
    [
        "agent." + "0" * 32 + "." + "A" * 43,
        "agent." + "0" * 32 + "." + "A" * 42,
        "agent..",
        "agent.' OR 1=1." + "A" * 43,
    ],
)
@pytest.mark.parametrize("auth", ["builtin", "none"])
def test_a_credential_that_was_never_issued_is_refused(
    tmp_path: Path, text: str, auth: str
) -> None:
    with running(tmp_path, auth=auth) as service:
        assert Rack(service, "x", text).register().status_code in (401, 403)


def test_a_credential_is_shown_once(service: Running) -> None:
    made = issued(service, "told", hosts=["told-*"], lifetime_s=3600)
    assert made["credential"].startswith(f"agent.{made['id']}.")
    shown = service.call("GET", f"{CREDENTIALS}/{made['id']}")
    listed = service.call("GET", f"{CREDENTIALS}?agent_name=told")
    secret = made.pop("credential").rpartition(".")[2]
    assert shown.json() == {"agent_credential": made}
    assert listed.json() == {"agent_credentials": [made]}
    with service.service.store.read() as tx:
        kept = tx.execute(sa.select(METADATA.tables["agent_credentials"])).all()
    assert secret not in f"{kept}"


def test_there_is_a_limit_per_agent(service: Running) -> None:
    for _ in range(8):
        issued(service, "many")
    body = {"agent_credential": {"agent_name": "many"}}
    assert service.call("POST", CREDENTIALS, json=body).status_code == 409


def test_in_pages(service: Running) -> None:
    for name in ("page-1", "page-2", "page-3"):
        issued(service, name)
    seen: list[str] = []
    path = f"{CREDENTIALS}?limit=2"
    while path:
        body = service.call("GET", path).json()
        seen += [each["id"] for each in body["agent_credentials"]]
        links = body.get("agent_credentials_links")
        path = links[0]["href"].removeprefix(service.url) if links else ""
    assert len(seen) == len(set(seen)) and len(seen) >= 3


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"agent_name": ""},
        {"agent_name": "a b"},
        {"agent_name": "a\0"},
        {"agent_name": "a", "hosts": ["[a-z]*"]},
        {"agent_name": "a", "hosts": "a*"},
        {"agent_name": "a", "hosts": ["a"] * 101},
        {"agent_name": "a", "lifetime_s": 0},
        {"agent_name": "a", "lifetime_s": 2**70},
        {"agent_name": "a", "secret": "mine"},
    ],
)
def test_credentials_that_cannot_be_issued(service: Running, wrong: dict[str, Any]) -> None:
    answer = service.call("POST", CREDENTIALS, json={"agent_credential": wrong})
    assert answer.status_code == 400, answer.text


def test_a_program_with_a_credential_in_a_file(tmp_path: Path) -> None:
    """The credential is rotated while the agent runs, and the agent rereads the file."""
    data, file = tmp_path / "data", tmp_path / "agent.credential"

    def issue(*options: str) -> None:
        command = ["agent-credential", "rack-9", "--data-dir", str(data), *options]
        assert main(command) == 0

    with running(data, auth="builtin", service_down_time_s=1.0, token_cache_s=0.1) as service:
        issue("--file", str(file), "--hosts", "rack-9-*", "--days", "30")
        assert file.stat().st_mode & 0o777 == 0o600
        options = ["--name", "rack-9", "--host-prefix", "rack-9-", "--token-file", str(file)]
        with agents.agent(service.url, tmp_path / "state", *options):
            admin = admin_token(service)
            agents.eventually(lambda: _states(service, admin), {"rack-9-1": "up"})
            first = file.read_text()
            issue("--file", str(file), "--replace")
            assert file.read_text() != first
            agents.eventually(lambda: _refused(service, first.strip()), 401)
            agents.eventually(lambda: _states(service, admin), {"rack-9-1": "up"})
            issue("--revoke")
            agents.eventually(lambda: _states(service, admin), {"rack-9-1": "down"})


def _states(service: Running, token: str) -> dict[str, str]:
    services = service.call("GET", f"{COMPUTE}/os-services", token).json()["services"]
    return {each["host"]: each["state"] for each in services}


def _refused(service: Running, credential: str) -> int:
    return int(Rack(service, "rack-9", credential).register().status_code)


def test_agents_log_in_while_keystone_is_down(tmp_path: Path) -> None:
    """Agents do not depend on Keystone: their credentials are this service's own."""
    keystone = {
        "keystone_url": "http://127.0.0.1:9/v3",
        "keystone_user": "innkeeper",
        "keystone_password": "any",
    }
    file = tmp_path / "agent.credential"
    with running(tmp_path / "data", auth="keystone", **keystone) as service:
        command = ["agent-credential", "rack-7", "--file", str(file)]
        assert main([*command, "--data-dir", str(tmp_path / "data")]) == 0
        made = Rack(service, "rack-7", file.read_text().strip())
        made.id = good(made.register())["agent"]["id"]
        good(made.report("rack-7-1"))
        assert service.call("GET", f"{COMPUTE}/servers", "a-token").status_code == 503
        assert service.call("GET", f"{COMPUTE}/servers", made.credential).status_code == 403


@pytest.mark.parametrize(
    "wrong",
    [["a b"], ["ok", "--hosts", "a b"], ["ok", "--days", "0"], ["ok", "--days", "999999999"]],
)
def test_a_wrong_command_line_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], wrong: list[str]
) -> None:
    assert main(["agent-credential", *wrong, "--data-dir", str(tmp_path)]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith("innkeeper: ")
