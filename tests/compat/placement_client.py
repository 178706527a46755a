"""``openstack`` at one microversion of Placement, and a plain client for checks."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import httpx

from tests.compat.openstack_copies import Outcome
from tests.compat.openstack_shell import Shell
from tests.support.trust import NOBODY

DEFAULT = "1"
DEFAULT_MINOR = 29
"""The client's default version, if the service has it."""
NEWEST = "1.39"
TOKEN = "admin"
TREE_SINCE = 14


class PlacementClient:
    """Runs commands at a microversion, and records the used commands and options."""

    def __init__(self, shell: Shell, url: str, version: str) -> None:
        self.version = version
        self.minor = DEFAULT_MINOR if version == DEFAULT else int(version.partition(".")[2])
        self.used: set[tuple[str, ...]] = set()
        """Commands, and pairs of a command and an option."""
        self._shell = shell
        self._http = httpx.Client(
            base_url=url, timeout=30.0, headers={"x-auth-token": TOKEN}, verify=NOBODY
        )
        self._made = 0

    @classmethod
    @contextmanager
    def at(cls, version: str, shell: Shell, url: str) -> Iterator[PlacementClient]:
        """A client at a microversion until the block ends."""
        options = (
            *("--os-auth-type", "admin_token", "--os-token", TOKEN),
            *("--os-endpoint", url, "--os-placement-api-version", version),
        )
        client = cls(shell, url, version)
        try:
            with shell.session(options):
                yield client
        finally:
            client._http.close()

    # Commands:

    def _run(self, command: str, words: tuple[str, ...]) -> Outcome:
        return self._shell.run([*command.split(), *words])

    def do(self, command: str, *words: str) -> str:
        """Run a command that must succeed."""
        outcome = self._run(command, words)
        assert outcome.status == 0, f"{self.version}: {command} {words}: {outcome.errors}"
        self.used.add((command,))
        self.used.update((command, word) for word in words if word.startswith("--"))
        return outcome.output

    def ask(self, command: str, *words: str) -> Any:
        """Run a command that must succeed, and return its answer, read from JSON."""
        return json.loads(self.do(command, *words, "-f", "json"))

    def refuses(self, command: str, *words: str) -> str:
        """Run a command that must fail, and return its error."""
        outcome = self._run(command, words)
        assert outcome.status != 0, f"{self.version}: {command} {words}: {outcome.output}"
        return outcome.errors

    # Checks and test data:

    def send(self, method: str, path: str, body: Any = None, version: str = NEWEST) -> Any:
        """Send a plain request that must succeed, and return its answer."""
        headers = {"openstack-api-version": f"placement {version}"}
        response = self._http.request(method, path, json=body, headers=headers)
        assert response.is_success, f"{method} {path}: {response.text}"
        return response.json() if response.content else None

    def look(self, path: str) -> Any:
        """Read with a plain request."""
        return self.send("GET", path)

    def view(self, provider: str) -> dict[str, Any]:
        """A provider as a command at this version must show it."""
        seen = self.look(f"/resource_providers/{provider}")
        fields = ["uuid", "name", "generation"]
        if self.minor >= TREE_SINCE:
            fields += ["root_provider_uuid", "parent_provider_uuid"]
        return {field: seen[field] for field in fields}

    def inventories(self, provider: str) -> dict[str, Any]:
        """A provider's inventories, by class."""
        found: dict[str, Any] = self.look(f"/resource_providers/{provider}/inventories")
        inventories: dict[str, Any] = found["inventories"]
        return inventories

    def name(self, what: str) -> str:
        """A name that no other version and no other scene uses."""
        self._made += 1
        return f"{what}_{self.version}_{self._made}".replace(".", "_")

    def provider(self, totals: Mapping[str, int] | None = None, parent: str | None = None) -> str:
        """Create a provider with these inventories; returns its uuid."""
        named = {"name": self.name("provider"), "parent_provider_uuid": parent}
        uuid = str(self.send("POST", "/resource_providers", named)["uuid"])
        inventories = {name: {"total": total} for name, total in (totals or {}).items()}
        whole = {"inventories": inventories, "resource_provider_generation": 0}
        self.send("PUT", f"/resource_providers/{uuid}/inventories", whole)
        return uuid

    def mark(self, provider: str, traits: list[str], aggregates: list[str]) -> None:
        """Give a provider traits, and put it into aggregates."""
        path = f"/resource_providers/{provider}"
        seen = {"resource_provider_generation": self.look(path)["generation"]}
        self.send("PUT", f"{path}/traits", {**seen, "traits": traits})
        seen = {"resource_provider_generation": self.look(path)["generation"]}
        self.send("PUT", f"{path}/aggregates", {**seen, "aggregates": aggregates})
