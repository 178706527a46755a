"""Make functions that convert plain values to typed values, before they are first needed.

May be false: that threads may be the first to use a type with msgspec. When a type is first used,
msgspec reads its fields. If a second thread uses the type meanwhile, that thread reads a null
pointer, and the process ends. So all types are first used while modules are imported: by
:func:`converter_to`, and by decoders that modules create.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import msgspec

T = TypeVar("T")


def converter_to(kind: type[T], *, strict: bool = True) -> Callable[[object], T]:
    """Return a function that converts plain values to a type.

    With ``strict=False``, texts are converted to numbers where the type demands it. The function
    raises ``msgspec.ValidationError`` for other values. Call this while a module is imported.
    """
    # This first conversion makes msgspec read the fields of the type.
    msgspec.json.Decoder(kind)

    def convert(value: object) -> T:
        return msgspec.convert(value, kind, strict=strict)

    return convert
