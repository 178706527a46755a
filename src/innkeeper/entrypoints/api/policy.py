"""Who may do what: the rooms' rules in oslo.policy's language, and an operator's overrides.

Always true: a rule that no room registered allows nobody, whatever the overrides say.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from oslo_config import cfg
from oslo_policy import policy as oslo

from innkeeper.domain.errors import Forbidden
from innkeeper.domain.identity import RequestContext
from innkeeper.entrypoints.api.routing import Rule

FALLBACK = "default"
"""The name under which the library looks for a rule that it does not find."""
FILLED_IN = re.compile(r"%\([^()%]+\)s")
"""What of a check is filled in from what is asked about."""
VERDICTS_MAX = 65536
"""Remembered verdicts; far more than there are rules times kinds of callers."""


class OsloPolicy:
    """The verdicts of one set of rules.

    Rules see the caller's ``roles``, ``user_id``, ``project_id`` and ``system_scope``, whether
    it ``is_agent`` with a credential of its own, and of the target whatever the handler names;
    equal questions have equal answers, so they are remembered.
    """

    def __init__(
        self,
        rules: Sequence[Rule],
        overrides: Path | None,
        *,
        new_defaults_only: bool = True,
        scopes_count: bool = True,
    ) -> None:
        """Raises ``ValueError`` for overrides that cannot be read, or name no rule there is.

        A rule that is overridden in vain leaves a door as open as it was, unnoticed. What an
        operator says of a rule replaces its legacy default too.
        """
        conf = cfg.ConfigOpts()
        conf([], project="innkeeper", default_config_files=[])
        self._enforcer = oslo.Enforcer(conf, use_conf=False)
        checks = {rule.name: _default(rule, new_defaults_only) for rule in rules}
        self._needs_project = frozenset(
            rule.name for rule in rules if rule.needs_project_scope and scopes_count
        )
        self._for_agents = frozenset(rule.name for rule in rules if rule.is_for_agents)
        # A name of the operator's own is a word for rules to use, and nothing to ask for.
        self._names = frozenset(checks)
        if overrides is not None:
            checks |= _read(overrides, checks)
        self._enforcer.set_rules(oslo.Rules.from_dict(checks), use_conf=False)
        if not self._enforcer.check_rules():
            raise ValueError(f"The policy file {overrides} refers to unknown rules, or in circles.")
        self._verdicts: dict[Any, bool] = {}

    def allows(self, rule: str, context: RequestContext, target: Mapping[str, Any]) -> bool:
        """See :class:`innkeeper.entrypoints.api.site.Policy`."""
        if rule not in self._names or (context.is_system and rule in self._needs_project):
            return False
        if context.speaker is not None and rule not in self._for_agents:
            # Some checks let everybody in, and some those who have no project as nobody's
            # things have none.
            return False
        key = (
            rule,
            context.roles,
            context.user_id,
            context.project_id,
            context.is_system,
            context.speaker is not None,
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
        """See :class:`innkeeper.entrypoints.api.site.Policy`."""
        if not self.allows(rule, context, target):
            raise Forbidden(f"Policy does not allow {rule} to be performed.")


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
        "is_agent": context.speaker is not None,
    }


def _read(path: Path, known: Mapping[str, str]) -> dict[str, str]:
    try:
        text = path.read_text(encoding="utf-8")
        # The loader makes nothing but plain values.
        overrides = yaml.load(text, _EachOnce) or {}  # noqa: S506
    except RecursionError as error:
        raise ValueError(f"The policy file {path} is nested too deeply.") from error
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ValueError(f"Cannot read the policy file {path}: {error}") from error
    if not isinstance(overrides, dict):
        raise ValueError(f"The policy file {path} is no mapping of rules to checks.")
    if FALLBACK in overrides:
        raise ValueError(
            f"The policy file {path} has a rule {FALLBACK!r}, which nobody would ask: every "
            "rule has a check of its own."
        )
    for name, check in overrides.items():
        # A name without a colon is a word of the operator's own, for other rules to use.
        if ":" in str(name) and name not in known:
            near = difflib.get_close_matches(str(name), known, n=1, cutoff=0.0)
            raise ValueError(f"The policy file {path} names {name!r}. Did you mean {near[0]!r}?")
        if not isinstance(check, str) or not _is_check(check):
            raise ValueError(f"The policy file {path} gives {name} the check {check!r}.")
    return dict(overrides)


def _is_check(check: str) -> bool:
    # What the library cannot read it takes for "nobody", and says so in its own log only.
    parsed = oslo.Rules.from_dict({"rule": check})["rule"]
    return (str(parsed) != "!" or check.strip() == "!") and _can_be_filled(check)


def _can_be_filled(check: str) -> bool:
    """Whether each ``%(name)s`` is one; the library finds out when a request comes."""
    return "%" not in FILLED_IN.sub("", check)


class _EachOnce(yaml.SafeLoader):
    """Reads YAML in which no mapping has a name twice.

    Usually the later one is taken, and whoever wrote the first would never hear of it.
    """

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
