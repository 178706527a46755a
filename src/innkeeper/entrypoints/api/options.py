"""Options of a request. They select older behavior that the newest version cannot express.

A resource with options has a frozen dataclass in the module of its handlers, such as
``MoveOptions``. The defaults of its fields select the newest version's behavior. A microversion's
step sets fields (:func:`with_options`), and the handler reads them
(``call.options.of(MoveOptions)``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class Options:
    """The options of one request, by type."""

    __slots__ = ("_by_type",)

    def __init__(self) -> None:
        self._by_type: dict[type[Any], Any] = {}

    def of(self, kind: type[T]) -> T:
        """Return the options of this type. A field that no upgrade has set has its default."""
        found: T | None = self._by_type.get(kind)
        return kind() if found is None else found

    def set(self, kind: type[T], **fields: Any) -> None:
        """Set fields of the options of this type, and keep all other fields."""
        now: Any = self.of(kind)
        self._by_type[kind] = replace(now, **fields)


class HasOptions(Protocol):
    """The part of a call that this module uses."""

    options: Options


def with_options(kind: type[T], **fields: Any) -> Callable[[HasOptions], None]:
    """Return an upgrade that sets ``fields`` of a request's options of the type ``kind``."""
    defaults: Any = kind()
    replace(defaults, **fields)  # This fails early if a field is unknown.

    def up(call: HasOptions) -> None:
        call.options.set(kind, **fields)

    return up
