"""The Placement API's rules have the original's names, and the same results."""

from __future__ import annotations

from itertools import chain, combinations
from pathlib import Path

import pytest
from oslo_config import cfg
from oslo_context.context import RequestContext as OsloContext
from oslo_policy import policy as oslo
from placement.policies import list_rules

from innkeeper.domain.identity import RequestContext
from innkeeper.entrypoints.api.placement.routes import PLACEMENT
from innkeeper.entrypoints.api.policy import OsloPolicy

ROLES = ("admin", "service", "reader", "member")
ROLE_SETS = tuple(chain.from_iterable(combinations(ROLES, size) for size in range(5)))
PROJECTS = ("p", "other", None)
OVERRIDES = """
"admin_api": "role:boss"
"admin_or_service_api": "role:operator"
"placement:usages": "role:member and project_id:%(project_id)s"
"placement:reshaper:reshape": "rule:admin_api"
"""


def enforcer(folder: Path, *, new_defaults: bool, text: str = "") -> oslo.Enforcer:
    """The original's own enforcer, with these settings."""
    file = folder / "policy.yaml"
    file.write_text(text, encoding="utf-8")
    conf = cfg.ConfigOpts()
    conf([], project="placement", default_config_files=[])
    made = oslo.Enforcer(conf, policy_file=str(file))
    conf.set_override("enforce_new_defaults", new_defaults, group="oslo_policy")
    made.suppress_default_change_warnings = True
    made.suppress_deprecation_warnings = True
    made.register_defaults(list_rules())
    made.load_rules()
    return made


def allows(
    theirs: oslo.Enforcer, rule: str, caller: RequestContext, project_id: str | None
) -> bool:
    """The original's result."""
    context = OsloContext(
        user_id=caller.user_id,
        project_id=caller.project_id,
        roles=sorted(caller.roles),
        system_scope="all" if caller.is_system else None,
        overwrite=False,
    )
    return bool(theirs.authorize(rule, {"project_id": project_id}, context))


def callers(*more_roles: str) -> list[RequestContext]:
    sets = [*ROLE_SETS, *((role,) for role in more_roles)]
    return [
        RequestContext("req-1", user_id="u", project_id="p", roles=frozenset(roles))
        for roles in sets
    ] + [RequestContext("req-1", user_id="u", roles=frozenset(sets[-1]), is_system=True)]


def disagreements(theirs: oslo.Enforcer, ours: OsloPolicy, *more_roles: str) -> list[str]:
    return [
        f"{rule.name} {sorted(caller.roles)} {project_id} system={caller.is_system}"
        for rule in PLACEMENT.rules
        for caller in callers(*more_roles)
        for project_id in PROJECTS
        if ours.allows(rule.name, caller, {"project_id": project_id})
        != allows(theirs, rule.name, caller, project_id)
    ]


def test_the_names_are_the_same() -> None:
    assert {rule.name for rule in PLACEMENT.rules} == {rule.name for rule in list_rules()}


@pytest.mark.parametrize("new_defaults", [True, False])
def test_defaults_judge_alike(tmp_path: Path, new_defaults: bool) -> None:
    theirs = enforcer(tmp_path, new_defaults=new_defaults)
    ours = OsloPolicy(PLACEMENT.rules, None, new_defaults_only=new_defaults)
    assert disagreements(theirs, ours) == []


def test_scopes_are_enforced_by_default() -> None:
    system = RequestContext("req-1", user_id="u", roles=frozenset({"admin"}), is_system=True)
    strict = OsloPolicy(PLACEMENT.rules, None, new_defaults_only=False)
    loose = OsloPolicy(PLACEMENT.rules, None, new_defaults_only=False, scopes_count=False)
    for rule in PLACEMENT.rules:
        opens = strict.allows(rule.name, system, {"project_id": "p"})
        assert opens is not rule.needs_project_scope
        assert loose.allows(rule.name, system, {"project_id": "p"})


@pytest.mark.parametrize("new_defaults", [True, False])
def test_a_policy_file_that_is_there_means_the_same(tmp_path: Path, new_defaults: bool) -> None:
    theirs = enforcer(tmp_path, new_defaults=new_defaults, text=OVERRIDES)
    ours = OsloPolicy(PLACEMENT.rules, tmp_path / "policy.yaml", new_defaults_only=new_defaults)
    assert disagreements(theirs, ours, "boss", "operator") == []


def test_every_rule_can_be_replaced(tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    lines = (f'"{rule.name}": "role:nobody-else"' for rule in list_rules())
    file.write_text("\n".join(lines), encoding="utf-8")
    ours = OsloPolicy(PLACEMENT.rules, file)
    admin, chosen = (
        RequestContext("req-1", user_id="u", project_id="p", roles=frozenset({role}))
        for role in ("admin", "nobody-else")
    )
    for rule in PLACEMENT.rules:
        assert not ours.allows(rule.name, admin, {"project_id": "p"})
        assert ours.allows(rule.name, chosen, {"project_id": "p"})
