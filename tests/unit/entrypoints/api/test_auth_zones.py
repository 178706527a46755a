"""A hop token reaches one target of the few routes that zone parents may use."""

from __future__ import annotations

from datetime import datetime
from urllib.parse import parse_qsl, unquote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from innkeeper.domain import hops
from innkeeper.domain.errors import Forbidden, Unauthenticated
from innkeeper.domain.identity import RequestContext
from innkeeper.domain.zone_tree import Hop, TreeRequest, ZoneParent
from innkeeper.entrypoints.api import tables
from innkeeper.entrypoints.api.auth_zones import (
    OWN_ROUTES,
    READING,
    SELECT,
    SERVERS,
    WITHOUT_WRITES,
    check_target,
    has_ids,
    remove_prefix,
    without_prefix,
)
from innkeeper.entrypoints.api.routing import Route
from innkeeper.entrypoints.api.tables import APIS

NOON = datetime(2026, 1, 1, 12)  # noqa: DTZ001 - the core's clock is naive and in UTC
PARENT = ZoneParent(1, "u", "up", ("admin",), -1, -1, -1, True, NOON, NOON)
TREE = TreeRequest("t", (), 1, 1000, "x.invalid")
ROUTES = [(name, route) for name, api in APIS.items() for route in api.routes]
SAMPLES = {
    "/v2.1/servers": True,
    "/v2.1/servers/detail": True,
    "/v2.1/servers/{server_id}/action": True,
    "/v2.1/zones/select": True,
    "/v2.1/zones/undo": True,
    "/v2.1/zones": False,
    "/v2.1/zones/parents": False,
    "/v2.1/zones/{zone_id}": False,
    "/v2.1/os-explain": True,
    "/v2.1/os-migrations": False,
    "/v2.1/os-keypairs": False,
    "/v2.1/os-agents/{agent_id}/work": False,
}
TARGETS = st.text("ab/?=&;%23dDfF5cC.~ü+ ", max_size=12)


def context(method: str, target: str, project_id: str | None = "up:lab") -> RequestContext:
    """The caller with a token for this method and target."""
    hop = Hop("h", PARENT, method, target, hops.digest_of(b""), NOON, TREE)
    return RequestContext("r", "up:ann", project_id, frozenset({"admin"}), hop=hop)


def is_let_in(route: Route, project_id: str | None = "up:lab", query: str = "") -> bool:
    """Whether a token with this route's own target is let in."""
    target = route.path + query
    try:
        check_target(context(route.method, target, project_id), route, route.method, target)
    except Forbidden:
        return False
    return True


def test_a_token_reaches_only_the_routes_of_servers_and_plans() -> None:
    reached = {(name, each.method, each.path) for name, each in ROUTES if is_let_in(each)}
    expected = {
        ("compute", each.method, each.path)
        for each in tables.ROUTES
        if each.path in (SERVERS, "/v2.1/zones/select", "/v2.1/os-explain")
        or each.path.startswith(SERVERS + "/")
        or (each.method, each.path) in OWN_ROUTES
    }
    assert reached == expected
    seen = {path for _, _, path in reached}
    assert {path: path in seen for path in SAMPLES} == SAMPLES


def test_a_token_without_a_project_reaches_only_what_zones_ask_for_themselves() -> None:
    reached = {(each.method, each.path) for _, each in ROUTES if is_let_in(each, None)}
    assert reached == OWN_ROUTES


def test_a_token_without_a_project_may_list_the_servers_of_all_projects() -> None:
    query = "?name=a&all_tenants=1"
    reached = {
        (each.method, each.path)
        for _, each in ROUTES
        if is_let_in(each, None, query) and (each.method, each.path) not in OWN_ROUTES
    }
    assert reached == {("GET", SERVERS), ("GET", f"{SERVERS}/detail")}
    route = next(each for _, each in ROUTES if (each.method, each.path) == ("GET", SERVERS))
    for query in ("?", "?name=all_tenants", "?name=a%26all_tenants=1"):
        assert not is_let_in(route, None, query)


def test_the_body_and_the_id_of_each_request_are_checked() -> None:
    # The endpoint checks both when it reads the body. It reads no body for an open route, and
    # passes a stream to the handler unread.
    for _, route in ROUTES:
        if is_let_in(route):
            assert route.rule is not None and not route.takes_stream


def test_only_plans_and_looks_write_nothing_with_another_method() -> None:
    found = {
        (each.method, each.path)
        for _, each in ROUTES
        if is_let_in(each) and each.method not in READING
    }
    assert {SELECT} < WITHOUT_WRITES < found
    assert {method for method, _ in found} == {"POST", "PUT", "DELETE"}
    assert {each.method for _, each in ROUTES if is_let_in(each)} <= READING | {
        "POST",
        "PUT",
        "DELETE",
    }


@pytest.mark.parametrize(
    ("signed", "sent"),
    [
        ("/v2.1/servers", "/v2.1/servers/"),
        ("/v2.1/servers", "/v2.1//servers"),
        ("/v2.1/servers", "/v2.1/servers.json"),
        ("/v2.1/servers", "/v2.1/servers?"),
        ("/v2.1/servers/a%2Fb", "/v2.1/servers/a/b"),
        ("/v2.1/servers/a%3Fb", "/v2.1/servers/a?b"),
        ("/v2.1/servers?name=a%26all_tenants=1", "/v2.1/servers?name=a&all_tenants=1"),
        ("/v2.1/servers?name=a%3Db", "/v2.1/servers?name=a=b"),
        ("/v2.1/servers?name=a%2Bb", "/v2.1/servers?name=a+b"),
        ("/v2.1/servers?name=a%23b", "/v2.1/servers?name=a#b"),
        ("/v2.1/servers?name=%25e4", "/v2.1/servers?name=%e4"),
        ("/v2.1/servers?name=%FF", "/v2.1/servers?name=%FE"),
        ("/v2.1/servers?name=%ff", "/v2.1/servers?name=\ufffd"),
        ("/v2.1/servers?limit=1", "/v2.1/servers?limit=2"),
        ("/v2.1/servers?limit=1", "/v2.1/servers?limit=1&limit=1"),
        ("/v2.1/servers", "/V2.1/servers"),
        ("/v2.1/servers", "/v2.1/servers\n"),
    ],
)
def test_a_token_for_another_target_is_refused(signed: str, sent: str) -> None:
    route = next(each for each in tables.ROUTES if each.path == SERVERS)
    with pytest.raises(Unauthenticated):
        check_target(context(route.method, signed), route, route.method, sent)


@pytest.mark.parametrize("method", ["POST", "HEAD", "get", "DELETE", ""])
def test_a_token_for_another_method_is_refused(method: str) -> None:
    route = next(each for each in tables.ROUTES if each.path == SERVERS)
    with pytest.raises(Unauthenticated):
        check_target(context(method, SERVERS), route, "GET", SERVERS)


@pytest.mark.parametrize(
    ("signed", "sent"),
    [
        ("/v2.1/servers?name=~a", "/v2.1/servers?name=%7Ea"),
        ("/v2.1/servers?name=%c3%bc", "/v2.1/servers?name=%C3%BC"),
    ],
)
def test_a_proxy_may_escape_more(signed: str, sent: str) -> None:
    route = next(each for each in tables.ROUTES if each.path == SERVERS)
    check_target(context(route.method, signed), route, route.method, sent)


def test_a_token_has_the_digest_of_a_long_target() -> None:
    route = next(each for each in tables.ROUTES if each.path == SERVERS)
    target = f"{SERVERS}?name=%7E" + "a" * hops.TARGET_CHARS_MAX
    signed = hops.signed_target(target)
    assert len(signed) < len(target)
    for sent in (target, target.replace("%7E", "~")):
        check_target(context(route.method, signed), route, route.method, sent)
    for sent in (target + "a", target.replace("%7E", "%2B"), signed, SERVERS):
        with pytest.raises(Unauthenticated):
            check_target(context(route.method, signed), route, route.method, sent)


@given(TARGETS, TARGETS)
@example("a%2fb", "a/b")
@example("a?b%26c=1", "a?b&c=1")
def test_targets_with_the_same_form_mean_the_same(one: str, other: str) -> None:
    for target in (one, other):
        assert _meaning(hops.normal_target(target)) == _meaning(target)
        assert hops.normal_target(hops.normal_target(target)) == hops.normal_target(target)
    if hops.normal_target(one) == hops.normal_target(other):
        assert _meaning(one) == _meaning(other)


def _meaning(target: str) -> object:
    path, _, query = target.partition("?")
    parts = [unquote(each, errors="surrogateescape") for each in path.split("/")]
    return parts, parse_qsl(query, keep_blank_values=True, errors="surrogateescape")


def test_the_prefix_is_removed_from_ids_only() -> None:
    body = {
        "server": {
            "tenant_id": "up:lab",
            "user_id": "up:mid:ann",
            "name": "up:lab",
            "list": [{"project_id": "down:lab"}, {"project_id": "up:up:lab"}, 7, None],
        }
    }
    expected = {
        "server": {
            "tenant_id": "lab",
            "user_id": "mid:ann",
            "name": "up:lab",
            "list": [{"project_id": "down:lab"}, {"project_id": "up:lab"}, 7, None],
        }
    }
    written = {"user_id": "up:ann", "project_id": "up:lab"}
    for key in ("metadata", "meta"):
        shown = {"server": {key: dict(written), "links": [dict(written)]}}
        remove_prefix(shown, "up:")
        assert shown["server"][key] == written, "a user wrote it"
        assert shown["server"]["links"] == [{"user_id": "ann", "project_id": "lab"}]
    assert without_prefix(b"no JSON", "up:") == b"no JSON"
    remove_prefix(body, "up:")
    assert body == expected


def test_answers_about_servers_may_have_ids_and_plans_have_none() -> None:
    by_name = {(each.method, each.path): each for name, each in ROUTES if name == "compute"}
    assert has_ids(by_name["GET", SERVERS])
    assert has_ids(by_name["GET", "/v2.1/zones/servers"])
    assert not has_ids(by_name[SELECT])
