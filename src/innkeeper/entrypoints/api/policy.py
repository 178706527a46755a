"""Authorization by policy rules in oslo.policy's language, which operators can override.

Always true: a rule that no API declares allows nothing, even if an override defines the rule.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml
from oslo_config import cfg
from oslo_policy import _checks
from oslo_policy import policy as oslo

from innkeeper.domain.errors import Forbidden
from innkeeper.domain.identity import RequestContext
from innkeeper.entrypoints.api.routing import Rule

FALLBACK = "default"
"""The rule that the library applies in place of an unknown rule."""
FILLED_IN = re.compile(r"%\([^()%]+\)s")
"""A placeholder in a check, which stands for an attribute of the target."""
VERDICTS_MAX = 65536
"""Maximum number of cached verdicts, which is far more than most clouds need."""


class OsloPolicy:
    """Evaluates a set of policy rules, and caches the results.

    Checks can use the caller's ``roles``, ``user_id``, ``project_id``, ``system_scope``,
    ``is_admin``, ``is_agent`` and ``is_zone_parent``, and the target's attributes that the handler
    passes.
    """

    def __init__(
        self,
        rules: Sequence[Rule],
        overrides: Path | None,
        *,
        new_defaults_only: bool = True,
        scopes_count: bool = True,
    ) -> None:
        """Read the overrides, which replace both the default and the legacy default of a rule.

        Raises ``ValueError`` if the file cannot be read, or if an override is invalid. An override
        of an unknown rule is invalid, because it would protect nothing.
        """
        conf = cfg.ConfigOpts()
        conf([], project="innkeeper", default_config_files=[])
        self._enforcer = oslo.Enforcer(conf, use_conf=False)
        checks = {rule.name: _default(rule, new_defaults_only) for rule in rules}
        self._needs_project = frozenset(
            rule.name for rule in rules if rule.needs_project_scope and scopes_count
        )
        self._for_agents = frozenset(rule.name for rule in rules if rule.is_for_agents)
        self._about_hosts = frozenset(rule.name for rule in rules if rule.is_about_hosts)
        # Rules that an operator added can be used only inside other rules.
        self._names = frozenset(checks)
        with _without_plugins():
            parsed = oslo.Rules.from_dict(checks)
        if overrides is not None:
            parsed.update(oslo.Rules.from_dict(_read(overrides, checks)))
        self._enforcer.set_rules(parsed, use_conf=False)
        if not self._enforcer.check_rules():
            raise ValueError(
                f"In the policy file {overrides}, rules refer to unknown rules, or have cyclic "
                "references: a rule refers to itself, directly or through other rules."
            )
        self._verdicts: dict[Any, bool] = {}

    def allows(self, rule: str, context: RequestContext, target: Mapping[str, Any]) -> bool:
        if rule not in self._names or (context.is_system and rule in self._needs_project):
            return False
        if context.agent_identity is not None and rule not in self._for_agents:
            # An agent has no project, so it would pass checks on resources without a project.
            return False
        if context.hop is not None and rule in self._about_hosts:
            return False
        key = (
            rule,
            context.roles,
            context.user_id,
            context.project_id,
            context.is_system,
            context.agent_identity is not None,
            context.hop is not None,
            tuple(sorted(target.items())),
        )
        verdict = self._verdicts.get(key)
        if verdict is None:
            verdict = bool(self._enforcer.enforce(rule, dict(target), _credentials(context)))
            if len(self._verdicts) >= VERDICTS_MAX:
                self._verdicts.clear()
            self._verdicts[key] = verdict
        return verdict

    def demand(self, rule: str, context: RequestContext, target: Mapping[str, Any]) -> None:
        if not self.allows(rule, context, target):
            raise Forbidden(f"Policy does not allow {rule} to be performed.")


@contextmanager
def _without_plugins() -> Iterator[None]:
    """Keep the library from loading its plugins while the default rules are parsed.

    Plugins are checks that ask an HTTP service. Only overrides may use them. To find
    plugins, the library searches all installed packages, and imports an HTTP client. This would
    take a quarter of the time of a start.
    """
    before = _checks.extension_checks
    _checks.extension_checks = {}
    try:
        yield
    finally:
        _checks.extension_checks = before


def _default(rule: Rule, new_defaults_only: bool) -> str:
    if new_defaults_only or rule.legacy is None:
        return rule.default
    return f"({rule.default}) or ({rule.legacy})"


def _credentials(context: RequestContext) -> dict[str, Any]:
    return {
        "roles": sorted(context.roles),
        "user_id": context.user_id,
        "project_id": context.project_id,
        "system_scope": "all" if context.is_system else None,
        "is_admin": context.is_admin,
        "is_agent": context.agent_identity is not None,
        "is_zone_parent": context.hop is not None,
    }


def _read(path: Path, known: Mapping[str, str]) -> dict[str, str]:
    try:
        text = path.read_text(encoding="utf-8")
        # ``_StrictLoader`` is a SafeLoader.
        overrides = yaml.load(text, _StrictLoader) or {}  # noqa: S506
    except RecursionError as error:
        raise ValueError(f"The policy file {path} is nested too deeply.") from error
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ValueError(f"Cannot read the policy file {path}: {error}") from error
    if not isinstance(overrides, dict):
        raise ValueError(f"The policy file {path} must be a mapping of rules to checks.")
    if FALLBACK in overrides:
        raise ValueError(
            f"The policy file {path} has a rule {FALLBACK!r}, which is never used: every rule "
            "has a check of its own."
        )
    for name, check in overrides.items():
        # A name without a colon may be a rule that the operator added, for use in other rules.
        if ":" in str(name) and name not in known:
            near = difflib.get_close_matches(str(name), known, n=1, cutoff=0.0)
            raise ValueError(
                f"The policy file {path} has an unknown rule {name!r}. Did you mean {near[0]!r}?"
            )
        if not isinstance(check, str) or not _is_check(check):
            raise ValueError(f"The policy file {path} has an invalid check for {name}: {check!r}.")
    return dict(overrides)


def _is_check(check: str) -> bool:
    # The library treats a malformed check as "!", and reports it only in its own log.
    parsed = oslo.Rules.from_dict({"rule": check})["rule"]
    is_parsed = str(parsed) != "!" or check.strip() == "!"
    # The library reports a malformed ``%(name)s`` only when a request uses the rule.
    return is_parsed and "%" not in FILLED_IN.sub("", check)


class _StrictLoader(yaml.SafeLoader):
    """A YAML loader that rejects duplicate keys. Other loaders silently use the last value."""

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        if isinstance(node, yaml.MappingNode):
            names = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
            for name in names:
                if names.count(name) > 1:
                    raise yaml.constructor.ConstructorError(
                        None, None, f"found {name!r} twice", node.start_mark
                    )
        found: dict[Any, Any] = super().construct_mapping(node, deep)
        return found
