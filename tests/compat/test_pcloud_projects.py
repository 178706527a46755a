"""Projects as arguments of the ``openstack`` command, with an external Keystone and without.

Another Innkeeper takes the place of Keystone. The command's messages about a project are the same
in both cases. The service's own errors differ: without a Keystone, the service itself has the
projects.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.compat.openstack_command import Started, started
from tests.compat.openstack_copies import Outcome

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

UNKNOWN = "0123456789abcdef0123456789abcdef"
UNCHECKED = "was not checked: this login may not look up projects."
NO_PROJECT = "No project has the name or ID"
NO_FORM = "does not have the form of a project's ID"


class Cloud:
    """A service with pclouds, and the logins of its Keystone."""

    def __init__(self, service: Started, keystone: Started, folder: Path) -> None:
        self._service, self._keystone = service, keystone
        self._file = folder / "clouds.yaml"
        self._clouds: dict[str, Any] = {}
        self.admin = self._login("admin", self._admin_password(), "admin")
        self.alice = self._login("alice", "secret-of-alice", "lab")
        self.bob = self._login("bob", "secret-of-bob", "shop")
        self.ids = {name: self._project(name) for name in ("lab", "shop")}

    def _admin_password(self) -> str:
        shown = self._keystone.ask("configuration", "show", "--unmask")
        return str(shown["auth.password"])

    def _login(self, user: str, password: str, project: str) -> dict[str, str]:
        self._clouds[user] = {
            "auth": {
                "auth_url": f"{self._keystone.url}/identity/v3",
                "username": user,
                "password": password,
                "project_name": project,
                "user_domain_id": "default",
                "project_domain_id": "default",
            },
            "compute_endpoint_override": f"{self._service.url}/compute/v2.1",
        }
        self._file.write_text(json.dumps({"clouds": self._clouds}), encoding="utf-8")
        return {"OS_CLIENT_CONFIG_FILE": str(self._file), "OS_CLOUD": user}

    def _project(self, name: str) -> str:
        return str(self._keystone.ask("project", "show", name)["id"])

    def run(self, login: dict[str, str], *words: str) -> Outcome:
        """Run ``openstack pcloud`` with these words."""
        return self._service.run("pcloud", *words, login=login)

    def do(self, login: dict[str, str], *words: str) -> str:
        """Run such a command, which must succeed; returns its messages."""
        outcome = self.run(login, *words)
        assert outcome.status == 0, outcome.errors
        return outcome.errors

    def refuses(self, login: dict[str, str], *words: str) -> str:
        """Run such a command, which must fail; returns its error."""
        outcome = self.run(login, *words)
        assert outcome.status != 0, outcome.output
        return outcome.errors

    def let_in(self) -> set[str]:
        """The projects that may use alice's pcloud."""
        outcome = self.run(self.alice, "project", "list", "web", "-f", "value")
        assert outcome.status == 0, outcome.errors
        return set(outcome.output.split())


@pytest.fixture(scope="module")
def keystone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Started]:
    with started(tmp_path_factory.mktemp("keystone")) as running:
        running.ask("user", "create", "--password", "ours", "--project", "service", "keeper")
        running.do("role", "add", "--user", "keeper", "--project", "service", "service")
        for project, user in (("lab", "alice"), ("shop", "bob")):
            running.do("project", "create", project)
            login = ("--password", f"secret-of-{user}", "--project", project)
            running.do("user", "create", *login, user)
            running.do("role", "add", "--user", user, "--project", project, "member")
        yield running


@pytest.fixture(scope="module", params=["builtin", "keystone"])
def cloud(
    request: pytest.FixtureRequest, keystone: Started, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cloud]:
    folder = tmp_path_factory.mktemp("cloud")
    if request.param == "builtin":
        yield furnished(keystone, keystone, folder)
        return
    config = folder / "settings.toml"
    config.write_text(
        'auth = "keystone"\n'
        f'keystone_url = "{keystone.url}/identity"\n'
        'keystone_user = "keeper"\n'
        'keystone_password = "ours"\n',
        encoding="utf-8",
    )
    with started(folder, "--config", str(config)) as service:
        yield furnished(service, keystone, folder)


def furnished(service: Started, keystone: Started, folder: Path) -> Cloud:
    cloud = Cloud(service, keystone, folder)
    cloud.do(cloud.alice, "create", "web")
    return cloud


def test_an_administrator_names_a_project_by_its_name_or_its_id(cloud: Cloud) -> None:
    for text in ("shop", cloud.ids["shop"]):
        assert cloud.do(cloud.admin, "project", "add", "web", text) == ""
        assert cloud.let_in() == set(cloud.ids.values())
    cloud.do(cloud.admin, "project", "remove", "web", "shop")
    for text in ("guest", UNKNOWN):
        assert NO_PROJECT in cloud.refuses(cloud.admin, "project", "add", "web", text)
        assert NO_PROJECT in cloud.refuses(cloud.admin, "quota", "set", "--units", "1", text)
    assert cloud.let_in() == {cloud.ids["lab"]}


def test_an_owner_that_may_not_look_names_a_project_by_its_id(cloud: Cloud) -> None:
    for name in ("shop", "guest"):
        assert NO_FORM in cloud.refuses(cloud.alice, "project", "add", "web", name)
    assert cloud.let_in() == {cloud.ids["lab"]}
    shop = cloud.ids["shop"]
    assert f"Project {shop} {UNCHECKED}" in cloud.do(cloud.alice, "project", "add", "web", shop)
    assert cloud.let_in() == set(cloud.ids.values())
    # The pcloud's own list of projects needs no lookup.
    assert cloud.do(cloud.alice, "project", "remove", "web", shop) == ""
    # The token has the name of its own project.
    assert cloud.do(cloud.alice, "list", "--project", "lab") == ""
    assert cloud.do(cloud.alice, "quota", "show", "lab") == ""
    assert NO_FORM in cloud.refuses(cloud.alice, "list", "--project", "shop")
    assert NO_FORM in cloud.refuses(cloud.alice, "usage", "show", "--project", "shop")


def test_a_guest_leaves_by_the_name_or_the_id_of_its_own_project(cloud: Cloud) -> None:
    for text in ("shop", cloud.ids["shop"]):
        cloud.do(cloud.admin, "project", "add", "web", "shop")
        assert cloud.do(cloud.bob, "project", "remove", "web", text) == ""
        assert cloud.let_in() == {cloud.ids["lab"]}


def test_a_project_that_is_gone_is_let_out_by_its_id(cloud: Cloud, keystone: Started) -> None:
    made = keystone.ask("project", "create", "short-lived")["id"]
    for login in (cloud.admin, cloud.alice):
        cloud.do(login, "project", "add", "web", made)
    keystone.do("project", "delete", made)
    assert NO_PROJECT in cloud.refuses(cloud.admin, "project", "remove", "web", "short-lived")
    assert NO_PROJECT in cloud.refuses(cloud.admin, "project", "add", "web", made)
    # The record keeps its id.
    cloud.do(cloud.admin, "usage", "show", "--project", made)
    cloud.do(cloud.admin, "quota", "reset", made)
    cloud.do(cloud.admin, "project", "remove", "web", made)
    assert cloud.let_in() == {cloud.ids["lab"]}


def test_only_builtin_identity_refuses_unknown_project_ids(
    cloud: Cloud, request: pytest.FixtureRequest
) -> None:
    add = ("project", "add", "web", UNKNOWN)
    if request.node.callspec.params["cloud"] == "builtin":
        refused = cloud.refuses(cloud.alice, *add)
        assert f"Project {UNKNOWN} does not exist. (HTTP 400)" in refused
        assert UNCHECKED in refused
        return
    assert UNCHECKED in cloud.do(cloud.alice, *add)
    assert UNKNOWN in cloud.let_in()
    cloud.do(cloud.alice, "project", "remove", "web", UNKNOWN)
    assert cloud.let_in() == {cloud.ids["lab"]}
