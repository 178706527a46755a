"""Make functions that convert plain values to typed values.

The first use of a type with msgspec is not thread-safe. At this first use, msgspec reads the fields
of the type. If a second thread uses the type meanwhile, this thread reads a null pointer and the
process crashes. For this reason every type is first used while modules are imported, either by
:func:`converter_to` or by a decoder that a module creates.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import msgspec

T = TypeVar("T")


def converter_to(kind: type[T], *, strict: bool = True) -> Callable[[object], T]:
    """Return a function that converts plain values to a type.

    With ``strict=False``, text is converted to a number where the type has a number. The returned
    function raises ``msgspec.ValidationError`` for a value that cannot be converted. Call
    ``converter_to`` only while a module is imported.
    """
    # Creating a decoder makes msgspec read the fields of the type.
    msgspec.json.Decoder(kind)

    def convert(value: object) -> T:
        return msgspec.convert(value, kind, strict=strict)

    return convert
