"""Remembers the objects that recent requests named.

With them, children can be asked at once, while this zone reads the objects.

A remembered flavor, image or key pair may be outdated. Therefore, a plan in this zone reads all
these objects in its own transaction. A plan over the tree counts only if these objects equal the
remembered objects.
"""

from __future__ import annotations

from innkeeper.domain.compute import BootRequest, Definitions

REMEMBERED_MAX = 256
"""The maximum number of remembered definitions. Usually, fewer pairs of flavor and image are booted
often."""
Named = tuple[str, str | None, str | None, str | None]
"""The ids of the flavor and the image, and the name and user of the key pair."""


class RememberedDefinitions:
    """The definitions of the latest requests, without server groups."""

    def __init__(self) -> None:
        self._known: dict[Named, Definitions] = {}

    def get(self, request: BootRequest) -> Definitions | None:
        """Return the remembered definitions of a request, or ``None``."""
        return self._known.get(_named(request))

    def note(self, request: BootRequest, found: Definitions) -> None:
        """Remember the definitions of a request."""
        self._known[_named(request)] = found
        if len(self._known) > REMEMBERED_MAX:
            del self._known[next(iter(self._known))]


def _named(request: BootRequest) -> Named:
    key = request.key_name
    return request.flavor_id, request.image_id, key, None if key is None else request.user_id
