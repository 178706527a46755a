"""Keep the number of servers by host and project.

The numbers are maintained only if a filter or weigher needs them (see ``HostTable.knows_servers``).
Counting takes time, because a cloud has ten times as many servers as hosts.

Always true: all counts are positive. Keys are ids of providers, so that rows can move.
"""

from __future__ import annotations

from collections.abc import Mapping

from innkeeper.domain.ids import ProviderId

Counts = dict[str, int]


class Residents:
    """The number of servers, by project and by provider."""

    def __init__(self) -> None:
        self._by_provider: dict[ProviderId, Counts] = {}
        self._by_project: dict[str, dict[ProviderId, int]] = {}

    def of_project(self, project_id: str) -> Mapping[ProviderId, int]:
        """Return the number of servers of a project, by provider."""
        return self._by_project.get(project_id, {})

    def on(self, provider_id: ProviderId) -> Mapping[str, int]:
        """Return the number of servers on a provider, by project."""
        return self._by_provider.get(provider_id, {})

    def copy(self) -> dict[ProviderId, Counts]:
        """Return a copy of all counts, by provider."""
        return {each: dict(counts) for each, counts in self._by_provider.items()}

    def replace(self, provider_id: ProviderId, counts: Mapping[str, int]) -> None:
        """Replace the counts of a provider."""
        for project_id in list(self.on(provider_id)):
            self._set(provider_id, project_id, 0)
        for project_id, count in counts.items():
            self._set(provider_id, project_id, count)

    def add(self, provider_id: ProviderId, project_id: str, more: int) -> None:
        """Add ``more`` servers of a project. A negative number subtracts servers."""
        count = self.on(provider_id).get(project_id, 0) + more
        self._set(provider_id, project_id, max(0, count))

    def _set(self, provider_id: ProviderId, project_id: str, count: int) -> None:
        mine = self._by_provider.setdefault(provider_id, {})
        theirs = self._by_project.setdefault(project_id, {})
        if count:
            mine[project_id] = theirs[provider_id] = count
            return
        mine.pop(project_id, None)
        theirs.pop(provider_id, None)
        if not mine:
            del self._by_provider[provider_id]
        if not theirs:
            del self._by_project[project_id]
