"""The plug-in's commands of the stock client, run in this process before a made-up service."""

from __future__ import annotations

import argparse
import io
import json
from importlib.metadata import EntryPoint, entry_points
from types import SimpleNamespace
from typing import Any

import requests

COMMANDS = {
    each.name.replace("_", " "): each
    for each in entry_points(group="openstack.compute.v2")
    if each.value.startswith("innkeeper.entrypoints.cli.pclouds.")
}
"""The commands of host flavors and pclouds, by the words that call them."""
Answer = tuple[int, Any]


class Service:
    """A Compute API that answers what it was told to, and keeps what it was asked."""

    def __init__(self, *answers: Answer) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[str, str, Any]] = []

    def request(self, url: str, method: str, **more: Any) -> requests.Response:
        """Give the next answer, the last one for ever."""
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
    """An identity service that knows one project, or refuses to say."""

    def __init__(self, refusal: Exception | None = None) -> None:
        self.refusal = refusal

    def find_project(self, text: str) -> Any:
        """The project ``lab`` by its name."""
        if self.refusal is not None:
            raise self.refusal
        return SimpleNamespace(id="id-of-lab") if text == "lab" else None


def made(command: EntryPoint, service: Service, project: str | None = "mine") -> Any:
    """A command as the stock client makes it, in front of a service."""
    connection = SimpleNamespace(
        compute=service,
        identity=Identity(),
        session=SimpleNamespace(get_project_id=lambda: project),
    )
    manager = SimpleNamespace(sdk_connection=connection)
    app = SimpleNamespace(client_manager=manager, command_manager=None)
    return command.load()(app, None)


def run(words: str, service: Service, project: str | None = "mine") -> Any:
    """Run a command; give what it tells, with all rows of a list."""
    name = max((each for each in COMMANDS if f"{words} ".startswith(f"{each} ")), key=len)
    command = made(COMMANDS[name], service, project)
    parser: argparse.ArgumentParser = command.get_parser(name)
    told = command.take_action(parser.parse_args(words[len(name) :].split()))
    return told and (told[0], list(told[1]))
