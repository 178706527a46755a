"""Nova's own parts, connected to one placement service, for scenes.

Always true: nothing of Nova is replaced. If a scene needs a conflicting write at a certain moment,
it gives the report client an adapter that sends this write.
"""

from __future__ import annotations

import json
import uuid as uuids
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from nova import config, context, objects
from nova import utils as nova_utils
from nova.compute.provider_tree import ProviderTree
from nova.conf import CONF
from nova.db import migration
from nova.scheduler.client import report

PROJECT, USER = "project-1", "user-1"
SPACE = uuids.UUID("6f2f1a4e-3a9c-4c56-9d5f-0d4c3f1f3c55")
GONE = 204


def uuid(name: str) -> str:
    """The uuid for this name, the same in every run."""
    return str(uuids.uuid5(SPACE, name))


def inventory(total: int, **more: Any) -> dict[str, Any]:
    """An inventory as a compute driver describes it."""
    described = {"reserved": 0, "min_unit": 1, "max_unit": total, "step_size": 1}
    return {"total": total, **described, "allocation_ratio": 1.0, **more}


class Meddled:
    """Nova's adapter, with a hook that runs right before a request."""

    def __init__(self, adapter: Any, headers: Mapping[str, str]) -> None:
        self._adapter = adapter
        self._always = dict(headers)
        self._waiting: list[tuple[str, str, Callable[[], object]]] = []

    def before(self, method: str, part: str, act: Callable[[], object]) -> None:
        """Call this once, before the next request with this method and this part in its path."""
        self._waiting.append((method, part, act))

    @property
    def acted(self) -> bool:
        """Whether all hooks have run."""
        return not self._waiting

    @property
    def additional_headers(self) -> Any:
        """The headers of every request."""
        return self._adapter.additional_headers

    @additional_headers.setter
    def additional_headers(self, headers: Mapping[str, str]) -> None:
        self._adapter.additional_headers = {**headers, **self._always}

    def _meddle(self, method: str, url: str) -> None:
        due = [one for one in self._waiting if one[0] == method and one[1] in url]
        self._waiting = [one for one in self._waiting if one not in due]
        for _, _, act in due:
            act()

    def get(self, url: str, **more: Any) -> Any:
        """Send a GET."""
        self._meddle("GET", url)
        return self._adapter.get(url, **more)

    def put(self, url: str, **more: Any) -> Any:
        """Send a PUT."""
        self._meddle("PUT", url)
        return self._adapter.put(url, **more)

    def post(self, url: str, **more: Any) -> Any:
        """Send a POST."""
        self._meddle("POST", url)
        return self._adapter.post(url, **more)

    def delete(self, url: str, **more: Any) -> Any:
        """Send a DELETE."""
        self._meddle("DELETE", url)
        return self._adapter.delete(url, **more)


class Nova:
    """Report clients for one service, and notes of their answers."""

    def __init__(self, settings: Path, headers: Mapping[str, str]) -> None:
        config.parse_args(["nova", "--config-file", str(settings)], default_config_files=[])
        objects.register_all()
        migration.db_sync(database="main")
        migration.db_sync(database="api")
        self.context = context.get_admin_context()
        self.settings = settings
        self.reported: dict[str, Any] = {}
        self.limit: int = CONF.scheduler.max_placement_results
        self._headers = headers

    def meddled(self) -> tuple[Any, Meddled]:
        """A report client without any cache, and its adapter."""
        adapter = Meddled(nova_utils.get_sdk_adapter("placement", admin=True), self._headers)
        return report.SchedulerReportClient(adapter), adapter

    def client(self) -> Any:
        """A report client without any cache, as in a process of its own."""
        return self.meddled()[0]

    def note(self, name: str, answer: Any) -> Any:
        """Keep an answer, to be compared with those of other services."""
        assert name not in self.reported, name
        self.reported[name] = plain(answer)
        return answer

    def tree(self, host: str) -> tuple[Any, ProviderTree]:
        """A new client that has read a host's tree, and the tree to change."""
        client = self.client()
        found = client.get_provider_tree_and_ensure_root(self.context, uuid(host), name=host)
        return client, found

    def look(self, host: str) -> dict[str, Any]:
        """A new client's view of a host's tree and of the providers that share with it."""
        _, tree = self.tree(host)
        return view(tree)


def view(tree: ProviderTree) -> dict[str, Any]:
    """A tree of Nova's as plain data, by provider."""
    seen = {}
    for provider in tree.get_provider_uuids():
        data = tree.data(provider)
        seen[provider] = {
            "name": data.name,
            "parent": data.parent_uuid,
            "generation": data.generation,
            "inventory": dict(data.inventory),
            "traits": sorted(data.traits),
            "aggregates": sorted(data.aggregates),
        }
    return seen


def plain(answer: Any) -> Any:
    """An answer as JSON; unordered values are sorted."""
    if isinstance(answer, Mapping):
        return {str(key): plain(answer[key]) for key in sorted(answer, key=str)}
    if isinstance(answer, Iterable) and not isinstance(answer, str):
        return sorted((plain(one) for one in answer), key=json.dumps)
    return answer


def refusal(expected: type[Exception], act: Callable[[], object]) -> str:
    """Do what must be rejected, and return the type of the error."""
    try:
        act()
    except expected as refused:
        return type(refused).__name__
    message = f"{expected.__name__} was expected"
    raise AssertionError(message)
