"""Parses the hosts of a simulation from the command line.

Always true: errors are raised as :class:`Invalid`, and quote the invalid part.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from innkeeper.domain.errors import Invalid
from innkeeper.domain.numerals import is_boundless, number_of, whole_of
from innkeeper.entrypoints.simulator.traces.packing import PARTS as MACHINE_CLASSES
from innkeeper.scheduling.simulation.fleets import HOSTS_MAX, HostGroup, HostShape

MACHINE = "machine"
"""The name of hosts in packing traces, whose amounts are fractions of a machine."""
SHAPE = re.compile(r"(?:\d+(?:\.\d+)?[cgmd])+", re.ASCII)
PART = re.compile(r"(\d+(?:\.\d+)?)([cgmd])", re.ASCII)
LETTERS = {
    "c": ("VCPU", 1.0),
    "g": ("MEMORY_MB", 1024.0),
    "m": ("MEMORY_MB", 1.0),
    "d": ("DISK_GB", 1.0),
}
"""The resource class of each letter, and the size of its unit."""
RATIOS = {"cpu_ratio": "VCPU", "ram_ratio": "MEMORY_MB", "disk_ratio": "DISK_GB"}
RATIO_MAX = 1000.0
CLASS = re.compile(r"[A-Z][A-Z0-9_]*")
TOTAL_MAX = 2**40


@dataclass(slots=True)
class Draft:
    """Collects the parts of a host shape while it is parsed."""

    name: str
    totals: dict[str, int] = field(default_factory=dict)
    ratios: dict[str, float] = field(default_factory=dict)
    zone: str = "nova"
    traits: list[str] = field(default_factory=list)
    capabilities: dict[str, Any] = field(default_factory=dict)

    def total(self, class_name: str, amount: float) -> None:
        """Set the total of a resource class."""
        if not CLASS.fullmatch(class_name):
            raise Invalid(f"{class_name!r} is not a valid name of a resource class.")
        if not 1 <= amount <= TOTAL_MAX or amount != int(amount):
            raise Invalid(
                f"The {class_name} of a host {self.name} must be a whole number from 1 to "
                f"{TOTAL_MAX}."
            )
        self.totals[class_name] = int(amount)

    def ratio(self, class_name: str, ratio: float) -> None:
        """Set the allocation ratio of a resource class."""
        if not 0 < ratio <= RATIO_MAX:
            raise Invalid(f"The ratio of {class_name} must be above 0 and at most {RATIO_MAX:g}.")
        self.ratios[class_name] = float(ratio)

    def shape(self) -> HostShape:
        """Return the host shape. Raises :class:`Invalid` if it has no resources."""
        if not self.totals:
            raise Invalid(f"A host {self.name} has no resources.")
        return HostShape(
            self.name, self.totals, self.ratios, self.zone, tuple(self.traits), self.capabilities
        )


def parse(text: str) -> tuple[HostGroup, ...]:
    """Parse groups of hosts in the form of the command line."""
    groups = tuple(_group(part) for part in text.split("+"))
    check(groups)
    return groups


def check(groups: Sequence[HostGroup]) -> None:
    """Raise :class:`Invalid` if there are too many hosts."""
    if sum(group.count or 0 for group in groups) > HOSTS_MAX:
        raise Invalid(f"There must be at most {HOSTS_MAX} hosts.")


def _group(text: str) -> HostGroup:
    if not text.strip():
        raise Invalid(
            f"Write hosts as [COUNTx]SHAPE[/KEY=VALUE]..., with + between groups, not {text!r}."
        )
    head, *options = text.strip().split("/")
    number, separator, shape = head.partition("x")
    count = _count(number, text) if separator else None
    draft = Draft(shape if separator else head)
    draft.totals = shape_amounts(draft.name)
    for option in filter(None, options):
        key, separator, value = option.partition("=")
        if not separator or not key or not value:
            raise Invalid(f"Expected KEY=VALUE after a slash, not {option!r}.")
        _set(draft, key, value)
        if key != "zone":
            draft.name += f"/{option}"
    return HostGroup(draft.shape(), count)


def _count(number: str, text: str) -> int:
    count = whole_of(number)
    if count is None or not 1 <= count <= HOSTS_MAX:
        raise Invalid(
            f"The number of hosts in a group must be a whole number from 1 to {HOSTS_MAX}, not "
            f"{number!r} as in {text!r}."
        )
    return count


def shape_amounts(text: str) -> dict[str, int]:
    """Parse a shape such as ``64c256g``, or the name of a machine."""
    if text == MACHINE:
        return dict.fromkeys(MACHINE_CLASSES, 1)
    if not SHAPE.fullmatch(text):
        raise Invalid(
            f"Write a shape as numbers, each followed by c (cores), g (GiB of memory), m (MiB) or "
            f"d (GB of disk), such as 64c256g, not {text!r}."
        )
    draft = Draft(text)
    for number, letter in PART.findall(text):
        class_name, units = LETTERS[letter]
        if class_name in draft.totals:
            raise Invalid(f"The shape {text!r} contains the amount of {class_name} twice.")
        draft.total(class_name, float(number) * units)
    return draft.totals


def _set(draft: Draft, key: str, value: str) -> None:
    if key == "zone":
        draft.zone = value
    elif key == "trait":
        draft.traits.append(value)
    elif key in RATIOS:
        draft.ratio(RATIOS[key], _number(key, value))
    elif CLASS.fullmatch(key):
        draft.total(key, _number(key, value))
    else:
        draft.capabilities[key] = _capability(key, value)


def _number(key: str, text: str) -> float:
    number = number_of(text)
    if number is None:
        raise Invalid(f"{key} is {text!r}, but must be a number in digits, such as 4 or 1.5.")
    return number


def _capability(key: str, text: str) -> str | int | float:
    """Return the value of a capability. If the text is a number, the value is a number."""
    whole, number = whole_of(text), number_of(text)
    if is_boundless(text):
        raise Invalid(f"The capability {key} must not be {text!r}.")
    if whole is not None:
        return whole
    return text if number is None else number


def file_of(text: str) -> Path | None:
    """Return the path if ``text`` is the path of an existing file, or else ``None``."""
    path = Path(text)
    try:
        return path if path.is_file() else None
    except (OSError, ValueError):
        return None
