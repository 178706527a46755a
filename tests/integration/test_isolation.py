"""Of two projects with one of each resource, neither can see, list, count, change or infer
resources of the other.

Another project's resource must look like one that does not exist: each request has a twin
with an unknown name, and the answers may differ only in the name.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, quote_plus

import pytest

from tests.support.isolated_projects import (
    MARK,
    PUBLIC_KEY,
    Member,
    Projects,
    belongings,
    good,
    lost,
    projects,
)

OTHER = "birchword"
NOBODYS = "01a1fb83-0000-7000-8000-000000000000"
BUSY = ("news", "periodic_tasks", "changes", "traits", "resource_classes", "write_order")
COMPUTE, IMAGE, IDENTITY = "/compute/v2.1", "/image/v2", "/identity/v3"
LEASES = "/reservation/v1/leases"
PATCH = {"content-type": "application/openstack-images-v2.1-json-patch"}
RENAMED = [{"op": "replace", "path": "/name", "value": "mine"}]
NAME_LENGTH_MIN = 6
"""Shorter words occur in every text."""
PLAN_KEY = "c286696d887c9aa0611bbb3e2025a45b"
Sides = tuple[Projects, Member, str, dict[str, str]]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Projects]:
    folder = tmp_path_factory.mktemp("isolation")
    with projects(folder, build_plan_encryption_key=[PLAN_KEY]) as started:
        birchs = belongings(started, started.birch, OTHER)
        started.things |= {f"birch {name}": text for name, text in birchs.items()}
        yield started


@pytest.fixture(params=["amber looks at birch", "birch looks at amber"])
def sides(request: pytest.FixtureRequest, made: Projects) -> Sides:
    """The caller, the word in the names of the other project's resources, and their ids."""
    prefix = "birch "
    if request.param == "amber looks at birch":
        things = {
            name.removeprefix(prefix): text
            for name, text in made.things.items()
            if name.startswith(prefix)
        }
        return made, made.amber, OTHER, things
    things = {k: text for k, text in made.things.items() if not k.startswith(prefix)}
    return made, made.birch, MARK, things


VERBS: tuple[tuple[str, str, Any], ...] = (
    ("GET", f"{COMPUTE}/servers/{{server_id}}", None),
    ("PUT", f"{COMPUTE}/servers/{{server_id}}", {"server": {"name": "mine"}}),
    ("DELETE", f"{COMPUTE}/servers/{{server_id}}", None),
    ("GET", f"{COMPUTE}/servers/{{server_id}}/metadata", None),
    ("POST", f"{COMPUTE}/servers/{{server_id}}/metadata", {"metadata": {"a": "b"}}),
    ("PUT", f"{COMPUTE}/servers/{{server_id}}/metadata", {"metadata": {"a": "b"}}),
    ("GET", f"{COMPUTE}/servers/{{server_id}}/metadata/{{key}}", None),
    ("DELETE", f"{COMPUTE}/servers/{{server_id}}/metadata/{{key}}", None),
    ("GET", f"{COMPUTE}/servers/{{server_id}}/tags", None),
    ("PUT", f"{COMPUTE}/servers/{{server_id}}/tags", {"tags": ["a"]}),
    ("DELETE", f"{COMPUTE}/servers/{{server_id}}/tags", None),
    ("PUT", f"{COMPUTE}/servers/{{server_id}}/tags/mine", None),
    ("GET", f"{COMPUTE}/servers/{{server_id}}/ips", None),
    ("GET", f"{COMPUTE}/servers/{{server_id}}/os-interface", None),
    ("GET", f"{COMPUTE}/servers/{{server_id}}/os-security-groups", None),
    ("GET", f"{COMPUTE}/servers/{{server_id}}/os-volume_attachments", None),
    ("GET", f"{COMPUTE}/servers/{{server_id}}/os-explain", None),
    ("GET", f"{COMPUTE}/servers/{{server_id}}/os-instance-actions", None),
    ("GET", f"{COMPUTE}/servers/{{server_id}}/os-instance-actions/{{request_id}}", None),
    ("GET", f"{COMPUTE}/servers/{{server_id}}/migrations", None),
    ("DELETE", f"{COMPUTE}/servers/{{server_id}}/migrations/{{migration_id}}", None),
    (
        "POST",
        f"{COMPUTE}/servers/{{server_id}}/migrations/{{migration_id}}/action",
        {"force_complete": None},
    ),
    ("GET", f"{COMPUTE}/os-server-groups/{{group_id}}", None),
    ("DELETE", f"{COMPUTE}/os-server-groups/{{group_id}}", None),
    ("GET", f"{COMPUTE}/os-keypairs/{{name}}", None),
    ("DELETE", f"{COMPUTE}/os-keypairs/{{name}}", None),
    ("GET", f"{IMAGE}/images/{{image_id}}", None),
    ("PATCH", f"{IMAGE}/images/{{image_id}}", RENAMED),
    ("DELETE", f"{IMAGE}/images/{{image_id}}", None),
    ("GET", f"{IMAGE}/images/{{image_id}}/file", None),
    ("PUT", f"{IMAGE}/images/{{image_id}}/file", b"bits"),
    ("PUT", f"{IMAGE}/images/{{image_id}}/tags/mine", None),
    ("DELETE", f"{IMAGE}/images/{{image_id}}/tags/{{tag}}", None),
    ("GET", f"{LEASES}/{{lease_id}}", None),
    ("PUT", f"{LEASES}/{{lease_id}}", {"name": "mine"}),
    ("DELETE", f"{LEASES}/{{lease_id}}", None),
)
ACTIONS: tuple[dict[str, Any], ...] = (
    {"os-start": None},
    {"os-stop": None},
    {"reboot": {"type": "HARD"}},
    {"pause": None},
    {"unpause": None},
    {"suspend": None},
    {"resume": None},
    {"lock": None},
    {"unlock": None},
    {"resize": {"flavorRef": "small"}},
    {"confirmResize": None},
    {"revertResize": None},
    {"migrate": None},
    {"os-migrateLive": {"block_migration": "auto", "host": None}},
    {"shelve": None},
    {"unshelve": None},
    {"setDedicatedHosts": {}},
    {"forceDelete": None},
)
EVERYTHING = (
    *VERBS,
    *(("POST", f"{COMPUTE}/servers/{{server_id}}/action", body) for body in ACTIONS),
)


def ids_of(entry: tuple[str, str, Any]) -> str:
    method, path, body = entry
    action = next(iter(body)) if path.endswith("/action") else ""
    return f"{method} {path} {action}"


def send(made: Projects, who: Member, entry: tuple[str, str, Any], ids: dict[str, str]) -> Any:
    """Send a request with these ids; returns the answer's status, and its text without the ids."""
    method, path, body = entry
    path = path.format_map(ids)
    if isinstance(body, bytes):
        octets = {"content-type": "application/octet-stream"}
        answer = made.ask(who, method, path, content=body, headers=octets)
    elif isinstance(body, list):
        answer = made.ask(who, method, path, json=body, headers=PATCH)
    else:
        answer = made.ask(who, method, path, **({"json": body} if body else {}))
    reported = answer.text
    for word in sorted(ids.values(), key=len, reverse=True):
        reported = reported.replace(word, "ID") if len(word) >= NAME_LENGTH_MIN else reported
    request_id = answer.headers["x-openstack-request-id"]
    return answer.status_code, reported.replace(request_id, "REQUEST")


@pytest.mark.parametrize("entry", EVERYTHING, ids=ids_of)
def test_another_projects_resource_looks_absent(sides: Sides, entry: tuple[str, str, Any]) -> None:
    made, who, _, theirs = sides
    before = made.rows()
    nothings = dict.fromkeys(theirs, NOBODYS) | {"migration_id": "999999"}
    status, reported = send(made, who, entry, theirs)
    assert status == 404, reported
    assert (status, reported) == send(made, who, entry, nothings)
    assert {n: r for n, r in lost(before, made.rows()).items() if n not in BUSY} == {}


LISTS = (
    f"{COMPUTE}/servers",
    f"{COMPUTE}/servers/detail",
    f"{COMPUTE}/servers/detail?name={{word}}",
    f"{COMPUTE}/servers/detail?project_id={{project_id}}",
    f"{COMPUTE}/servers/detail?tenant_id={{project_id}}",
    f"{COMPUTE}/servers/detail?user_id={{user_id}}",
    f"{COMPUTE}/servers/detail?tags={{word}}-tag",
    f"{COMPUTE}/servers/detail?uuid={{server_id}}",
    f"{COMPUTE}/servers/detail?image={{image_id}}",
    f"{COMPUTE}/servers/detail?key_name={{word}}-key",
    f"{COMPUTE}/servers/detail?changes-since=2020-01-01T00:00:00Z",
    f"{COMPUTE}/os-keypairs",
    f"{COMPUTE}/os-server-groups",
    f"{COMPUTE}/os-server-groups?all_projects=True",
    f"{COMPUTE}/flavors/detail",
    f"{COMPUTE}/flavors/detail?is_public=none",
    f"{COMPUTE}/limits",
    f"{COMPUTE}/os-availability-zone",
    f"{COMPUTE}/os-migrations?project_id={{own}}",
    f"{COMPUTE}/os-migrations?project_id={{own}}&instance_uuid={{server_id}}",
    f"{COMPUTE}/os-migrations?project_id={{own}}&user_id={{user_id}}",
    f"{IMAGE}/images",
    f"{IMAGE}/images?visibility=all",
    f"{IMAGE}/images?visibility=private",
    f"{IMAGE}/images?owner={{project_id}}",
    f"{IMAGE}/images?id={{image_id}}",
    f"{IMAGE}/images?id=in:{{image_id}}",
    f"{IMAGE}/images?tag={{word}}-tag",
    f"{IMAGE}/images?member_status=all",
    LEASES,
    f"{IDENTITY}/auth/projects",
    f"{IDENTITY}/auth/catalog",
    f"{IDENTITY}/users/{{me}}/projects",
    f"{IDENTITY}/role_assignments?user.id={{me}}&include_names",
    f"{IDENTITY}/role_assignments?user.id={{me}}&scope.project.id={{project_id}}",
    "/placement/usages?project_id={own}",
    "/placement/usages?project_id={own}&user_id={user_id}",
)


@pytest.mark.parametrize("path", LISTS)
def test_lists_leave_out_other_projects_resources(sides: Sides, path: str) -> None:
    made, who, word, theirs = sides
    named = {**theirs, "word": word, "own": str(who.project_id), "me": who.user_id}
    answer = made.ask(who, "GET", path.format_map(named))
    assert answer.status_code == 200, answer.text
    found = answer.text
    for asked in parse_qs(path.partition("?")[2].format_map(named)).values():
        # The link to the next page, or to this one, repeats the query.
        for form in (asked[0], quote_plus(asked[0])):
            found = found.replace(form, "")
    for secret in (word, theirs["server_id"], theirs["image_id"], theirs["group_id"]):
        assert secret not in found
    for secret in (theirs["project_id"], theirs["user_id"], theirs["migration_uuid"]):
        assert secret not in found


REFUSED_LISTS = (
    f"{COMPUTE}/servers?all_tenants=1",
    f"{COMPUTE}/servers/detail?all_tenants=1",
    f"{COMPUTE}/servers?sort_key=host",
    f"{COMPUTE}/servers/detail?status=DELETED",
    f"{COMPUTE}/os-keypairs?user_id={{user_id}}",
    f"{COMPUTE}/os-quota-sets/{{project_id}}",
    f"{COMPUTE}/os-quota-sets/{{project_id}}/detail",
    f"{COMPUTE}/limits?tenant_id={{project_id}}",
    f"{COMPUTE}/os-simple-tenant-usage/{{project_id}}",
    f"{COMPUTE}/os-simple-tenant-usage",
    f"{COMPUTE}/os-migrations",
    f"{COMPUTE}/os-migrations?project_id={{project_id}}",
    f"{IDENTITY}/projects/{{project_id}}",
    f"{IDENTITY}/projects",
    f"{IDENTITY}/users/{{user_id}}",
    f"{IDENTITY}/users/{{user_id}}/projects",
    f"{IDENTITY}/users",
    f"{IDENTITY}/role_assignments",
    f"{IDENTITY}/role_assignments?user.id={{user_id}}",
    f"{IDENTITY}/projects/{{project_id}}/users/{{user_id}}/roles",
    "/placement/usages?project_id={project_id}",
    "/placement/allocations/{server_id}",
    "/placement/resource_providers",
)


@pytest.mark.parametrize("path", REFUSED_LISTS)
def test_requests_about_other_projects_are_refused_alike(sides: Sides, path: str) -> None:
    made, who, word, theirs = sides
    status, reported = send(made, who, ("GET", path, None), theirs)
    assert status == 403, reported
    assert word not in reported
    assert (status, reported) == send(
        made, who, ("GET", path, None), dict.fromkeys(theirs, NOBODYS)
    )


MARKER_PATHS = (
    f"{COMPUTE}/servers?marker={{server_id}}",
    f"{COMPUTE}/servers/detail?marker={{server_id}}",
    f"{COMPUTE}/os-keypairs?marker={{name}}",
    f"{COMPUTE}/os-migrations?project_id={{own}}&marker={{migration_uuid}}",
    f"{COMPUTE}/os-simple-tenant-usage/{{own}}?marker={{server_id}}",
    f"{COMPUTE}/servers/{{mine}}/os-instance-actions?marker={{request_id}}",
    f"{COMPUTE}/servers/{{mine}}/os-instance-actions/{{request_id}}",
    f"{IMAGE}/images?marker={{image_id}}",
    f"{LEASES}?marker={{lease_id}}",
    f"{COMPUTE}/flavors?marker={MARK}-flavor",
)


@pytest.mark.parametrize("path", MARKER_PATHS)
def test_another_projects_resource_is_no_marker(sides: Sides, path: str) -> None:
    made, who, _, theirs = sides
    own = {"own": str(who.project_id)}
    mine = "birch server_id" if who is made.birch else "server_id"
    own["mine"] = made.things[mine]
    if MARK in path and who is made.amber:
        return
    asked = send(made, who, ("GET", path, None), theirs | own)
    nothings = dict.fromkeys(theirs, NOBODYS) | own
    path = path.replace(f"{MARK}-flavor", NOBODYS)
    status, reported = send(made, who, ("GET", path, None), nothings)
    assert (asked[0], asked[1].replace(f"{MARK}-flavor", "ID")) == (
        status,
        reported.replace(NOBODYS, "ID"),
    )


def boot(**more: Any) -> dict[str, Any]:
    hints = more.pop("hints", None)
    body: dict[str, Any] = {
        "server": {"name": "mine", "flavorRef": "small", "networks": "none", **more}
    }
    return body if hints is None else {**body, "os:scheduler_hints": hints}


WANTED: tuple[dict[str, Any], ...] = (
    {"hints": {"same_host": "{server_id}"}},
    {"hints": {"same_host": ["{server_id}"]}},
    {"hints": {"different_host": "{server_id}"}},
    {"hints": {"different_host": ["{server_id}"]}},
    {"hints": {"group": "{group_id}"}},
    {"imageRef": "{image_id}"},
    {"key_name": "{name}"},
    {"flavorRef": "{flavor_id}"},
)


def put_in(wanted: Any, ids: dict[str, str]) -> Any:
    """The request with these ids in it."""
    if isinstance(wanted, dict):
        return {name: put_in(value, ids) for name, value in wanted.items()}
    if isinstance(wanted, list):
        return [put_in(each, ids) for each in wanted]
    return str(wanted).format_map(ids)


BOOTING = ("servers", "os-explain", "zones/select", "zones/boot")


@pytest.mark.parametrize("path", [f"{COMPUTE}/{each}" for each in BOOTING])
@pytest.mark.parametrize("wanted", WANTED, ids=str)
def test_a_boot_neither_uses_nor_reveals_other_projects_resources(
    sides: Sides, path: str, wanted: dict[str, Any]
) -> None:
    made, who, word, theirs = sides
    theirs = {"flavor_id": f"{MARK}-flavor", **theirs}
    if "flavorRef" in wanted and who is made.amber:
        return
    asked = send(made, who, ("POST", path, boot(**put_in(wanted, theirs))), theirs)
    nothings = dict.fromkeys(theirs, NOBODYS)
    assert asked == send(made, who, ("POST", path, boot(**put_in(wanted, nothings))), nothings)
    assert 400 <= asked[0] < 500
    assert word not in asked[1]


def test_names_may_be_the_same_in_both(sides: Sides) -> None:
    """That a name is taken reveals nothing about other projects."""
    made, who, word, theirs = sides
    keypair = {"name": theirs["name"], "type": "ssh", "public_key": PUBLIC_KEY}
    good(made.ask(who, "POST", f"{COMPUTE}/os-keypairs", json={"keypair": keypair}))
    good(made.ask(who, "DELETE", f"{COMPUTE}/os-keypairs/{theirs['name']}"))
    group = {"server_group": {"name": f"{word}-group", "policy": "affinity"}}
    answer = good(made.ask(who, "POST", f"{COMPUTE}/os-server-groups", json=group))
    good(made.ask(who, "DELETE", f"{COMPUTE}/os-server-groups/{answer['server_group']['id']}"))


def test_a_quota_counts_its_own_project_alone(sides: Sides) -> None:
    made, who, _, _ = sides
    limits = good(made.ask(who, "GET", f"{COMPUTE}/limits"))["limits"]["absolute"]
    assert limits["totalInstancesUsed"] == limits["totalCoresUsed"] == 1
    assert limits["totalServerGroupsUsed"] == 1
    usages = good(made.ask(who, "GET", f"/placement/usages?project_id={who.project_id}"))
    used = next(iter(usages["usages"].values()))
    assert used["VCPU"] in (1, 2), "its server's, and while it moves twice"


def test_an_image_cannot_be_taken_over(sides: Sides) -> None:
    made, who, _, theirs = sides
    image = {"name": "mine", "owner": theirs["project_id"]}
    assert made.ask(who, "POST", f"{IMAGE}/images", json=image).status_code == 403
    patch = [{"op": "replace", "path": "/owner", "value": theirs["project_id"]}]
    own = good(made.ask(who, "POST", f"{IMAGE}/images", json={"name": "mine"}))["id"]
    answer = made.ask(who, "PATCH", f"{IMAGE}/images/{own}", json=patch, headers=PATCH)
    assert answer.status_code == 403
    good(made.ask(who, "DELETE", f"{IMAGE}/images/{own}"))


def test_other_users_tokens_can_be_neither_read_nor_revoked(sides: Sides) -> None:
    made, who, _, _ = sides
    other = made.amber if who is made.birch else made.birch
    for method in ("GET", "HEAD", "DELETE"):
        headers = {"x-subject-token": other.token}
        answer = made.ask(who, method, f"{IDENTITY}/auth/tokens", headers=headers)
        assert answer.status_code == 403, answer.text
    assert made.ask(other, "GET", f"{COMPUTE}/servers").status_code == 200


def test_a_login_to_another_users_project_is_refused(sides: Sides) -> None:
    made, who, _, theirs = sides
    body = {
        "auth": {
            "identity": {"methods": ["token"], "token": {"id": who.token}},
            "scope": {"project": {"id": theirs["project_id"]}},
        }
    }
    reported = made.service.call("POST", f"{IDENTITY}/auth/tokens", None, json=body)
    body["auth"]["scope"] = {"project": {"id": "f" * 32}}
    twin = made.service.call("POST", f"{IDENTITY}/auth/tokens", None, json=body)
    assert (
        (reported.status_code, reported.text) == (twin.status_code, twin.text) == (401, twin.text)
    )


def test_only_administrators_see_names_of_hosts(sides: Sides) -> None:
    made, who, _, _ = sides
    mine = "birch server_id" if who is made.birch else "server_id"
    server = made.things[mine]
    paths = (
        f"servers/{server}",
        f"servers/{server}/os-explain",
        f"servers/{server}/os-instance-actions",
        f"os-migrations?project_id={who.project_id}",
    )
    for path in paths:
        answer = made.ask(who, "GET", f"{COMPUTE}/{path}")
        assert answer.status_code == 200, answer.text
        tells_no_host(made, answer.text)
    for path in ("os-explain", "zones/select"):
        answer = made.ask(who, "POST", f"{COMPUTE}/{path}", json=boot())
        assert answer.status_code == 200, answer.text
        tells_no_host(made, answer.text)


def tells_no_host(made: Projects, text: str) -> None:
    for name, uuid in hosts_of(made).items():
        # The ids of hosts that projects see are derived from the uuid.
        assert name not in text and uuid not in text


def hosts_of(made: Projects) -> dict[str, str]:
    """The uuids of all hosts, by name."""
    listed = good(made.ask(made.admin, "GET", f"{COMPUTE}/os-hypervisors"))["hypervisors"]
    return {each["hypervisor_hostname"]: each["id"] for each in listed}


def hashed(*parts: str) -> str:
    return hashlib.sha224("".join(parts).encode()).hexdigest()


def test_a_host_id_is_per_project_and_cannot_be_guessed(sides: Sides) -> None:
    made, who, _, _ = sides
    other = made.amber if who is made.birch else made.birch
    prefix = "birch " if who is made.birch else ""
    path = f"{COMPUTE}/servers/{made.things[f'{prefix}server_id']}"
    project, hosts = str(who.project_id), hosts_of(made)
    home = good(made.ask(made.admin, "GET", path))["server"]["OS-EXT-SRV-ATTR:host"]

    def host_id() -> str:
        return str(good(made.ask(who, "GET", path))["server"]["hostId"])

    before = host_id()
    assert before == hashed(project, hosts[home]) != hashed(str(other.project_id), hosts[home])
    assert before not in {hashed(project, name) for name in hosts}
    listed = good(made.ask(who, "GET", f"{COMPUTE}/servers/detail"))["servers"]
    assert before in {each["hostId"] for each in listed}
    request = made.things[f"{prefix}request_id"]
    action = good(made.ask(who, "GET", f"{path}/os-instance-actions/{request}"))
    events = {each["hostId"] for each in action["instanceAction"]["events"]}
    assert before in events <= {hashed(project, uuid) for uuid in hosts.values()}
    # Renaming the host keeps its id.
    provider = f"/placement/resource_providers/{hosts[home]}"
    for name in ("renamed", home):
        good(made.ask(made.admin, "PUT", provider, json={"name": name}))
        assert host_id() == before
