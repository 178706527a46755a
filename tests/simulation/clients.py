"""Clients that boot, delete and claim at random, and record the answers in a ledger.

Always true: an operation without an answer is recorded as unknown, neither done nor failed. Each
server or consumer is used by only one client.
"""

from __future__ import annotations

import random
import threading
import time
import uuid
from dataclasses import dataclass, field
from typing import Any

from tests.simulation.programs import LOST, Caller

SERVERS = "/compute/v2.1/servers"
FLAVOR_ID = "tiny"
FLAVOR = {"vcpus": 1, "ram": 64, "disk": 1}
HELD_OF_HOST = {"VCPU": 1, "MEMORY_MB": 64}
HELD_OF_POOL = {"DISK_GB": 1}
POOL = "50000000-0000-4000-8000-000000000000"
"""The provider of all hosts' disks."""
RECONNECT_S = 0.05

Holding = dict[str, dict[str, int]]
"""The holdings of one consumer: provider -> resource class -> amount."""


@dataclass(slots=True)
class Ledger:
    """The requests of one client, and their answers."""

    asked_names: set[str] = field(default_factory=set)
    booted: dict[str, str] = field(default_factory=dict)
    """Acknowledged servers and their names."""
    delete_asked: set[str] = field(default_factory=set)
    deleted: set[str] = field(default_factory=set)
    """Servers whose deletion was acknowledged."""
    holdings: dict[str, list[Holding]] = field(default_factory=dict)
    """What each consumer may hold: one entry after an acknowledgement, more after a
    write without an answer."""
    acknowledged: int = 0
    accidents: list[str] = field(default_factory=list)
    lost: int = 0
    """The number of requests without an answer."""


class Client:
    """One client with its own random numbers, ledger and thread."""

    def __init__(
        self, number: int, seed: int, caller: Caller, providers: list[str], over: threading.Event
    ) -> None:
        self.name = f"client-{number}"
        # Not a subclass of Thread, whose private methods could be overridden by accident.
        self._thread = threading.Thread(target=self._run, name=self.name, daemon=True)
        self.ledger = Ledger()
        self._dice = random.Random(f"{seed}/{number}")  # noqa: S311 - to be repeated
        self._caller = caller
        self._providers = providers
        self._over = over
        self._sent = 0

    def start(self) -> None:
        """Start; the client runs until the run is over."""
        self._thread.start()

    def join(self, timeout_s: float) -> None:
        """Wait for the end."""
        self._thread.join(timeout_s)
        assert not self._thread.is_alive(), f"{self.name} does not end"

    def _run(self) -> None:
        acts = (self._boot, self._boot, self._boot, self._delete, self._claim, self._claim)
        while not self._over.is_set():
            self._dice.choice(acts)()
        self._caller.close()

    def _call(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Send one request; status 0 if there was no answer."""
        try:
            answer = self._caller.call(method, path, body)
        except LOST:
            self.ledger.lost += 1
            time.sleep(RECONNECT_S)
            return 0, None
        if answer.status < 300:
            self.ledger.acknowledged += 1
        elif answer.status >= 500:
            self.ledger.accidents.append(f"{method} {path}: {answer.status} {answer.body}")
        return answer.status, answer.body

    def _boot(self) -> None:
        self._sent += 1
        name = f"{self.name}-{self._sent}"
        wanted = {"name": name, "flavorRef": FLAVOR_ID, "imageRef": "", "networks": "none"}
        self.ledger.asked_names.add(name)
        status, body = self._call("POST", SERVERS, {"server": wanted})
        if status == 202:
            self.ledger.booted[body["server"]["id"]] = name

    def _delete(self) -> None:
        mine = sorted(self.ledger.booted.keys() - self.ledger.delete_asked)
        if not mine:
            return
        chosen = self._dice.choice(mine)
        self.ledger.delete_asked.add(chosen)
        status, _ = self._call("DELETE", f"{SERVERS}/{chosen}")
        if status == 204:
            self.ledger.deleted.add(chosen)

    def _claim(self) -> None:
        known = sorted(self.ledger.holdings)
        if known and self._dice.random() < 0.3:
            consumer = self._dice.choice(known)
        else:
            consumer = str(uuid.UUID(int=self._dice.getrandbits(128), version=4))
        some = self._dice.sample(self._providers, self._dice.randint(1, 2))
        wanted = {each: {"VCPU": self._dice.randint(1, 4)} for each in some}
        wanted[POOL] = {"DISK_GB": self._dice.randint(1, 4)}
        body = {
            "allocations": {each: {"resources": amounts} for each, amounts in wanted.items()},
            "project_id": "simulation",
            "user_id": self.name,
        }
        possible = self.ledger.holdings.setdefault(consumer, [{}])
        status, _ = self._call("PUT", f"/placement/allocations/{consumer}", body)
        if status == 204:
            self.ledger.holdings[consumer] = [wanted]
        elif status in (0, 503):
            possible.append(wanted)
