"""A client's request for a list, and the requests to pods that follow from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from innkeeper.domain.door import DoorRequest
from innkeeper.domain.pods import Pod
from innkeeper.engine.pods.list_orders import Sort, sort_query


@dataclass(frozen=True, slots=True)
class PodListQuestion:
    """A client's request for a list. ``filters`` are not yet translated for a pod.

    ``project_id`` is ``None`` for a list of all projects. With ``is_brief``, rows only have an id,
    a name and links. With ``is_alone``, all rows come from a single pod. With ``needs_admin``, pods
    apply one of the filters only for administrators. With ``needs_details``, this service applies a
    filter that reads details.
    """

    request: DoorRequest
    filters: Sequence[tuple[str, str]]
    sort: Sort
    limit: int
    marker: str | None
    project_id: str | None
    az_name: str | None = None
    is_brief: bool = False
    is_alone: bool = False
    needs_admin: bool = False
    needs_details: bool = False

    def is_about(self, pod: Pod) -> bool:
        """Return whether the list may contain rows of a pod."""
        return self.az_name in (None, pod.az_name)

    @property
    def asks_briefly(self) -> bool:
        """Whether a pod is asked for a list without details."""
        return self.is_alone and self.is_brief and not self.needs_details

    def target(self, marker: str | None) -> str:
        """Return the path and the query with which a pod is asked for a page."""
        kind = self.request.kind
        query = [*self.filters, *sort_query(kind, self.sort), ("limit", str(self.limit))]
        query += [("marker", marker)] if marker is not None else []
        query += [("all_tenants", "1")] if self.project_id is None else []
        return f"/{kind}s{'' if self.asks_briefly else '/detail'}?{urlencode(query)}"
