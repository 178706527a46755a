"""The stock ``openstack`` command manages users, projects, roles and tokens."""

from __future__ import annotations

import stat
from collections.abc import Iterator

import pytest

from tests.compat.openstack_command import Started, started

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Started]:
    with started(tmp_path_factory.mktemp("identity")) as running:
        yield running


def test_the_first_start_prints_how_to_log_in(service: Started) -> None:
    assert stat.S_IMODE(service.login_file.stat().st_mode) == stat.S_IRUSR | stat.S_IWUSR
    reported = "".join(service.reported)
    assert str(service.login_file) in reported
    token = service.ask("token", "issue")
    assert token["id"] not in "".join(service.reported)
    assert service.ask("project", "show", token["project_id"])["name"] == "admin"
    assert service.ask("user", "show", token["user_id"])["name"] == "admin"


def test_the_catalog(service: Started) -> None:
    catalog = {entry["Type"]: entry["Endpoints"] for entry in service.ask("catalog", "list")}
    addresses = {each["interface"]: each["url"] for each in catalog["identity"]}
    assert addresses["public"] == f"{service.url}/identity/v3"
    assert service.ask("catalog", "show", "identity")["type"] == "identity"
    services = service.ask("service", "list")
    assert {each["Type"] for each in services} == catalog.keys()
    endpoints = service.ask("endpoint", "list", "--service", "identity", "--interface", "public")
    assert [each["URL"] for each in endpoints] == [f"{service.url}/identity/v3"]
    assert service.ask("endpoint", "show", endpoints[0]["ID"])["interface"] == "public"
    assert [each["Name"] for each in service.ask("domain", "list")] == ["Default"]
    assert service.ask("domain", "show", "Default")["id"] == "default"
    assert [each["Region"] for each in service.ask("region", "list")] == ["RegionOne"]


def test_projects(service: Started) -> None:
    made = service.ask("project", "create", "sea", "--description", "Deep")
    assert (made["name"], made["description"], made["enabled"]) == ("sea", "Deep", True)
    assert "409" in service.refuses("project", "create", "sea")
    assert service.ask("project", "create", "sea", "--or-show")["id"] == made["id"]
    service.do("project", "set", "sea", "--name", "lake", "--disable")
    shown = service.ask("project", "show", "lake")
    assert (shown["id"], shown["enabled"]) == (made["id"], False)
    assert "lake" in {each["Name"] for each in service.ask("project", "list")}
    service.do("project", "delete", "lake")
    assert "lake" not in {each["Name"] for each in service.ask("project", "list")}


def test_users_and_their_roles(service: Started) -> None:
    service.ask("project", "create", "lab")
    service.ask("user", "create", "alice", "--password", "one-secret", "--project", "lab")
    alice = service.login("alice", "one-secret", "lab")
    assert "401" in service.refuses("token", "issue", login=alice)
    service.do("role", "add", "--user", "alice", "--project", "lab", "member")
    rows = service.ask("role", "assignment", "list", "--names", "--user", "alice")
    assert [(row["Role"], row["Project"]) for row in rows] == [("member", "lab@Default")]
    token = service.ask("token", "issue", login=alice)["id"]
    assert [each["Name"] for each in service.ask("project", "list", login=alice)] == ["lab"]
    assert "403" in service.refuses("user", "list", login=alice)
    service.do("token", "revoke", token, login=alice)
    assert "404" in service.refuses("token", "revoke", token, login=alice)
    change = ("user", "password", "set", "--original-password", "one-secret")
    service.do(*change, "--password", "two-secret", login=alice)
    assert "401" in service.refuses("token", "issue", login=alice)
    service.ask("token", "issue", login=service.login("alice", "two-secret", "lab"))
    service.do("user", "set", "alice", "--password", "three-secret", "--email", "a@example.org")
    assert service.ask("user", "show", "alice")["email"] == "a@example.org"
    service.do("role", "remove", "--user", "alice", "--project", "lab", "member")
    assert service.ask("role", "assignment", "list", "--user", "alice") == []
    service.do("user", "delete", "alice")
    assert "alice" not in {each["Name"] for each in service.ask("user", "list")}


def test_roles(service: Started) -> None:
    names = {each["Name"] for each in service.ask("role", "list")}
    assert names >= {"admin", "member", "reader", "service"}
    service.ask("role", "create", "operator")
    service.do("role", "set", "operator", "--name", "mechanic")
    assert service.ask("role", "show", "mechanic")["name"] == "mechanic"
    service.do("role", "delete", "mechanic")
    assert "403" in service.refuses("role", "delete", "admin")
