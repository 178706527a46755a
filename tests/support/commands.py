"""The plug-in's commands of the stock client, run in this process against a fake service."""

from __future__ import annotations

import argparse
import io
import json
from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points
from types import SimpleNamespace
from typing import Any

import requests
from keystoneauth1.identity.base import BaseIdentityPlugin
from openstack import exceptions


def _commands(package: str) -> dict[str, EntryPoint]:
    return {
        each.name.replace("_", " "): each
        for each in entry_points(group="openstack.compute.v2")
        if each.value.startswith(f"innkeeper.entrypoints.cli.{package}.")
    }


COMMANDS = _commands("pclouds")
"""The commands of host flavors and pclouds, by the words that call them."""
ZONE_COMMANDS = _commands("zones")
"""The commands of zones, by the words that call them."""
EVERY = {**COMMANDS, **ZONE_COMMANDS}
Answer = tuple[int, Any]


class Service:
    """A Compute API that returns prepared answers and records requests."""

    def __init__(self, *answers: Answer) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[str, str, Any]] = []

    def request(self, url: str, method: str, **more: Any) -> requests.Response:
        """Return the next answer; the last one is repeated."""
        assert "microversion" in more
        self.asked.append((method, url, more.get("json")))
        status, body = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        answer = requests.Response()
        answer.status_code, answer.url = status, f"http://cloud{url}"
        answer.request = requests.Request(method, answer.url).prepare()
        answer.headers["content-type"] = "application/json"
        answer.headers["x-openstack-request-id"] = "req-1"
        answer.raw = io.BytesIO(b"" if body is None else json.dumps(body).encode())
        return answer


class Identity:
    """An Identity API with these projects, which may refuse to show or to list them."""

    def __init__(
        self,
        projects: Mapping[str, str] | None = None,
        *,
        unshown: Exception | None = None,
        unlisted: Exception | None = None,
    ) -> None:
        self.known = {"id-of-lab": "lab"} if projects is None else projects
        self.unshown, self.unlisted = unshown, unlisted
        self.asked: list[str] = []

    def get_project(self, text: str) -> Any:
        """Return the project of this id."""
        self.asked.append(text)
        if self.unshown is not None:
            raise self.unshown
        if text not in self.known:
            raise exceptions.NotFoundException(f"Could not find project: {text}.")
        return SimpleNamespace(id=text, name=self.known[text])

    def projects(self, name: str) -> list[Any]:
        """Return the projects of this name."""
        self.asked.append(name)
        if self.unlisted is not None:
            raise self.unlisted
        return [SimpleNamespace(id=k, name=v) for k, v in self.known.items() if v == name]


class Login(BaseIdentityPlugin):
    """A login whose token names one project."""

    def get_access(self, session: Any, **more: Any) -> Any:
        """Return the content of the token."""
        return SimpleNamespace(project_name="ours")

    def get_auth_ref(self, session: Any, **more: Any) -> Any:
        """Fail, because no test may call this method."""
        raise AssertionError

    def get_cache_id_elements(self) -> dict[str, str | None]:
        """Return nothing, because the cache is not used."""
        return {}


def connected(service: Service, project: str | None, identity: Any = None) -> Any:
    """Return the SDK's connection to a service, logged in for a project."""
    session = SimpleNamespace(get_project_id=lambda: project, auth=Login())
    return SimpleNamespace(compute=service, identity=identity or Identity(), session=session)


def made(
    command: EntryPoint, service: Service, project: str | None = "mine", identity: Any = None
) -> Any:
    """Return a command as the stock client creates it, connected to a service."""
    connection = connected(service, project, identity)
    manager = SimpleNamespace(sdk_connection=connection)
    app = SimpleNamespace(client_manager=manager, command_manager=None)
    return command.load()(app, None)


def run(words: str, service: Service, project: str | None = "mine", identity: Any = None) -> Any:
    """Run a command; returns its result, with all rows of a list."""
    name = max((each for each in EVERY if f"{words} ".startswith(f"{each} ")), key=len)
    command = made(EVERY[name], service, project, identity)
    parser: argparse.ArgumentParser = command.get_parser(name)
    reported = command.take_action(parser.parse_args(words[len(name) :].split()))
    return reported and (reported[0], list(reported[1]))
