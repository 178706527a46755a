"""Change links in the answers of child zones, and check the bounds of these answers.

Always true: after :func:`move`, all links lead to this zone. The depth of the answer and the size
of its numbers are limited, so that later code does not fail.
"""

from __future__ import annotations

from dataclasses import dataclass

from innkeeper.clients.zone_wire import ZoneSilent

LINK, LINKS = "href", frozenset({"links", "servers_links"})
OF_USERS = frozenset({"metadata", "scheduler_hints", "extra_specs", "properties"})
"""The parts of an answer whose keys are chosen by users. Zones put no links into these parts."""
DEPTH_MAX = 32
VALUES_MAX = 1_000_000
"""The maximum number of values in an answer. A page of a thousand servers with as much metadata as
possible has half as many."""
NUMBER_MAX = 2**63 - 1


def move(told: object, invented: str, address: str) -> None:
    """In all links, replace the invented address by the address of this zone, in place.

    Raises :class:`ZoneSilent` if a link leads elsewhere, or if the answer exceeds the bounds. Parts
    whose keys are chosen by users are not searched for links.
    """
    _Move(invented, address).move(told, 0, is_linked=True)


@dataclass(slots=True)
class _Move:
    """Changes one answer. ``left`` is the number of values that may still follow."""

    invented: str
    address: str
    left: int = VALUES_MAX

    def move(self, told: object, depth: int, *, is_linked: bool) -> None:
        if depth > DEPTH_MAX:
            raise ZoneSilent("the answer is nested too deeply", may_have_arrived=True)
        if isinstance(told, list):
            self._count(len(told))
            for each in told:
                self.move(each, depth + 1, is_linked=is_linked)
        elif isinstance(told, dict):
            self._count(len(told))
            for key, value in told.items():
                if key in LINKS and isinstance(value, list) and is_linked:
                    self._count(len(value))
                    told[key] = [_moved_link(each, self.invented, self.address) for each in value]
                else:
                    is_of_user = key in OF_USERS
                    self.move(value, depth + 1, is_linked=is_linked and not is_of_user)
        elif isinstance(told, int) and abs(told) > NUMBER_MAX:
            raise ZoneSilent("a number in the answer is too large", may_have_arrived=True)

    def _count(self, values: int) -> None:
        self.left -= values
        if self.left < 0:
            raise ZoneSilent("the answer has too many values", may_have_arrived=True)


def moved(link: object, invented: str, address: str) -> str:
    """Return a link with this zone's address. Raises :class:`ZoneSilent` if it leads elsewhere."""
    if not isinstance(link, str) or not link.startswith(invented + "/") or not link.isprintable():
        raise ZoneSilent("a link in the answer leads elsewhere", may_have_arrived=True)
    return address + link.removeprefix(invented)


def _moved_link(link: object, invented: str, address: str) -> dict[str, object]:
    if not isinstance(link, dict) or not isinstance(link.get("rel"), str):
        raise ZoneSilent("a link in the answer is malformed", may_have_arrived=True)
    return {"rel": link["rel"], LINK: moved(link.get(LINK), invented, address)}
