"""The objects that recent requests named.

With them, children can be asked at once, while this zone reads the objects.

May be false: that a flavor, image or key pair is still as it is remembered. A plan in this zone
reads all these objects in its own transaction. A plan over the tree counts only if the objects that
were read equal the remembered objects.
"""

from __future__ import annotations

from innkeeper.domain.compute import BootRequest, Definitions

REMEMBERED_MAX = 256
"""The number of requests to remember: more than the pairs of flavor and image that are booted
often."""
Named = tuple[str, str | None, str | None, str | None]
"""The ids of flavor and image, and a key pair by its user and name."""


class RememberedDefinitions:
    """The definitions of the last requests, without server groups."""

    def __init__(self) -> None:
        self._known: dict[Named, Definitions] = {}

    def get(self, request: BootRequest) -> Definitions | None:
        """Return the definitions of a request as they were, if they are remembered."""
        return self._known.get(_named(request))

    def note(self, request: BootRequest, found: Definitions) -> None:
        """Remember the definitions of a request."""
        self._known[_named(request)] = found
        if len(self._known) > REMEMBERED_MAX:
            del self._known[next(iter(self._known))]


def _named(request: BootRequest) -> Named:
    key = request.key_name
    return request.flavor_id, request.image_id, key, None if key is None else request.user_id
