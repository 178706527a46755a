"""The stock ``openstack`` command with a service that was started as users start it.

The service and each command are processes of their own. They share only the network and the
login file.
"""

from __future__ import annotations

import json
import os
import queue
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import httpx

from tests.compat.openstack_copies import Copies, Outcome
from tests.support import forked
from tests.support.forked import SOURCE, Forked
from tests.support.trust import NOBODY

START_WITHIN_S = 90.0
STOP_WITHIN_S = 60.0
SERVES_ON = "Innkeeper serves on "
PAUSE_S = 0.1


def environment(**more: str) -> dict[str, str]:
    """This process's environment without variables that would affect the programs."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("OS_", "INNKEEPER_"))}
    return {**kept, **more}


@dataclass(slots=True)
class Started:
    """A started service, and the stock command for it."""

    url: str
    data_dir: Path
    program: Forked
    copies: Copies
    reported: list[str] = field(default_factory=list)
    """The service's log lines so far."""

    @property
    def login_file(self) -> Path:
        """The file that the first start wrote, with ``auth: builtin``."""
        return self.data_dir / "clouds.yaml"

    def run(self, *words: str, login: Mapping[str, str] | None = None) -> Outcome:
        """Run ``openstack`` with these words; as the administrator unless ``login`` is given.

        ``login`` holds the environment variables of another login.
        """
        if login is None:
            login = {"OS_CLIENT_CONFIG_FILE": str(self.login_file), "OS_CLOUD": "innkeeper"}
        return self.copies.run(words, login)

    def ask(self, *words: str, login: Mapping[str, str] | None = None) -> Any:
        """Run a command that must succeed, and return its answer, read from JSON."""
        outcome = self.run(*words, "-f", "json", login=login)
        assert outcome.status == 0, f"openstack {' '.join(words)}: {outcome.errors}"
        return json.loads(outcome.output)

    def do(self, *words: str, login: Mapping[str, str] | None = None) -> str:
        """Run a command that must succeed and prints only text."""
        outcome = self.run(*words, login=login)
        assert outcome.status == 0, f"openstack {' '.join(words)}: {outcome.errors}"
        return outcome.output

    def refuses(self, *words: str, login: Mapping[str, str] | None = None) -> str:
        """Run a command that must fail, and return its error."""
        outcome = self.run(*words, login=login)
        assert outcome.status != 0, f"openstack {' '.join(words)}: {outcome.output}"
        return outcome.errors

    def login(self, user: str, password: str, project: str | None = None) -> dict[str, str]:
        """The environment variables of another user's login."""
        variables = {
            "OS_AUTH_URL": f"{self.url}/identity/v3",
            "OS_IDENTITY_API_VERSION": "3",
            "OS_USERNAME": user,
            "OS_PASSWORD": password,
            "OS_USER_DOMAIN_NAME": "Default",
        }
        if project is not None:
            variables |= {"OS_PROJECT_NAME": project, "OS_PROJECT_DOMAIN_NAME": "Default"}
        return variables


@contextmanager
def started(data_dir: Path, *options: str) -> Iterator[Started]:
    """Run ``innkeeper serve`` with these options on a free port until the block ends."""
    reading, writing = os.pipe()
    program = forked.start(
        ["serve", "--port", "0", "--data-dir", str(data_dir), *options],
        stdout=writing,
        stderr=writing,
        env=environment(PYTHONPATH=str(SOURCE)),
    )
    os.close(writing)
    said = os.fdopen(reading)
    lines: queue.Queue[str] = queue.Queue()
    # Without a home: a developer's own settings must not matter.
    copies = Copies(environment(HOME=str(data_dir)))
    service = Started("", data_dir, program, copies)
    reader = threading.Thread(target=_read, args=(said, lines, service.reported), daemon=True)
    reader.start()
    try:
        service.url = _address(lines, program)
        _wait_until_ready(service.url)
        yield service
    finally:
        copies.close()
        program.terminate()
        program.wait(STOP_WITHIN_S)
        reader.join(STOP_WITHIN_S)
        said.close()


def _read(source: IO[str], lines: queue.Queue[str], reported: list[str]) -> None:
    for line in source:
        reported.append(line)
        lines.put(line)


def _address(lines: queue.Queue[str], program: Forked) -> str:
    deadline_s = time.monotonic() + START_WITHIN_S
    seen: list[str] = []
    while time.monotonic() < deadline_s and (program.poll() is None or not lines.empty()):
        try:
            seen.append(lines.get(timeout=PAUSE_S))
        except queue.Empty:
            continue
        if seen[-1].startswith(SERVES_ON):
            return seen[-1].removeprefix(SERVES_ON).strip()
    raise AssertionError(f"The service did not start: {''.join(seen)}")


def _wait_until_ready(url: str) -> None:
    deadline_s = time.monotonic() + START_WITHIN_S
    with httpx.Client(
        base_url=url, transport=httpx.HTTPTransport(retries=10, verify=NOBODY), verify=NOBODY
    ) as client:
        while client.get("/readyz").status_code != httpx.codes.OK:
            assert time.monotonic() < deadline_s, "The service did not become ready."
            time.sleep(PAUSE_S)
