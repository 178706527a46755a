"""Readers cannot change anything; users without a role work in their project."""

from __future__ import annotations

import pytest

from innkeeper.domain.identity import RequestContext
from innkeeper.entrypoints.api.policy import OsloPolicy
from innkeeper.entrypoints.api.routing import Api
from innkeeper.entrypoints.api.tables import APIS

READING = frozenset({"GET", "HEAD"})
CHECKED_BY_HANDLERS = frozenset(
    {
        "os_compute_api:os-explain:explain",
        "os_compute_api:os-flavor-access:action",
        "os_compute_api:servers:show",
        "os_compute_api:zones:select",
        "os_compute_api:zones:servers",
        "os_compute_api:zones:undo",
    }
)
"""Rules of routes that write nothing, or whose actions have rules of their own."""
ACTIONS = ("os_compute_api:os-lock-server:lock", "os_compute_api:os-lock-server:unlock")
OWN = {"project_id": "p", "user_id": "u"}
ROOMS = [pytest.param(APIS[name], id=name) for name in ("compute", "image")]


def caller(*roles: str) -> RequestContext:
    return RequestContext("req-1", user_id="u", project_id="p", roles=frozenset(roles))


def writing(api: Api) -> set[str]:
    """The rules of routes that write."""
    rules = {route.rule for route in api.routes if route.method not in READING}
    names = {rule.name for rule in rules if rule is not None}
    return names - set(CHECKED_BY_HANDLERS)


@pytest.mark.parametrize("api", ROOMS)
def test_readers_change_nothing(api: Api) -> None:
    policy = OsloPolicy(api.rules, None)
    assert {rule for rule in writing(api) if policy.allows(rule, caller("reader"), OWN)} == set()


@pytest.mark.parametrize("api", ROOMS)
@pytest.mark.parametrize(
    "roles", [pytest.param((), id="no role"), ("member", "reader"), ("reader", "service")]
)
def test_writers_change_resources_of_their_project(api: Api, roles: tuple[str, ...]) -> None:
    policy = OsloPolicy(api.rules, None)
    theirs = [
        rule.name
        for rule in api.rules
        if rule.name in writing(api) and "role:reader" in rule.default
    ]
    assert len(theirs) > 3
    assert all(policy.allows(rule, caller(*roles), OWN) for rule in theirs)


@pytest.mark.parametrize("api", ROOMS)
def test_administrators_change_everything(api: Api) -> None:
    policy = OsloPolicy(api.rules, None)
    admin = caller("admin", "member", "reader")
    strangers = {"project_id": "other", "user_id": "other"}
    assert all(policy.allows(rule, admin, strangers) for rule in writing(api))


@pytest.mark.parametrize("rule", ACTIONS)
def test_actions_have_rules_of_their_own(rule: str) -> None:
    policy = OsloPolicy(APIS["compute"].rules, None)
    assert not policy.allows(rule, caller("reader"), OWN)
    assert policy.allows(rule, caller("member", "reader"), OWN)
    assert policy.allows(rule, caller(), OWN)
    assert not policy.allows(rule, caller("member"), {"project_id": "other"})
