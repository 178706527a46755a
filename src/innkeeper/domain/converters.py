"""Functions that convert plain values to typed ones, made before they are first needed.

May be false: that the first use of a type by msgspec is safe in threads. At this first use, msgspec
reads the type's fields. If a second thread uses the type meanwhile, it reads a null pointer, and
the process ends. So all types are read while modules are imported: by these functions, and by
decoders that modules make.
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
    # This is what makes msgspec read the type.
    msgspec.json.Decoder(kind)

    def convert(value: object) -> T:
        return msgspec.convert(value, kind, strict=strict)

    return convert
