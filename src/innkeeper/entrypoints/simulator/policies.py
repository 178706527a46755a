"""Parses scheduling policies. A policy has a name, a driver, filters and weighers.

Always true: a policy has the same parts as the service's scheduler, with the same names. An unknown
name is an error before the first replay.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from innkeeper.domain.errors import Invalid
from innkeeper.domain.numerals import number_of
from innkeeper.domain.placing import Rules
from innkeeper.domain.slices import Scheduling
from innkeeper.scheduling.schedulers.scheduler import Scheduler
from innkeeper.scheduling.weighers.catalogue import WEIGHER_SETS
from innkeeper.systems.compute.boot.drivers import rules_of, scheduler_of
from innkeeper.terminal.arguments import names

NAME = re.compile(r"[\w.+-]{1,40}", re.ASCII)
MULTIPLIER_MAX = 1e9
FIELDS = ("driver", "filters")
BASELINES = {"first_fit": "innkeeper.scheduling.simulation.first_fit:FirstFit"}
"""Scheduler drivers for comparison, which exist only in simulations."""


@dataclass(frozen=True, slots=True)
class SchedulingPolicy:
    """The settings of a scheduler, and the name under which its results are shown."""

    name: str
    settings: Scheduling
    is_variant: bool = False
    """Whether the results also contain another policy with the same settings."""

    def named(self, name: str) -> SchedulingPolicy:
        """Return the policy under another name, such as for the results on a tree of zones."""
        return SchedulingPolicy(name, self.settings, is_variant=True)

    def changed(self, changes: Mapping[str, str]) -> SchedulingPolicy:
        """Return the policy with changes. Zones of a tree may change parts of a policy."""
        if not changes:
            return self
        return SchedulingPolicy(self.name, _settings(self.settings, changes))

    def scheduler(self, *, is_timed: bool = True) -> Scheduler:
        """Return a new scheduler, without state from another replay.

        If ``is_timed`` is false, the scheduler computes no alternate hosts, which do not affect the
        choice.
        """
        settings = self.settings
        if not is_timed:
            settings = msgspec.structs.replace(settings, build_attempts_max=1)
        try:
            return scheduler_of(settings)
        except ValueError as error:
            raise Invalid(f"The policy {self.name}: {error}") from error

    def rules(self) -> Rules:
        """Return the settings of the policy's filters and weighers."""
        return rules_of(self.settings)

    def description(self) -> str:
        """Return the policy's driver and weighers, in one line."""
        multipliers = self.settings.weigher_multipliers
        weighers = ", ".join(
            name + (f"={multipliers[name]:g}" if name in multipliers else "")
            for name in self.settings.default_host_weighers
        )
        return f"driver {self.settings.scheduler_driver}; weighers {weighers or 'none'}"

    def filter_names(self) -> str:
        """Return the policy's filters, in one line."""
        return ", ".join(self.settings.default_host_filters) or "none"


def parse(options: Mapping[str, Any]) -> tuple[SchedulingPolicy, ...]:
    """Parse the ``--policy`` options.

    If there are none, returns the single policy that the other options describe.
    """
    usual = _settings(Scheduling(), options)
    named = [_policy(text, usual) for text in options["policy"]]
    if not named:
        weighers = options["weighers"]
        named = [SchedulingPolicy("default" if weighers is None else "weighers", usual)]
    given = [policy.name for policy in named]
    if len(set(given)) < len(given):
        raise Invalid(f"Two policies have the same name: {', '.join(given)}.")
    for policy in named:
        policy.scheduler()
    return tuple(named)


def _settings(before: Scheduling, changes: Mapping[str, Any]) -> Scheduling:
    filters, weighers, driver = (changes.get(key) for key in ("filters", "weighers", "driver"))
    if driver is not None and not driver.strip():
        raise Invalid("The driver has no name.")
    weigher_names, multipliers = (
        (before.default_host_weighers, before.weigher_multipliers)
        if weighers is None
        else weighers_of(weighers)
    )
    return Scheduling(
        scheduler_driver=BASELINES.get(driver or "", driver) or before.scheduler_driver,
        default_host_filters=(before.default_host_filters if filters is None else names(filters)),
        default_host_weighers=tuple(weigher_names),
        weigher_multipliers=multipliers,
    )


def _policy(text: str, usual: Scheduling) -> SchedulingPolicy:
    first, *others = text.split(";")
    name, separator, weighers = first.partition("=")
    if not separator or not NAME.fullmatch(name.strip()):
        raise Invalid(
            f"Write a policy as NAME=WEIGHERS[;driver=D][;filters=A,B], not {text!r}. The name may "
            "contain letters, digits and . _ + -."
        )
    changes: dict[str, str | None] = {"weighers": weighers}
    for each in others:
        key, separator, value = (part.strip() for part in each.partition("="))
        if key not in FIELDS or not separator or key in changes:
            raise Invalid(f"The policy {name}: expected driver=... or filters=..., not {each!r}.")
        changes[key] = value
    return SchedulingPolicy(name.strip(), _settings(usual, changes))


def weighers_of(text: str) -> tuple[Sequence[str], dict[str, float]]:
    """Parse names of weighers and their multipliers.

    Raises :class:`Invalid` if a name is repeated.
    """
    found: list[str] = []
    multipliers: dict[str, float] = {}
    for part in names(text):
        name, separator, number = (piece.strip() for piece in part.partition("="))
        found.append(name)
        if not separator:
            continue
        if name in WEIGHER_SETS:
            raise Invalid(f"The set {name} has its own multipliers, so {part!r} cannot set one.")
        multipliers[name] = _multiplier(part, number)
    if len(set(found)) < len(found):
        raise Invalid(f"A weigher is named twice: {text!r}.")
    return found, multipliers


def _multiplier(part: str, text: str) -> float:
    number = number_of(text)
    if number is None or abs(number) > MULTIPLIER_MAX:
        raise Invalid(
            f"A weigher's multiplier must be a number from -{MULTIPLIER_MAX:.0f} to "
            f"{MULTIPLIER_MAX:.0f}, not as in {part!r}."
        )
    return number
