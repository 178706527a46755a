"""Who may do what: the rooms' rules in oslo.policy's language, and an operator's overrides.

Always true: a rule that no room registered allows nobody.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from oslo_config import cfg
from oslo_policy import policy as oslo

from innkeeper.domain.errors import Forbidden
from innkeeper.domain.identity import RequestContext
from innkeeper.entrypoints.api.routing import Rule

VERDICTS_MAX = 65536
"""Remembered verdicts; far more than there are rules times kinds of callers."""


class OsloPolicy:
    """The verdicts of one set of rules.

    Rules see the caller's ``roles``, ``user_id``, ``project_id`` and ``system_scope``, and of
    the target whatever the handler names; equal questions have equal answers, so they are
    remembered.
    """

    def __init__(self, rules: Iterable[Rule], overrides: Path | None) -> None:
        conf = cfg.ConfigOpts()
        conf([], project="innkeeper", default_config_files=[])
        file = "" if overrides is None else str(overrides)
        self._enforcer = oslo.Enforcer(
            conf, policy_file=file or None, use_conf=overrides is not None
        )
        self._enforcer.suppress_default_change_warnings = True
        self._enforcer.suppress_deprecation_warnings = True
        known = list(rules)
        for rule in known:
            self._enforcer.register_default(
                oslo.RuleDefault(rule.name, rule.default, rule.description)
            )
        # Loading rules looks at the registered ones only beside a file of overrides.
        if overrides is None:
            self._enforcer.set_rules(
                oslo.Rules.from_dict({rule.name: rule.default for rule in known}),
                use_conf=False,
            )
        else:
            self._enforcer.load_rules()
        # Loaded once; a changed file takes effect at the next start. Looking at the file's
        # time at every question costs more than the question.
        self._enforcer.use_conf = False
        self._verdicts: dict[Any, bool] = {}

    def allows(self, rule: str, context: RequestContext, target: Mapping[str, Any]) -> bool:
        """See :class:`innkeeper.entrypoints.api.site.Policy`."""
        key = (
            rule,
            context.roles,
            context.user_id,
            context.project_id,
            context.is_system,
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


def _credentials(context: RequestContext) -> dict[str, Any]:
    return {
        "roles": sorted(context.roles),
        "user_id": context.user_id,
        "project_id": context.project_id,
        "system_scope": "all" if context.is_system else None,
        "is_admin": context.is_admin,
    }
