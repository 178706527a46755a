"""Overrides of policy: applied if they are valid, and rejected with an error if not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from oslo_policy import _checks

from innkeeper.domain.identity import RequestContext
from innkeeper.entrypoints.api.policy import OsloPolicy
from innkeeper.entrypoints.api.routing import Rule

RULES = (
    Rule("room:open", "@", "Everybody may."),
    Rule("room:shut", "role:admin", "Administrators may."),
)
SOMEBODY = RequestContext("req-1", user_id="u", project_id="p", roles=frozenset({"reader"}))


def policy(tmp_path: Path, text: str) -> OsloPolicy:
    path = tmp_path / "policy.yaml"
    path.write_text(text, encoding="utf-8")
    return OsloPolicy(RULES, path)


def test_defaults_without_a_file() -> None:
    made = OsloPolicy(RULES, None)
    assert made.allows("room:open", SOMEBODY, {})
    assert not made.allows("room:shut", SOMEBODY, {})
    assert not made.allows("room:nowhere", SOMEBODY, {})


def test_an_override_changes_its_rule_alone(tmp_path: Path) -> None:
    made = policy(tmp_path, '"room:shut": "role:reader"\n')
    assert made.allows("room:shut", SOMEBODY, {})
    assert made.allows("room:open", SOMEBODY, {})


def test_names_of_the_operators_own(tmp_path: Path) -> None:
    made = policy(tmp_path, 'readers: "role:reader"\n"room:shut": "rule:readers"\n')
    assert made.allows("room:shut", SOMEBODY, {})


@pytest.mark.parametrize("name", ["readers", "room:nowhere", "default", ""])
def test_an_unknown_rule_is_never_allowed(tmp_path: Path, name: str) -> None:
    made = policy(tmp_path, 'readers: "@"\n')
    assert not made.allows(name, SOMEBODY, {})


def test_a_check_may_reject_every_caller(tmp_path: Path) -> None:
    assert not policy(tmp_path, '"room:open": "!"\n').allows("room:open", SOMEBODY, {})


def test_default_rules_load_no_plugins_of_the_library() -> None:
    """To find them, the library would search all installed packages at each start."""
    code = (
        "import sys; from innkeeper.entrypoints.api.policy import OsloPolicy;"
        "from innkeeper.entrypoints.api.routing import Rule;"
        "OsloPolicy([Rule('room:shut', 'role:admin', '')], None);"
        "assert 'oslo_policy._external' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_overrides_may_ask_an_http_service(tmp_path: Path) -> None:
    OsloPolicy(RULES, None)
    policy(tmp_path, "one: http://127.0.0.1:9/check")
    assert {"http", "https"} <= _checks.get_extensions().keys()


def test_an_empty_file_changes_nothing(tmp_path: Path) -> None:
    assert policy(tmp_path, "").allows("room:open", SOMEBODY, {})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param('"room:shutt": "@"\n', "Did you mean 'room:shut'", id="unknown rule"),
        pytest.param("- a\n", "must be a mapping", id="a list"),
        pytest.param('"room:shut": "!"\n"room:shut": "@"\n', "'room:shut' twice", id="twice"),
        pytest.param("[" * 5000, "nested too deeply", id="deep"),
        pytest.param('"room:shut": "role:%(a"\n', "invalid check", id="half a name to fill in"),
        pytest.param('"room:shut": "role:%d"\n', "invalid check", id="a number to fill in"),
        pytest.param('"room:shut": 7\n', "check for room:shut: 7", id="a number as a check"),
        pytest.param('"room:shut": "role:a or"\n', "shut: 'role:a or'", id="half a check"),
        pytest.param('"room:shut": "rule:none"\n', "unknown rules", id="undefined reference"),
        pytest.param('a: "rule:b"\nb: "rule:a"\n', "cyclic references", id="a circle"),
        pytest.param('"default": "@"\n', "'default'", id="a rule for all the others"),
        pytest.param("a: [\n", "Cannot read", id="no YAML"),
    ],
)
def test_invalid_overrides_are_rejected(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        policy(tmp_path, text)


def test_a_missing_file_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="Cannot read"):
        OsloPolicy(RULES, tmp_path / "nowhere.yaml")
