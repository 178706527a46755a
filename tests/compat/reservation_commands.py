"""The stock ``openstack reservation`` commands on a started service, and servers in its leases."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tests.compat.openstack_command import Started, environment
from tests.compat.openstack_copies import Outcome

BLANK = "source_type=blank,destination_type=local,boot_index=0"
"""The stock client requires a boot disk; without an image it is a blank one."""
FORMAT = "%Y-%m-%d %H:%M"
WITHIN_S = 90.0
PAUSE_S = 0.5
GONE = "No Server found"

Login = Mapping[str, str] | None


def minutes(count: int) -> str:
    """Return the time so many minutes from now, as the commands take it."""
    return (datetime.now(UTC) + timedelta(minutes=count)).strftime(FORMAT)


def eventually(is_so: Callable[[], bool], what: str) -> None:
    """Wait until something is so."""
    deadline_s = time.monotonic() + WITHIN_S
    while not is_so():
        assert time.monotonic() < deadline_s, what
        time.sleep(PAUSE_S)


@dataclass(frozen=True, slots=True)
class Reservations:
    """Runs ``openstack reservation`` with one login."""

    service: Started
    login: Login = None

    def ask(self, *words: str) -> Any:
        """Run a command that must succeed, and return its answer."""
        outcome = self.run(*words, "-f", "json")
        assert outcome.status == 0, f"{' '.join(words)}: {outcome.errors}"
        # Commands that create something announce it in a line before the answer.
        _, _, rest = outcome.output.rpartition("Created a new ")
        return json.loads(rest[rest.index("\n") :] if rest != outcome.output else outcome.output)

    def do(self, *words: str) -> str:
        """Run a command that must succeed."""
        outcome = self.run(*words)
        assert outcome.status == 0, f"{' '.join(words)}: {outcome.errors}"
        return outcome.output

    def refuses(self, *words: str) -> str:
        """Run a command that must fail, and return its error."""
        outcome = self.run(*words)
        assert outcome.status != 0, f"{' '.join(words)}: {outcome.output}"
        return outcome.errors

    def run(self, *words: str) -> Outcome:
        """Run a command."""
        return self.service.run("reservation", *words, login=self.login)

    # -- leases ----------------------------------------------------------------------------

    def create(self, name: str, *reservations: str, more: tuple[str, ...] = ()) -> dict[str, Any]:
        """Create a lease of these reservations, and return it."""
        options = [word for each in reservations for word in ("--reservation", each)]
        return _read(self.ask("lease", "create", name, *options, *more))

    def show(self, name: str) -> dict[str, Any]:
        """Return a lease."""
        return _read(self.ask("lease", "show", name))

    def set(self, name: str, *words: str) -> dict[str, Any]:
        """Change a lease, and return it."""
        self.do("lease", "set", name, *words)
        return self.show(name)

    def delete(self, *names: str) -> None:
        """End leases, which deletes the servers in them."""
        for name in names:
            self.do("lease", "delete", name)

    # -- servers ---------------------------------------------------------------------------

    def boot(self, name: str, flavor: str, *hints: str) -> dict[str, Any]:
        """Create a server with these hints, and return it once it is active or failed."""
        made = self.begin_boot(name, flavor, *hints)
        uuid, shown = made["id"], made

        def is_settled() -> bool:
            nonlocal shown
            shown = self.server(uuid)
            return shown["status"] in ("ACTIVE", "ERROR")

        eventually(is_settled, f"The server {name} was not built.")
        return shown

    def begin_boot(self, name: str, flavor: str, *hints: str) -> dict[str, Any]:
        """Ask for a server."""
        given = [word for each in hints for word in ("--hint", each)]
        words = ("server", "create", "--flavor", flavor, "--block-device", BLANK, "--nic", "none")
        made: dict[str, Any] = self.service.ask(*words, *given, name, login=self.login)
        return made

    def server(self, uuid: str) -> dict[str, Any]:
        """Return a server."""
        shown: dict[str, Any] = self.service.ask("server", "show", uuid, login=self.login)
        return shown

    def host_of(self, server: Mapping[str, Any]) -> str:
        """Return the host of a server, which administrators see."""
        shown = self.service.ask("server", "show", server["id"])
        return str(shown["OS-EXT-SRV-ATTR:host"])

    def expect_gone(self, *servers: Mapping[str, Any]) -> None:
        """Wait until these servers are deleted."""
        gone = {each["id"] for each in servers}

        def are_gone() -> bool:
            listed = self.service.ask("server", "list", login=self.login)
            return not gone & {each["ID"] for each in listed}

        eventually(are_gone, "The servers of the lease were not deleted.")


def _read(shown: dict[str, Any]) -> dict[str, Any]:
    """Return a lease with lists, which the client shows as texts one after the other."""
    return {**shown, **{name: _all_of(shown[name]) for name in ("reservations", "events")}}


def _all_of(text: str) -> list[dict[str, Any]]:
    found, decoder = [], json.JSONDecoder()
    while text.strip():
        each, end = decoder.raw_decode(text.strip())
        found.append(each)
        text = text.strip()[end:]
    return found


def blazar(login: Mapping[str, str], *words: str) -> Outcome:
    """Run the client's own program, which has two commands that ``openstack`` lacks."""
    program = Path(sys.executable).with_name("blazar")
    done = subprocess.run(
        [sys.executable, str(program), *words],
        env=environment(OS_AUTH_TYPE="password", **login),
        capture_output=True,
        text=True,
        timeout=WITHIN_S,
        check=False,
    )
    return Outcome(done.returncode, done.stdout, done.stderr)
