"""Reads policies: which driver, filters and weighers decide, under which name.

Always true: a policy is made of the same parts as the service's scheduler, by the same names;
an unknown name is an error before anything is replayed.
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

NAME = re.compile(r"[\w.+-]{1,40}", re.ASCII)
MULTIPLIER_MAX = 1e9
FIELDS = ("driver", "filters")
BASELINES = {"first_fit": "innkeeper.scheduling.simulation.first_fit:FirstFit"}
"""Drivers that only simulations know by name, to compare others with."""


@dataclass(frozen=True, slots=True)
class SchedulingPolicy:
    """What decides, under the name that the results have."""

    name: str
    settings: Scheduling

    def scheduler(self, *, is_timed: bool = True) -> Scheduler:
        """A scheduler that remembers nothing of another replay.

        Where nobody looks at the time, it leaves out what is done for alternates: they change
        no choice.
        """
        settings = self.settings
        if not is_timed:
            settings = msgspec.structs.replace(settings, build_attempts_max=1)
        try:
            return scheduler_of(settings)
        except ValueError as error:
            raise Invalid(f"The policy {self.name}: {error}") from error

    def rules(self) -> Rules:
        """What its filters and weighers are told."""
        return rules_of(self.settings)

    def told(self) -> str:
        """Its driver and weighers, in one line."""
        settings = self.settings
        weighers = ", ".join(
            name + (f"={multipliers[name]:g}" if name in multipliers else "")
            for multipliers in (settings.weigher_multipliers,)
            for name in settings.default_host_weighers
        )
        return f"driver {settings.scheduler_driver}; weighers {weighers or 'none'}"

    def told_filters(self) -> str:
        """Its filters, in one line."""
        return ", ".join(self.settings.default_host_filters) or "none"


def parse(options: Mapping[str, Any]) -> tuple[SchedulingPolicy, ...]:
    """Read the policies of a command line: those that are named, or the one of the options."""
    usual = _settings(Scheduling(), options)
    named = [_policy(text, usual) for text in options["policy"]]
    if not named:
        weighers = options["weighers"]
        named = [SchedulingPolicy("default" if weighers is None else "weighers", usual)]
    names = [policy.name for policy in named]
    if len(set(names)) < len(names):
        raise Invalid(f"Two policies have the same name: {', '.join(names)}.")
    for policy in named:
        policy.scheduler()
    return tuple(named)


def _settings(before: Scheduling, wanted: Mapping[str, str | None]) -> Scheduling:
    """The settings with what is wanted in place of what was."""
    filters, weighers, driver = (wanted.get(key) for key in ("filters", "weighers", "driver"))
    if driver is not None and not driver.strip():
        raise Invalid("A driver is asked for that has no name.")
    names, multipliers = (
        (before.default_host_weighers, before.weigher_multipliers)
        if weighers is None
        else _weighers(weighers)
    )
    return Scheduling(
        scheduler_driver=BASELINES.get(driver or "", driver) or before.scheduler_driver,
        default_host_filters=(
            before.default_host_filters if filters is None else tuple(_names(filters))
        ),
        default_host_weighers=tuple(names),
        weigher_multipliers=multipliers,
    )


def _policy(text: str, usual: Scheduling) -> SchedulingPolicy:
    first, *others = text.split(";")
    name, separator, weighers = first.partition("=")
    if not separator or not NAME.fullmatch(name.strip()):
        raise Invalid(
            f"A policy is NAME=WEIGHERS[;driver=D][;filters=A,B], not {text!r}; its name has "
            "letters, digits and . _ + -."
        )
    wanted: dict[str, str | None] = {"weighers": weighers}
    for each in others:
        key, separator, value = (part.strip() for part in each.partition("="))
        if key not in FIELDS or not separator or key in wanted:
            raise Invalid(f"The policy {name}: expected driver=... or filters=..., not {each!r}.")
        wanted[key] = value
    return SchedulingPolicy(name.strip(), _settings(usual, wanted))


def _names(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _weighers(text: str) -> tuple[Sequence[str], dict[str, float]]:
    """Names in order, and the multipliers of those that have one."""
    names: list[str] = []
    multipliers: dict[str, float] = {}
    for part in _names(text):
        name, separator, number = (piece.strip() for piece in part.partition("="))
        names.append(name)
        if not separator:
            continue
        if name in WEIGHER_SETS:
            raise Invalid(f"The set {name} has multipliers of its own: {part!r}.")
        multipliers[name] = _multiplier(part, number)
    if len(set(names)) < len(names):
        raise Invalid(f"A weigher is named twice: {text!r}.")
    return names, multipliers


def _multiplier(part: str, text: str) -> float:
    number = number_of(text)
    if number is None or abs(number) > MULTIPLIER_MAX:
        raise Invalid(
            f"A weigher's multiplier is a number from -{MULTIPLIER_MAX:.0f} to "
            f"{MULTIPLIER_MAX:.0f}, not as in {part!r}."
        )
    return number
