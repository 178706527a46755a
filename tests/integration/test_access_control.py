"""Every route of every API, called without a token, with another project's token, with a
read-only token, and with a user without a role.

The routes are read from the program, so a new route is tested automatically.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from innkeeper.domain.identity import RequestContext
from innkeeper.domain.slices import Serving
from innkeeper.entrypoints.api.routing import Api, Route
from innkeeper.entrypoints.api.tables import APIS
from innkeeper.systems.identity.roles import names_with_implied
from tests.support.isolated_projects import MARK, Member, Projects, lost, projects

PLACEHOLDER = re.compile(r"\{([^}]*)\}")
REFUSED = (401, 403, 404)
SOMEBODYS = frozenset(
    {
        "server_id",
        "group_id",
        "image_id",
        "project_id",
        "user_id",
        "flavor_id",
        "consumer",
        "volume_id",
    }
)
"""Path parameters that identify Amber's resources."""
ABOUT_NOBODY = (
    "/v2.1/os-quota-sets/{project_id}/defaults",
    "/v3/os-quota-sets/{project_id}/defaults",
)
"""Routes that name a project without revealing anything about it."""
BUSY = ("news", "periodic_tasks", "changes", "traits", "resource_classes", "write_order")
"""Tables that change by themselves, or hold public data."""
PATCH_TYPE = "application/openstack-images-v2.1-json-patch"
NO_VOLUME = "8f5b2a60-2d33-4d0f-9d6c-51f6f6a1b9f0"
BODIES: dict[str, Any] = {
    "PUT /v2.1/servers/{server_id}": {"server": {"name": "mine"}},
    "POST /v2.1/servers/{server_id}/metadata": {"metadata": {"a": "b"}},
    "PUT /v2.1/servers/{server_id}/metadata": {"metadata": {"a": "b"}},
    "PUT /v2.1/servers/{server_id}/metadata/{key}": {"meta": {f"{MARK}-key": "b"}},
    "PUT /v2.1/servers/{server_id}/tags": {"tags": ["a"]},
    "POST /v2.1/servers/{server_id}/action": {"lock": None},
    "POST /v2.1/servers/{server_id}/migrations/{migration_id}/action": {"force_complete": None},
    "POST /v2.1/flavors/{flavor_id}/action": {"addTenantAccess": {"tenant": "mine"}},
    "PATCH /v2/images/{image_id}": [{"op": "replace", "path": "/name", "value": "mine"}],
    "POST /v2.1/servers/{server_id}/os-volume_attachments": {
        "volumeAttachment": {"volumeId": NO_VOLUME}
    },
    "PUT /v2.1/servers/{server_id}/os-volume_attachments/{volume_id}": {
        "volumeAttachment": {"volumeId": NO_VOLUME}
    },
    "PUT /v3/volumes/{volume_id}": {"volume": {"name": "mine"}},
    "POST /v3/volumes/{volume_id}/action": {"os-extend": {"new_size": 2}},
    "POST /v3/volumes/{volume_id}/metadata": {"metadata": {"a": "b"}},
    "PUT /v3/volumes/{volume_id}/metadata": {"metadata": {"a": "b"}},
    "PUT /v3/volumes/{volume_id}/metadata/{key}": {"meta": {f"{MARK}-key": "b"}},
    "POST /v3/users/{user_id}/password": {
        "user": {"password": "mine", "original_password": "theirs"}
    },
}
"""Valid bodies: a rejected body would hide a missing check of the caller."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Projects]:
    with projects(tmp_path_factory.mktemp("strangers")) as started:
        yield started


@pytest.fixture(scope="module")
def before(made: Projects) -> dict[str, set[str]]:
    rows = made.rows()
    return {name: found for name, found in rows.items() if name not in BUSY}


def guarded() -> list[Any]:
    """Every route that has a policy."""
    return [
        pytest.param(api, route, id=f"{api.name} {route.method} {route.path} {route.since}")
        for api in APIS.values()
        for route in api.routes
        if route.rule is not None
    ]


def request_of(api: Api, route: Route, made: Projects) -> tuple[str, dict[str, Any]]:
    """A path with Amber's ids, and the rest of a valid request."""
    path = PLACEHOLDER.sub(lambda m: made.things.get(m[1], f"{MARK}-{m[1]}"), route.path)
    path = getattr(Serving(), f"{api.name}_prefix") + path
    version = route.until or route.since
    headers = {"openstack-api-version": f"{api.service_type} {version or 'latest'}"}
    body = BODIES.get(f"{route.method} {route.path}", {})
    if isinstance(body, list):
        headers["content-type"] = PATCH_TYPE
    if route.takes_stream:
        headers["content-type"] = "application/octet-stream"
        return path, {"headers": headers, "content": b"bits"}
    has_body = route.body is not None
    return path, {"headers": headers, **({"json": body} if has_body else {})}


def is_let_in(made: Projects, route: Route, member: Member, roles: tuple[str, ...]) -> bool:
    """Whether the route's rule admits a user, for the user's own resources."""
    assert route.rule is not None
    context = RequestContext(
        "", member.user_id, member.project_id, names_with_implied(roles), member.name
    )
    own: dict[str, Any] = {"project_id": member.project_id, "user_id": member.user_id}
    own |= dict.fromkeys(route.policy_parameters)
    return made.service.service.site.policy.allows(route.rule.name, context, own)


@pytest.mark.parametrize(("api", "route"), guarded())
def test_unauthenticated_requests_are_refused_and_change_nothing(
    made: Projects, before: dict[str, set[str]], api: Api, route: Route
) -> None:
    path, rest = request_of(api, route, made)
    answer = made.ask(None, route.method, path, **rest)
    assert answer.status_code == 401, answer.text
    named = set(PLACEHOLDER.findall(route.path)) & SOMEBODYS
    strangers = {made.birch: ("member", "manager"), made.reader: ("reader",), made.roleless: ()}
    for member, roles in strangers.items():
        answer = made.ask(member, route.method, path, **rest)
        about = f"{member.name}: {answer.status_code} {answer.text[:300]}"
        assert answer.status_code < 500, about
        is_theirs = is_let_in(made, route, member, roles)
        if not is_theirs or (named and route.path not in ABOUT_NOBODY):
            assert answer.status_code in REFUSED, about
        reported = answer.text
        # The longest words come first, because an id's name may occur in other parts of the path.
        for word in sorted(path.split("/"), key=len, reverse=True):
            reported = reported.replace(word, "")
        assert MARK not in reported, about
    assert lost(before, made.rows_of(before)) == {}


def test_agents_may_use_their_own_routes_alone(made: Projects) -> None:
    answer = made.ask(
        made.admin,
        "POST",
        "/compute/v2.1/os-agent-credentials",
        json={"agent_credential": {"agent_name": "other-rack"}},
    )
    assert answer.status_code == 201, answer.text
    credential = answer.json()["agent_credential"]["credential"]
    let_in = []
    for api, route in ((each.values[0], each.values[1]) for each in guarded()):
        path, rest = request_of(api, route, made)
        answer = made.ask(credential, route.method, path, **rest)
        if answer.status_code != 403:
            let_in.append((route.method, route.path, answer.status_code))
    assert let_in == [
        ("POST", "/v2.1/os-agents", 400),
        ("GET", "/v2.1/os-agents/{agent_id}", 404),
        ("PUT", "/v2.1/os-agents/{agent_id}/hosts", 400),
        ("POST", "/v2.1/os-agents/{agent_id}/heartbeat", 404),
        ("POST", "/v2.1/os-agents/{agent_id}/work", 404),
        ("POST", "/v2.1/os-agents/{agent_id}/results", 400),
    ]
