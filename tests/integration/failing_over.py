"""A real service that boots servers while the database fails over."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import httpx

from tests.simulation.programs import LOST, UNLIMITED, Caller, Cloud, wait_until
from tests.support import forked

SERVERS = "/compute/v2.1/servers"
FLAVOR = {"id": "tiny", "name": "tiny", "vcpus": 1, "ram": 64, "disk": 0}
HOSTS = 2
HOST_SIZE = 10_000
BOOTS_BEFORE = 10
BOOTS_AFTER = 10
GOES_ON_WITHIN_S = 60.0
SETTLES_WITHIN_S = 60.0
PAUSE_S = 0.02
BUSY_S = 2


class Booter:
    """A client that boots one server after the other, and records the answers."""

    def __init__(self, caller: Caller) -> None:
        self.tried: list[str] = []
        self.acknowledged: list[str] = []
        self.others: Counter[int | str] = Counter()
        self._caller = caller
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Stop after the current boot."""
        self._is_over.set()
        self._thread.join(GOES_ON_WITHIN_S)
        assert not self._thread.is_alive()

    def _run(self) -> None:
        while not self._is_over.is_set():
            name = f"server-{len(self.tried)}"
            self.tried.append(name)
            wanted = {"name": name, "flavorRef": "tiny", "imageRef": "", "networks": "none"}
            try:
                answer = self._caller.call("POST", SERVERS, {"server": wanted})
            except LOST as error:
                self.others[type(error).__name__] += 1
                continue
            if answer.status == httpx.codes.ACCEPTED:
                self.acknowledged.append(name)
            else:
                self.others[answer.status] += 1
            time.sleep(PAUSE_S)


@contextmanager
def booting(directory: Path, url: str) -> Iterator[tuple[Cloud, Booter]]:
    """A service on the database at ``url``, an agent, and a booting client."""
    cloud = Cloud(directory, HOSTS, HOST_SIZE)
    cloud.service.settings = {
        **UNLIMITED,
        "INNKEEPER_DATABASE_URL": url,
        "INNKEEPER_BUSY_TIMEOUT_S": str(BUSY_S),
    }
    try:
        cloud.start()
        with closing(cloud.caller()) as caller:
            made = caller.call("POST", "/compute/v2.1/flavors", {"flavor": FLAVOR})
            assert made.status == httpx.codes.OK
            booter = Booter(caller)
            booter.start()
            yield cloud, booter
    finally:
        cloud.stop()
        for log in sorted(directory.glob("*.log")):
            sys.stdout.write(f"--- {log.name}\n{log.read_text(errors='replace')[-6_000:]}\n")


def survive(directory: Path, url: str, strike: Callable[[], None]) -> None:
    """Cause a failure during boots; all acknowledged servers must exist afterwards."""
    with booting(directory, url) as (cloud, booter):
        wait_until(lambda: len(booter.acknowledged) >= BOOTS_BEFORE, "the first servers")
        strike()
        enough = len(booter.acknowledged) + BOOTS_AFTER
        wait_until(lambda: len(booter.acknowledged) >= enough, "more", GOES_ON_WITHIN_S)
        booter.stop()
        with closing(cloud.caller()) as caller:
            wait_until(lambda: not undecided(caller), "the agent", SETTLES_WITHIN_S)
            found = Counter(each["name"] for each in servers(caller))
        cloud.stop()
        sys.stdout.write(f"acknowledged {len(booter.acknowledged)}, others {booter.others}\n")
        assert not [each for each in booter.acknowledged if found[each] != 1]
        assert not [each for each in found if found[each] > 1]
        assert found.keys() <= set(booter.tried)
        audited = audit(cloud, url)
        assert audited.returncode == 0, audited.stdout + audited.stderr


def servers(caller: Caller) -> list[dict[str, str]]:
    """All servers."""
    found: list[dict[str, str]] = []
    marker = ""
    while True:
        answer = caller.call("GET", f"{SERVERS}/detail?limit=100{marker}")
        assert answer.status == httpx.codes.OK, answer.body
        page = answer.body["servers"]
        found += page
        if not page:
            return found
        marker = f"&marker={page[-1]['id']}"


def undecided(caller: Caller) -> list[str]:
    """The servers that the agent has not built yet."""
    return [each["name"] for each in servers(caller) if each["status"] == "BUILD"]


def audit(cloud: Cloud, url: str) -> subprocess.CompletedProcess[str]:
    """Run ``innkeeper audit`` on the database."""
    kept = {key: text for key, text in os.environ.items() if not key.startswith("INNKEEPER_")}
    words = ("audit", "--data-dir", str(cloud.data_dir))
    environment = {**kept, "INNKEEPER_DATABASE_URL": url}
    return forked.run(*words, within_s=GOES_ON_WITHIN_S, env=environment)
