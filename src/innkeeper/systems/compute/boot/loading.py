"""Loads the filters, weighers, drivers and resource types of leases that the settings name.

Always true: a name that cannot be found is an error. A found object without a required member is an
error too.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterable, Mapping
from importlib.metadata import entry_points
from typing import Any

from innkeeper.domain.errors import BROKEN_IMPORT

OWN = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*(:[^\W\d]\w*)?")
"""The pattern of a plug-in's import name: a module, or an object in a module."""


class NamesNothing(ValueError):
    """The plug-in that a setting names cannot be used. ``noun`` is the expected kind of plug-in."""

    def __init__(self, noun: str, message: str) -> None:
        super().__init__(message)
        self.noun = noun


def named(
    noun: str, name: str, ours: Mapping[str, Any], group: str, sets: Iterable[str] = ()
) -> Any:
    """Return what a name refers to: a built-in object, an entry point, or an imported object.

    The name of an imported object has the form ``package.module:name``.
    """
    if name in ours:
        return ours[name]
    found = [each for each in entry_points(group=group) if each.name == name]
    try:
        if found:
            return found[0].load()
        if OWN.fullmatch(name) and (":" in name or "." in name):
            return _imported(name)
    except BROKEN_IMPORT as error:
        why = ": ".join([type(error).__name__, *str(error).strip().splitlines()[:1]])
        raise NamesNothing(noun, f"The {noun} {name!r} cannot be imported ({why}).") from error
    known = ", ".join(sorted([*ours, *sets]))
    raise NamesNothing(
        noun,
        f"There is no {noun} {name!r}. There are: {known}. Name a plug-in as "
        f"package.module:name, or by its entry point in the group {group}.",
    )


def complete(noun: str, name: str, found: Any, kind: type) -> Any:
    """Return ``found``, or raise :class:`NamesNothing` if it lacks members of the protocol."""
    required = [*kind.__annotations__, *(each for each in vars(kind) if each[0] != "_")]
    lacking = [each for each in dict.fromkeys(required) if not hasattr(found, each)]
    if lacking:
        raise NamesNothing(noun, f"The {noun} {name!r} has no {', '.join(lacking)}.")
    return found


def _imported(path: str) -> Any:
    module, _, name = path.partition(":")
    found = importlib.import_module(module)
    return getattr(found, name) if name else found
