"""What an older request means, where neither the newest body nor the newest query can say it.

A resource that needs this has a frozen dataclass beside its handlers, such as
``MoveOptions``. Its defaults are what the newest version means. A microversion's step sets
fields on the way up (:func:`with_options`); the handler reads them
(``call.options.of(MoveOptions)``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class Options:
    """The options of one request, by their type."""

    __slots__ = ("_by_type",)

    def __init__(self) -> None:
        self._by_type: dict[type[Any], Any] = {}

    def of(self, kind: type[T]) -> T:
        """The options of this type; as long as no step set any, its defaults."""
        found: T | None = self._by_type.get(kind)
        return kind() if found is None else found

    def set(self, kind: type[T], **fields: Any) -> None:
        """Set fields of the options of this type, and keep the others."""
        now: Any = self.of(kind)
        self._by_type[kind] = replace(now, **fields)


class HasOptions(Protocol):
    """A call, as far as this module is concerned."""

    options: Options


def with_options(kind: type[T], **fields: Any) -> Callable[[HasOptions], None]:
    """A way up that sets these fields of the options of this type."""
    made: Any = kind()
    replace(made, **fields)  # A field that does not exist fails here, when the step is made.

    def up(call: HasOptions) -> None:
        call.options.set(kind, **fields)

    return up
