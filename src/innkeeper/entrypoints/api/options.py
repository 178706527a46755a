"""Options of a request: what an older one means that the newest body and query cannot express.

Such a resource has a frozen dataclass beside its handlers, such as ``MoveOptions``, with the newest
version's meaning as defaults. A microversion's step sets fields (:func:`with_options`), and the
handler reads them (``call.options.of(MoveOptions)``).
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
        """The options of this type, with its defaults unless a step set them."""
        found: T | None = self._by_type.get(kind)
        return kind() if found is None else found

    def set(self, kind: type[T], **fields: Any) -> None:
        """Set fields of the options of this type, and keep the others."""
        now: Any = self.of(kind)
        self._by_type[kind] = replace(now, **fields)


class HasOptions(Protocol):
    """The part of a call that this module needs."""

    options: Options


def with_options(kind: type[T], **fields: Any) -> Callable[[HasOptions], None]:
    """An upgrade that sets these fields of the options of this type."""
    defaults: Any = kind()
    replace(defaults, **fields)  # Fails early for an unknown field.

    def up(call: HasOptions) -> None:
        call.options.set(kind, **fields)

    return up
