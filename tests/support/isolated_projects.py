"""Creates two isolated projects, with everything that a project can have.

Amber owns one of each resource; Birch and the others have no relation to it. The names of
Amber's resources contain a word that no other project may ever read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from innkeeper.entrypoints.api.tables import APIS
from innkeeper.store.tables.metadata import METADATA
from tests.support.running import Running, running

MARK = "amberword"
"""Part of every name and text of Amber's resources."""
PASSWORD = "correct horse battery"
NEWEST = {"openstack-api-version": "compute 2.100, placement 1.39"}
HOST_FACTS = {"VCPU": {"total": 32}, "MEMORY_MB": {"total": 65536}, "DISK_GB": {"total": 1000}}
PUBLIC_KEY = (
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGf0jwqKqqRUYBhC8NcfO6oqvN5Yqy4mNpaPrYVbLtGn someone"
)


@dataclass(frozen=True, slots=True)
class Member:
    """A user with a token."""

    name: str
    user_id: str
    token: str
    project_id: str | None = None


@dataclass(slots=True)
class Projects:
    """A service with Amber, Birch and others, and Amber's resources."""

    service: Running
    admin: str
    amber: Member
    birch: Member
    reader: Member
    roleless: Member
    things: dict[str, str] = field(default_factory=dict)

    def ask(self, member: Member | str | None, method: str, path: str, **more: Any) -> Any:
        """Send a request in the newest versions of all APIs."""
        token = member.token if isinstance(member, Member) else member
        headers = {**NEWEST, **more.pop("headers", {})}
        return self.service.call(method, path, token, headers=headers, **more)

    def rows(self) -> dict[str, set[str]]:
        """Return all rows of the store."""
        return self.rows_of(METADATA.tables)

    def rows_of(self, tables: Iterable[str]) -> dict[str, set[str]]:
        """Return all rows of some tables, by the tables' names."""
        with self.service.service.store.read() as tx:
            return {
                name: {repr(tuple(r)) for r in tx.execute(sa.select(METADATA.tables[name]))}
                for name in tables
            }


def lost(before: dict[str, set[str]], after: dict[str, set[str]]) -> dict[str, set[str]]:
    """Return the rows that were deleted or changed."""
    gone = {name: rows - after[name] for name, rows in before.items()}
    return {name: rows for name, rows in gone.items() if rows}


def log_in(
    service: Running, user: str, project: str | None, password: str = PASSWORD
) -> tuple[str, dict[str, Any]]:
    """Return a token, and the content of its body."""
    named = {"name": user, "domain": {"id": "default"}, "password": password}
    scope: Any = "unscoped"
    if project is not None:
        scope = {"project": {"name": project, "domain": {"id": "default"}}}
    identity = {"methods": ["password"], "password": {"user": named}}
    body = {"auth": {"identity": identity, "scope": scope}}
    answer = service.call("POST", "/identity/v3/auth/tokens", None, json=body)
    assert answer.status_code == 201, answer.text
    return answer.headers["x-subject-token"], answer.json()["token"]


def admin_token(service: Running) -> str:
    """Return the administrator's token."""
    password = service.admin_password()
    assert password is not None, "this was not the first start"
    token, _ = log_in(service, "admin", "admin", password)
    return token


class _Making:
    """Creates users and projects as an administrator does."""

    def __init__(self, service: Running, admin: str) -> None:
        self.service = service
        self.admin = admin
        listed = service.call("GET", "/identity/v3/roles", admin).json()["roles"]
        self._roles = {each["name"]: each["id"] for each in listed}
        self._projects: dict[str, str] = {}

    def _made(self, path: str, noun: str, **fields: Any) -> str:
        answer = self.service.call("POST", f"/identity/v3/{path}", self.admin, json={noun: fields})
        assert answer.status_code == 201, answer.text
        return str(answer.json()[noun]["id"])

    def role(self, name: str) -> str:
        """Return a role's id; creates the role if it is missing."""
        if name not in self._roles:
            self._roles[name] = self._made("roles", "role", name=name)
        return str(self._roles[name])

    def project(self, name: str) -> str:
        """Return a project's id; creates the project if it is missing."""
        if name not in self._projects:
            self._projects[name] = self._made("projects", "project", name=name)
        return self._projects[name]

    def member(self, name: str, project: str | None, *roles: str) -> Member:
        """Create a user with roles on a project, and log in."""
        user_id = self._made("users", "user", name=name, password=PASSWORD)
        project_id = None if project is None else self.project(project)
        for role in roles:
            path = f"projects/{project_id}/users/{user_id}/roles/{self.role(role)}"
            answer = self.service.call("PUT", f"/identity/v3/{path}", self.admin)
            assert answer.status_code == 204, answer.text
        token, _ = log_in(self.service, name, project)
        return Member(name, user_id, token, project_id)


@contextmanager
def projects(folder: Path, **settings: Any) -> Iterator[Projects]:
    """Run a service with these parties, hosts, flavors, and one of each resource of Amber."""
    settings = {"auth": "builtin", "apis": tuple(APIS), "work_poll_s": 0.2, **settings}
    with running(folder, **settings) as service:
        admin = admin_token(service)
        making = _Making(service, admin)
        made = Projects(
            service,
            admin,
            amber=making.member(f"{MARK}-ann", f"{MARK}-project", "member", "manager"),
            birch=making.member("bob", "birch", "member", "manager"),
            reader=making.member("rita", "birch", "reader"),
            roleless=making.member("nora", None),
        )
        make_hosts(made)
        made.things |= belongings(made, made.amber, MARK)
        yield made


def good(answer: Any) -> Any:
    """Return the body of an answer that must be a success."""
    assert answer.status_code < 300, answer.text
    return answer.json() if answer.content else None


def make_hosts(made: Projects) -> None:
    """Create two hosts with an agent, and two flavors: a public one, and one for Amber alone."""
    ask, admin = made.ask, made.admin
    agent = {"agent": {"name": "rack", "driver": "fake"}}
    agent_id = good(ask(admin, "POST", "/compute/v2.1/os-agents", json=agent))["agent"]["id"]
    hosts = [{"name": name, "inventories": HOST_FACTS} for name in ("host-1", "host-2")]
    path = f"/compute/v2.1/os-agents/{agent_id}"
    good(ask(admin, "PUT", f"{path}/hosts", json={"hosts": hosts}))
    good(ask(admin, "POST", f"{path}/heartbeat"))
    size = {"vcpus": 1, "ram": 512, "disk": 1}
    flavor = {"name": "small", "id": "small", **size}
    good(ask(admin, "POST", "/compute/v2.1/flavors", json={"flavor": flavor}))
    secret = {"name": f"{MARK}-flavor", "id": f"{MARK}-flavor", **size}
    secret["os-flavor-access:is_public"] = False
    good(ask(admin, "POST", "/compute/v2.1/flavors", json={"flavor": secret}))
    path = f"/compute/v2.1/flavors/{MARK}-flavor"
    access = {"addTenantAccess": {"tenant": made.amber.project_id}}
    good(ask(admin, "POST", f"{path}/action", json=access))
    specs = {"extra_specs": {"hw:watchdog_action": "none"}}
    good(ask(admin, "POST", f"{path}/os-extra_specs", json=specs))
    made.things |= {"agent_id": agent_id, "flavor_id": f"{MARK}-flavor"}


def carry_out(made: Projects) -> None:
    """Have the agent carry out its orders."""
    path = f"/compute/v2.1/os-agents/{made.things['agent_id']}"
    orders = good(made.ask(made.admin, "POST", f"{path}/work", json={"wait_s": 0}))["orders"]
    if orders:
        results = [{"order_id": each["id"], "ok": True} for each in orders]
        good(made.ask(made.admin, "POST", f"{path}/results", json={"results": results}))


def belongings(made: Projects, who: Member, word: str) -> dict[str, str]:
    """Create one of each resource for a user; returns their ids by path parameter."""
    ask = made.ask
    keypair = {"name": f"{word}-key", "type": "ssh", "public_key": PUBLIC_KEY}
    good(ask(who, "POST", "/compute/v2.1/os-keypairs", json={"keypair": keypair}))
    group = {"name": f"{word}-group", "policy": "affinity"}
    group = good(ask(who, "POST", "/compute/v2.1/os-server-groups", json={"server_group": group}))
    group_id = group["server_group"]["id"]
    image = {
        "name": f"{word}-image",
        "visibility": "private",
        "container_format": "bare",
        "disk_format": "raw",
        "tags": [f"{word}-tag"],
    }
    image_id = good(ask(who, "POST", "/image/v2/images", json=image))["id"]
    path = f"/image/v2/images/{image_id}/file"
    octets = {"content-type": "application/octet-stream"}
    good(ask(who, "PUT", path, content=b"bits", headers=octets))
    server = {
        "name": f"{word}-server",
        "flavorRef": "small",
        "imageRef": image_id,
        "networks": "none",
        "key_name": f"{word}-key",
        "metadata": {f"{word}-key": f"{word}-value"},
        "tags": [f"{word}-tag"],
        "description": f"{word} description",
    }
    body = {"server": server, "os:scheduler_hints": {"group": group_id}}
    server_id = good(ask(who, "POST", "/compute/v2.1/servers", json=body))["server"]["id"]
    volume = {"name": f"{word}-volume", "size": 1, "metadata": {f"{word}-key": f"{word}-value"}}
    volume = good(ask(who, "POST", "/volume/v3/volumes", json={"volume": volume}))["volume"]
    carry_out(made)
    path = f"/compute/v2.1/servers/{server_id}"
    good(ask(who, "POST", f"{path}/action", json={"migrate": None}))
    for _ in range(3):
        carry_out(made)
    actions = good(ask(who, "GET", f"{path}/os-instance-actions"))["instanceActions"]
    path = f"/compute/v2.1/os-migrations?project_id={who.project_id}"
    migration = good(ask(who, "GET", path))["migrations"][0]
    # A reservation of no hosts: it has an owner like any other.
    window = {"start_date": "now", "end_date": "2999-01-01 00:00", "reservations": []}
    lease = {"name": f"{word}-lease", **window}
    lease_id = good(ask(who, "POST", "/reservation/v1/leases", json=lease))["lease"]["id"]
    return {
        "lease_id": lease_id,
        "server_id": server_id,
        "group_id": group_id,
        "image_id": image_id,
        "name": f"{word}-key",
        "key": f"{word}-key",
        "tag": f"{word}-tag",
        "request_id": actions[0]["request_id"],
        "migration_id": str(migration["id"]),
        "migration_uuid": migration["uuid"],
        "project_id": str(who.project_id),
        "user_id": who.user_id,
        "consumer": server_id,
        "volume_id": volume["id"],
    }
