"""Give a code to each dedication of hosts, and keep the projects that may use the hosts.

The host table has one code for each host, so a host is never both in a pcloud and leased.
``GENERAL`` and ``POOLED`` are fixed codes. Every pcloud and reservation has its own code. The key
of a reservation differs from all keys of pclouds; see :func:`of_reservation`.

Always true: as long as a host has a code, the code stands for the same pcloud or reservation. The
facts of a pcloud or reservation were read together with its hosts. A code may have no hosts. Unused
codes stay until the next call of :meth:`Dedications.keep_codes`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

import numpy as np
import numpy.typing as npt

from innkeeper.domain.ids import ProviderId
from innkeeper.snapshot.amounts import Indexes, Mask
from innkeeper.snapshot.codes import SPARE, Codes, codes_max, renumbered

GENERAL, POOLED = 0, 1
"""The code of hosts for general use, and the code of hosts in host flavors' pools."""
FIRST = 2
FREEPOOL = "freepool"
"""The key of the freepool. It is not a UUID, so that no scheduler hint can name the freepool. No
project may use the freepool directly."""
RESERVATION = "reservation "
FEW = 4
NO_ROWS: Indexes = np.zeros(0, dtype=np.intp)
PROJECTS_MAX = 10_000
"""The maximum number of projects whose automatic pclouds are cached."""


def of_reservation(uuid: str) -> str:
    """Return the key of a reservation. A scheduler hint for pclouds cannot contain this key."""
    return RESERVATION + uuid


class Dedications:
    """The pclouds and reservations that hosts are dedicated to, by code."""

    def __init__(self) -> None:
        self._uuids: list[str] = ["", ""]
        self._codes: dict[str, int] = {}
        self._projects: list[frozenset[str]] = [frozenset(), frozenset()]
        self._taken_in: list[frozenset[str]] = [frozenset(), frozenset()]
        self._codes_max = SPARE
        self._automatic: list[int] = []
        self._automatic_of: dict[str, tuple[str, ...]] = {}
        self._hosts: dict[tuple[int, str], ProviderId] = {}
        self._names: dict[ProviderId, tuple[int, str]] = {}
        self._rows: dict[int, Indexes] = {}
        self._has_dedicated: bool | None = None

    @property
    def count(self) -> int:
        """The number of codes."""
        return len(self._uuids)

    def code(self, uuid: str) -> int:
        """Return the code of a pcloud or reservation. A new one gets the next code."""
        code = self._codes.get(uuid)
        if code is None:
            code = self._codes[uuid] = len(self._uuids)
            self._uuids.append(uuid)
            self._projects.append(frozenset())
            self._taken_in.append(frozenset())
        return code

    def uuid(self, code: int) -> str | None:
        """Return the key of a pcloud or reservation, or ``None`` for the two fixed codes."""
        return self._uuids[code] or None

    def set_facts(self, uuid: str, projects: Collection[str], taken_in: Collection[str]) -> None:
        """Replace the facts of a pcloud or reservation.

        The projects in ``projects`` may use the hosts. The projects in ``taken_in`` may also use
        the hosts in requests that do not name the pcloud.
        """
        code = self.code(uuid)
        self._projects[code] = frozenset(projects)
        if self._taken_in[code] != frozenset(taken_in):
            self._taken_in[code] = frozenset(taken_in)
            self._find_automatic()

    def _find_automatic(self) -> None:
        self._automatic = [code for code, those in enumerate(self._taken_in) if those]
        self._automatic_of.clear()

    def facts(self, code: int) -> tuple[str, frozenset[str], frozenset[str]]:
        """Return the key for a code, the projects that may use the hosts, and ``taken_in``."""
        return self._uuids[code], self._projects[code], self._taken_in[code]

    def usable(self, uuids: Iterable[str], project_id: str) -> list[int]:
        """Return the codes of the given pclouds or reservations that a project may use."""
        codes = (self._codes.get(uuid) for uuid in uuids)
        return [each for each in codes if each is not None and project_id in self._projects[each]]

    def automatic_of(self, project_id: str) -> tuple[str, ...]:
        """Return the pclouds that requests of this project may use without naming a pcloud."""
        found = self._automatic_of.get(project_id)
        if found is None:
            if len(self._automatic_of) >= PROJECTS_MAX:
                self._automatic_of.clear()
            mine = (code for code in self._automatic if project_id in self._taken_in[code])
            found = self._automatic_of[project_id] = tuple(
                sorted(map(self._uuids.__getitem__, mine))
            )
        return found

    def codes(self, uuids: Iterable[str]) -> list[int]:
        """Return the codes of the given pclouds and reservations that are known."""
        found = (self._codes.get(uuid) for uuid in uuids)
        return [each for each in found if each is not None]

    def enter(self, provider_id: ProviderId, code: int, name: str) -> None:
        """Set the name of a host in its pcloud. The name is empty if the host is in no pcloud."""
        self.leave(provider_id)
        if name:
            self._hosts[code, name] = provider_id
            self._names[provider_id] = (code, name)

    def leave(self, provider_id: ProviderId) -> None:
        """Remove the name of a host in its pcloud."""
        key = self._names.pop(provider_id, None)
        # If two hosts swap names, the name may already belong to the other host.
        if key is not None and self._hosts.get(key) == provider_id:
            del self._hosts[key]

    def called(self, codes: Iterable[int], name: str) -> list[ProviderId]:
        """Return the hosts with this name in one of these pclouds."""
        found = (self._hosts.get((code, name)) for code in codes)
        return [each for each in found if each is not None]

    def open_rows(self, allowed: Collection[int], codes: Codes, is_open: Mask) -> Indexes:
        """Return, in order, the rows of hosts that have one of these codes and take new servers."""
        rows = [self._open_rows(code, codes, is_open) for code in allowed]
        return rows[0] if len(rows) == 1 else np.unique(np.concatenate([NO_ROWS, *rows]))

    def _open_rows(self, code: int, codes: Codes, is_open: Mask) -> Indexes:
        rows = self._rows.get(code)
        if rows is None:
            rows = self._rows[code] = ((codes == code) & is_open).nonzero()[0]
        return rows

    def has_dedicated(self, codes: Codes) -> bool:
        """Return whether any host is dedicated. ``codes`` is the column of the host table."""
        if self._has_dedicated is None:
            self._has_dedicated = bool((codes != GENERAL).any())
        return self._has_dedicated

    def forget_rows(self) -> None:
        """Clear the cached rows, because hosts were removed, moved, dedicated, opened or closed.

        A new host for general use does not affect the cached rows.
        """
        self._rows.clear()
        self._has_dedicated = None

    @property
    def has_many_codes(self) -> bool:
        """Whether there are so many codes that :meth:`keep_codes` should be called."""
        return len(self._uuids) > self._codes_max

    def keep_codes(self, live: Collection[int]) -> Codes:
        """Remove all codes except the fixed codes and those in ``live``.

        Return the new codes, indexed by old code.
        """
        kept = [GENERAL, POOLED, *(code for code in sorted(live) if code >= FIRST)]
        found = renumbered(kept, len(self._uuids))
        self._uuids = [self._uuids[code] for code in kept]
        self._projects = [self._projects[code] for code in kept]
        self._taken_in = [self._taken_in[code] for code in kept]
        self._codes = {uuid: code for code, uuid in enumerate(self._uuids) if code >= FIRST}
        self._codes_max = codes_max(kept)
        self._find_automatic()
        self._names = {
            provider_id: (int(found[code]), name)
            for provider_id, (code, name) in self._names.items()
        }
        self._hosts = {key: each for each, key in self._names.items()}
        self.forget_rows()
        return found


def is_one_of(codes: Codes, allowed: Collection[int]) -> npt.NDArray[np.bool_]:
    """Return for each code whether it is one of ``allowed``."""
    if len(allowed) > FEW:
        by_code: Mask = np.zeros(max(int(codes.max(initial=0)), *allowed) + 1, dtype=np.bool_)
        by_code[list(allowed)] = True
        found: Mask = by_code[codes]
        return found
    # For a few codes, one pass per code is faster than a lookup.
    first, *rest = allowed
    found = codes == first
    for each in rest:
        found |= codes == each
    return found
