"""Links in the answers of child zones, and the bounds of these answers.

Always true: after :func:`move`, all links lead to this zone. The answer is not nested so deeply
that later code fails, and no number is so large that later code fails.
"""

from __future__ import annotations

from dataclasses import dataclass

from innkeeper.clients.zone_wire import ZoneSilent

LINK, LINKS = "href", frozenset({"links", "servers_links"})
OF_USERS = frozenset({"metadata", "scheduler_hints", "extra_specs", "properties"})
"""The parts of an answer that have names chosen by users. These parts have no links of zones."""
DEPTH_MAX = 32
VALUES_MAX = 1_000_000
"""The maximum number of values in an answer. A page of a thousand servers with all possible
metadata has half as many."""
NUMBER_MAX = 2**63 - 1


def move(told: object, invented: str, address: str) -> None:
    """Replace the invented address in all links by the address of this zone, in place.

    Raises :class:`ZoneSilent` for a link to anywhere else, and for an answer beyond the bounds.
    Parts with names chosen by users are not searched for links.
    """
    _Move(invented, address).move(told, 0, is_linked=True)


@dataclass(slots=True)
class _Move:
    """The work on one answer. ``left`` is the number of values that the answer may still have."""

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
    """Return a link with this zone's address. Raises :class:`ZoneSilent`."""
    if not isinstance(link, str) or not link.startswith(invented + "/") or not link.isprintable():
        raise ZoneSilent("a link in the answer leads elsewhere", may_have_arrived=True)
    return address + link.removeprefix(invented)


def _moved_link(link: object, invented: str, address: str) -> dict[str, object]:
    if not isinstance(link, dict) or not isinstance(link.get("rel"), str):
        raise ZoneSilent("a link in the answer is no link", may_have_arrived=True)
    return {"rel": link["rel"], LINK: moved(link.get(LINK), invented, address)}
