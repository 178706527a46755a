"""The ``openstack`` command, with our plug-in, administers pods."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

import httpx
import pytest

from tests.compat.openstack_command import Started, started
from tests.support.pod_processes import password_of

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
SETTINGS = 'apis = ["identity", "compute", "pods"]\npod_poll_interval_s = 3600.0\n'
ADDED = ("--availability-zone", "az1", "--username", "admin", "--project", "admin")


@dataclass(frozen=True, slots=True)
class Behind:
    """A door, a cloud that is its pods, and a file with the password in the cloud."""

    door: Started
    url: str
    file: str
    secret: str

    def add(self, name: str, *more: str) -> dict[str, object]:
        """Add a pod."""
        login = ("--auth-url", self.url, "--password-file", self.file)
        made: dict[str, object] = self.door.ask("pod", "create", name, *ADDED, *login, *more)
        return made


@pytest.fixture(scope="module")
def behind(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Behind]:
    folder = tmp_path_factory.mktemp("pods")
    config = folder / "settings.toml"
    config.write_text(SETTINGS, encoding="utf-8")
    for name in ("door", "pod"):
        (folder / name).mkdir()
    with (
        started(folder / "door", "--config", str(config)) as door,
        started(folder / "pod", "--demo-hosts", "1") as pod,
    ):
        secret = password_of(folder / "pod")
        file = folder / "password"
        file.write_text(f"{secret}\n", encoding="utf-8")
        made = Behind(door, f"{pod.url}/identity/v3", str(file), secret)
        made.add("p1", "--ratio", "vcpus=16", "--headroom", "vcpus=2", "--threshold", "75")
        made.add("p2", "--weight", "-1")
        made.add("p4", "--tag", "resource=CAD", "--data-center", "dc1")
        yield made


def test_pods_are_listed_and_shown_without_their_password(behind: Behind) -> None:
    door = behind.door
    found = door.ask("pod", "list")
    assert [(each["Name"], each["Zone"], each["Group"], each["State"]) for each in found] == [
        ("p1", "az1", "general", "up"),
        ("p2", "az1", "general", "up"),
        ("p4", "az1", "resource=CAD", "up"),
    ]
    shown = door.ask("pod", "show", "p1")
    assert (shown["threshold_percent"], shown["headroom"]) == (75.0, {"vcpus": 2.0})
    assert shown["allocation_ratios"] == {"vcpus": 16.0}
    assert "password" not in shown
    assert behind.secret not in door.do("pod", "list", "--long")


def test_pods_are_changed_and_refusals_are_told(behind: Behind) -> None:
    door = behind.door
    door.do("pod", "set", "p2", "--maintenance", "--cost", "3", "--name", "p3")
    shown = door.ask("pod", "show", "p3")
    assert (shown["maintenance"], shown["cost"]) == (True, 3.0)
    door.do("pod", "set", "p3", "--no-maintenance", "--name", "p2")
    assert "cannot be used" in door.refuses("pod", "set", "p2", "--auth-url", "http://127.0.0.1:9")
    assert "at least one option" in door.refuses("pod", "set", "p2")
    assert "No pod has the name" in door.refuses("pod", "show", "p9")


def test_projects_are_bound_explained_moved_and_unbound(behind: Behind) -> None:
    door = behind.door
    cad = ("--property", "resource=CAD")
    first = door.ask("pod", "binding", "create", "acme", "--vcpus", "1")
    assert (first["group"], first["is_binding"]) == ("general", True)
    special = door.ask("pod", "binding", "create", "acme", *cad)
    assert special["group"] == "resource=CAD"
    told = {each["Pod"]: each for each in door.ask("pod", "explain", "acme", *cad)}
    assert (told["p4"]["Chosen"], told["p4"]["Bound"]) == (True, True)
    assert told["p1"]["Refused By"] == "ResourceAffinityFilter"
    door.ask("pod", "binding", "create", "acme", "--pod", "p2")
    rows = door.ask("pod", "binding", "list", "--project", "acme", "--group", "general")
    assert [(each["Pod"], each["Active"]) for each in rows] == [("p1", False), ("p2", True)]
    assert "active bindings" in door.refuses("pod", "delete", "p2")
    for each in door.ask("pod", "binding", "list", "--project", "acme", "--active"):
        door.do("pod", "binding", "end", each["ID"])
    assert door.ask("pod", "binding", "list", "--active") == []
    ended = door.ask("pod", "binding", "show", first["id"])
    assert (ended["is_binding"], ended["end_reason"]) == (False, "replaced")


def test_a_dry_run_lists_moves_and_changes_nothing(behind: Behind) -> None:
    door = behind.door
    door.ask("pod", "binding", "create", "dry", "--pod", "p1")
    move, new = door.ask("pod", "dry", "run", "--pod", "p1", "--maintenance")
    assert (move["Project"], move["From"], move["To"]) == ("dry", "p1", "p2")
    assert move["Reason"] == "in maintenance"
    assert (new["Project"], new["From"], new["To"]) == ("new projects", "p1", "p2")
    assert door.ask("pod", "dry", "run", "--weigher", "cost=1") == []
    assert "Give --pod" in door.refuses("pod", "dry", "run", "--maintenance")
    assert "Give --pod" in door.refuses("pod", "dry", "run", "--add", "p9")
    added = ("--add", "p9", "--availability-zone", "az1", "--weight", "1", "--capacity", "vcpus=9")
    tried = door.run("pod", "dry", "run", *added, "-f", "json")
    (new,) = json.loads(tried.output)
    assert (new["Project"], new["Group"], new["Zone"]) == ("new projects", "general", "az1")
    assert (new["From"], new["To"], new["Servers Left"]) == ("p1", "p9", None)
    assert (tried.status, tried.errors) == (0, "")
    (binding,) = door.ask("pod", "binding", "list", "--project", "dry", "--active")
    assert binding["Pod"] == "p1"
    door.do("pod", "binding", "end", binding["ID"])


def test_what_is_in_a_pod_is_listed_by_project(behind: Behind) -> None:
    door = behind.door
    (total,) = door.ask("pod", "project", "list", "p2")
    assert (total["Project"], total["Servers"], total["Bound"]) == ("total", 0, None)
    pod_id = door.ask("pod", "show", "p2")["pod_id"]
    ids = {"top_id": "t", "bottom_id": "b", "pod_id": pod_id, "project_id": "acme"}
    body = {"routing": {**ids, "resource_type": "server"}}
    token = {"x-auth-token": door.ask("token", "issue")["id"]}
    made = httpx.post(f"{door.url}/pods/v1.0/routings", json=body, headers=token)
    assert made.status_code == httpx.codes.CREATED, made.text
    row, total = door.ask("pod", "project", "list", "p2")
    assert (row["Project"], row["Servers"], row["Bound"]) == ("acme", 1, False)
    assert (total["Project"], total["Servers"]) == ("total", 1)
    listing = ("pod", "routing", "list")
    (routing,) = door.ask(*listing, "--resource", "t", "--project", "acme", "--type", "server")
    assert (routing["Pod"], routing["In Pod As"]) == ("p2", "b")
    assert door.ask(*listing, "--pod", "p2") == [routing]
    assert door.ask(*listing, "--pod", "p1") == door.ask(*listing, "--begun") == []


def test_usage_is_measured_and_shown(behind: Behind) -> None:
    door = behind.door
    rows = {each["Kind"]: each for each in door.ask("pod", "usage", "show", "p1", "--measure")}
    assert rows["vcpus"]["Total"] > 0
    assert rows["vcpus"]["Limit"] == rows["vcpus"]["Total"] * 16 * 0.75
    listed = {each["Pod"]: each for each in door.ask("pod", "usage", "list")}
    assert listed["p1"]["VCPUs"].startswith("0 / ")
    assert not listed["p1"]["Old"]


def test_a_pod_is_deleted(behind: Behind) -> None:
    door = behind.door
    behind.add("p8")
    door.do("pod", "delete", "p8")
    assert "p8" not in [each["Name"] for each in door.ask("pod", "list")]
